//! The group as it is stored, and back.

use super::slot::Stage;
use super::{Carried, GroupState, MemberId, Rules};
use crate::group::history::{Attempt, History};
use crate::group::ranges::Ranges;
use crate::group::record::{FailedEvent, GroupRecord, LeaseRun, RECORD_VERSION};
use crate::options::MAX_GROUP_WINDOW;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is noted of a delivery that was under way when its group stopped being served.
const RESTARTED: &str = "the group was restarted while this delivery was under way";

/// Of how many failed events the record tells the history; of the rest only how often they failed. When everything
/// fails, the record is written often and must not grow with what people say about it.
const MAX_TOLD_EVENTS: usize = 1_000;

impl GroupState {
    /// The group as it is to be stored, with the events in `settling` settled.
    pub(crate) fn to_record(&self, settling: &[u64]) -> GroupRecord {
        let mut settling = settling.to_vec();
        settling.sort_unstable();
        let mut settled = Ranges::default();
        let mut failed = Vec::new();
        let mut leases = LeaseRuns::default();
        let mut cursor = None;
        let mut next = 0;
        let mut settling = settling.into_iter().peekable();
        for (seq, slot) in self.unsettled.iter() {
            while settling.next_if(|&before| before < seq).is_some() {}
            if settling.peek() == Some(&seq) {
                continue;
            }
            match cursor {
                None => cursor = Some(seq - 1),
                Some(_) if next < seq => settled.add(next, seq - 1),
                Some(_) => {}
            }
            next = seq + 1;
            let due_ms = match slot.stage {
                Stage::Waiting { due_ms }
                | Stage::Behind { due_ms }
                | Stage::SteppingLate { due_ms } => due_ms,
                _ => 0,
            };
            if let Some(history) = &slot.history {
                failed.push(failed_event(seq, due_ms, history));
            }
            if let Stage::Leased(lease) | Stage::Stepping(lease) = slot.stage {
                leases.add((lease.member, lease.started_ms, slot.attempt()), seq);
            }
        }
        if cursor.is_some() && next <= self.head {
            settled.add(next, self.head);
        }
        self.settled_ahead
            .iter()
            .for_each(|(first, last)| settled.add(first, last));
        let carried = self.carried.iter();
        failed.extend(carried.map(|(&seq, event)| failed_event(seq, event.due_ms, &event.history)));
        for event in failed.iter_mut().skip(MAX_TOLD_EVENTS) {
            event.history.clear();
        }
        GroupRecord {
            version: RECORD_VERSION,
            created_ms: self.created_ms,
            cursor: cursor.unwrap_or(self.head),
            settled: settled.iter().collect(),
            skipped: self.skipped,
            settings: self.rules.settings.clone(),
            failed,
            leases: leases.told(|member| {
                let holder = self.holders.get(&member);
                holder.map(|holder| holder.name.clone()).unwrap_or_default()
            }),
        }
    }

    /// The group as it was stored. It reads on from the cursor, past what is settled; deliveries that were under way
    /// count, and their events are free at once.
    pub(crate) fn from_record(record: GroupRecord, rules: Rules, now_ms: u64) -> Self {
        let rules = Rules {
            settings: record.settings,
            ..rules
        };
        let mut state = Self::new(rules, record.cursor, now_ms);
        state.created_ms = record.created_ms;
        state.skipped = record.skipped;
        state.settled_ahead = Ranges::new(record.settled);
        for failed in record.failed {
            let history = History {
                attempts: failed.attempts,
                told: failed.history,
            };
            let due_ms = failed.due_ms;
            state
                .carried
                .insert(failed.seq, Carried { history, due_ms });
        }
        for lease in record.leases {
            let run = Ranges::new(lease.seqs);
            let seqs = run.iter().flat_map(|(first, last)| first..=last);
            // No more leases were open than the widest window has room for, whatever the record says.
            for seq in seqs.take(MAX_GROUP_WINDOW) {
                let attempt = Attempt {
                    member: lease.member.clone(),
                    start: lease.started_ms,
                    end: now_ms,
                    reason: RESTARTED.to_owned(),
                };
                let carried = state.carried.entry(seq).or_default();
                carried.history.note(lease.attempt, attempt);
                state.changes += 1;
            }
        }
        state.passed(0);
        state
    }
}

fn failed_event(seq: u64, due_ms: u64, history: &History) -> FailedEvent {
    FailedEvent {
        seq,
        attempts: history.attempts,
        due_ms,
        history: history.told.clone(),
    }
}

/// The member that was given events, when that was, and which attempt of the events it is.
type Giving = (MemberId, u64, u32);

/// Open leases. Most were given together with the one before, so that is where to look first.
#[derive(Default)]
struct LeaseRuns {
    runs: BTreeMap<Giving, Ranges>,
    last: Option<(Giving, Ranges)>,
}

impl LeaseRuns {
    fn add(&mut self, giving: Giving, seq: u64) {
        match &mut self.last {
            Some((last, seqs)) if *last == giving => seqs.add(seq, seq),
            _ => {
                let mut seqs = self.runs.remove(&giving).unwrap_or_default();
                seqs.add(seq, seq);
                self.runs.extend(self.last.replace((giving, seqs)));
            }
        }
    }

    fn told(mut self, name: impl Fn(MemberId) -> Arc<str>) -> Vec<LeaseRun> {
        self.runs.extend(self.last);
        let runs = self.runs.into_iter();
        let told = runs.map(|((member, started_ms, attempt), seqs)| LeaseRun {
            member: name(member),
            started_ms,
            attempt,
            seqs: seqs.iter().collect(),
        });
        told.collect()
    }
}
