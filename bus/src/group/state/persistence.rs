//! The group as it is stored, and back.

use super::settlement::MAX_RETRY_DELAY_MS;
use super::slot::Stage;
use super::{GroupState, MemberId, RestoredEvent, Rules};
use crate::group::history::{Attempt, History};
use crate::group::ranges::Ranges;
use crate::group::record::{BlockedKeyRecord, FailedEvent, GroupRecord, LeaseRun, RECORD_VERSION};
use crate::options::MAX_GROUP_WINDOW;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is noted of a delivery that was under way when its group stopped being served.
const RESTARTED: &str = "the group was restarted while this delivery was under way";

/// Of how many failed events the record tells the history; of the rest only how often they failed. When everything
/// fails, the record is written often and must not grow with what people say about it.
const MAX_RECORDED_HISTORIES: usize = 1_000;

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
        let blocked = self.blocked_keys.first();
        let mut settling = settling.into_iter().peekable();
        for (seq, slot) in self.unsettled.iter() {
            while settling.next_if(|&before| before < seq).is_some() {}
            if settling.peek() == Some(&seq) {
                continue;
            }
            match cursor {
                None => {
                    let first = blocked.map_or(seq, |blocked| blocked.min(seq));
                    cursor = Some(first - 1);
                    if first < seq {
                        settled.add(first, seq - 1);
                    }
                }
                Some(_) if next < seq => settled.add(next, seq - 1),
                Some(_) => {}
            }
            next = seq + 1;
            let due_ms = match slot.stage {
                Stage::Waiting { due_ms }
                | Stage::BlockedByKey { due_ms }
                | Stage::PinnedLate { due_ms } => due_ms,
                _ => 0,
            };
            if let Some(history) = &slot.history {
                failed.push(self.failed_event(seq, due_ms, history));
            }
            if let Stage::Leased(lease) | Stage::Pinned(lease) = slot.stage {
                let started_ms = self.wall_ms(lease.started_ms);
                leases.add((lease.member, started_ms, slot.attempt()), seq);
            }
        }
        if let (None, Some(blocked)) = (cursor, blocked) {
            cursor = Some(blocked - 1);
            next = blocked;
        }
        if cursor.is_some() && next <= self.head {
            settled.add(next, self.head);
        }
        for (first, last) in self.settled_ahead.iter() {
            let first = first.max(self.head + 1);
            if first <= last {
                settled.add(first, last);
            }
        }
        let restored = self.restored_blocked.iter().chain(&self.restored);
        failed.extend(
            restored.map(|(&seq, event)| self.failed_event(seq, event.due_ms, &event.history)),
        );
        for event in failed.iter_mut().skip(MAX_RECORDED_HISTORIES) {
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
            leases: leases.into_records(|member| self.member_name(member)),
            written_ms: 0,
            incarnation: None,
            blocked: self.blocked_keys.to_record(self.head),
            paused_since_ms: self.paused_since_ms,
            undo: self.undo_record(cursor.unwrap_or(self.head)),
            owner: None,
        }
    }

    fn member_name(&self, member: MemberId) -> Arc<str> {
        let member_state = self.member_states.get(&member);
        member_state.map_or_else(Arc::default, |member_state| member_state.name.clone())
    }

    fn failed_event(&self, seq: u64, due_ms: u64, history: &History) -> FailedEvent {
        let due_ms = match due_ms {
            0 => 0,
            _ => self.wall_ms(due_ms),
        };
        FailedEvent {
            seq,
            attempts: history.attempts,
            lost: history.lost,
            is_last_lost: history.is_last_lost,
            due_ms,
            history: history.recent.clone(),
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
        state.paused_since_ms = record.paused_since_ms;
        state.undo = record.undo;
        let progress = Progress {
            settled: Ranges::new(record.settled),
            failed: record.failed,
            leases: record.leases,
            blocked: record.blocked,
        };
        state.restore(progress, record.written_ms, RESTARTED, now_ms);
        state
    }

    /// Takes in what happened to events above the cursor, as it was at `written_ms`. Deliveries that were under way have
    /// ended for this reason.
    pub(super) fn restore(
        &mut self,
        progress: Progress,
        written_ms: u64,
        reason: &str,
        now_ms: u64,
    ) {
        self.settled_ahead = progress.settled;
        self.blocked_keys.load(&progress.blocked);
        for failed in progress.failed {
            let history = History {
                attempts: failed.attempts,
                lost: failed.lost,
                is_last_lost: failed.is_last_lost,
                recent: failed.history,
            };
            let mut wait_ms = failed.due_ms.saturating_sub(self.wall_ms(now_ms));
            if written_ms > 0 {
                wait_ms = wait_ms.min(failed.due_ms.saturating_sub(written_ms));
            }
            let due_ms = match wait_ms {
                0 => 0,
                // A wall clock that stepped back meanwhile makes no wait longer than any can be.
                _ => now_ms.saturating_add(wait_ms.min(MAX_RETRY_DELAY_MS)),
            };
            self.restored
                .insert(failed.seq, RestoredEvent { history, due_ms });
        }
        for lease in progress.leases {
            let run = Ranges::new(lease.seqs);
            let seqs = run.iter().flat_map(|(first, last)| first..=last);
            // No more leases were open than the widest window has room for, whatever the record says.
            for seq in seqs.take(MAX_GROUP_WINDOW) {
                let attempt = Attempt {
                    member: lease.member.clone(),
                    start: lease.started_ms,
                    end: self.wall_ms(now_ms),
                    reason: reason.to_owned(),
                };
                let restored = self.restored.entry(seq).or_default();
                restored.history.record_lost(lease.attempt, attempt);
                self.changes += 1;
            }
        }
        self.passed(0);
    }
}

/// What happened to events above the cursor.
pub(super) struct Progress {
    pub(super) settled: Ranges,
    pub(super) failed: Vec<FailedEvent>,
    pub(super) leases: Vec<LeaseRun>,
    pub(super) blocked: Vec<BlockedKeyRecord>,
}

/// The member that was given events, when that was, and which attempt of the events it is.
type LeaseBatch = (MemberId, u64, u32);

/// Open leases. Most were given together with the one before, so that is where to look first.
#[derive(Default)]
struct LeaseRuns {
    runs: BTreeMap<LeaseBatch, Ranges>,
    last: Option<(LeaseBatch, Ranges)>,
}

impl LeaseRuns {
    fn add(&mut self, lease_batch: LeaseBatch, seq: u64) {
        match &mut self.last {
            Some((last, seqs)) if *last == lease_batch => seqs.add(seq, seq),
            _ => {
                let mut seqs = self.runs.remove(&lease_batch).unwrap_or_default();
                seqs.add(seq, seq);
                self.runs.extend(self.last.replace((lease_batch, seqs)));
            }
        }
    }

    fn into_records(mut self, name: impl Fn(MemberId) -> Arc<str>) -> Vec<LeaseRun> {
        self.runs.extend(self.last);
        let runs = self.runs.into_iter();
        let records = runs.map(|((member, started_ms, attempt), seqs)| LeaseRun {
            member: name(member),
            started_ms,
            attempt,
            seqs: seqs.iter().collect(),
        });
        records.collect()
    }
}
