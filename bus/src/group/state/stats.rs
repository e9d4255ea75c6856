//! Statistics of a group, and the position of an id.

use super::slot::{Slot, Stage};
use super::{GroupState, MemberId};
use prombus_store::GeneratedId;
use std::collections::BTreeMap;

/// How many unsettled events are in which stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stages {
    /// Ready, or due and about to be read.
    pub(crate) ready: usize,
    pub(crate) leased: usize,
    pub(crate) waiting: usize,
    /// The earliest moment one of them is due.
    pub(crate) next_due_ms: Option<u64>,
    /// Behind an event of the same key.
    pub(crate) blocked_by_key: usize,
    pub(crate) dead_lettering: usize,
    /// When the oldest open lease began.
    pub(crate) oldest_lease_ms: Option<u64>,
}

/// A key lane in which events wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockedLane {
    /// The event they wait for.
    pub(crate) by_seq: u64,
    /// How many wait.
    pub(crate) waiting: usize,
    /// When the blocking event is due, where it waits for its retry itself.
    pub(crate) due_ms: Option<u64>,
}

impl GroupState {
    /// Counts the unsettled events by stage.
    pub(crate) fn stages(&self) -> Stages {
        let parked = self.blocked_keys.partition_events() as usize;
        let mut stages = Stages {
            ready: parked,
            blocked_by_key: (self.blocked_keys.events() as usize).saturating_sub(parked),
            ..Stages::default()
        };
        let earlier =
            |known: Option<u64>, moment| Some(known.map_or(moment, |known: u64| known.min(moment)));
        for (_, slot) in self.unsettled.iter() {
            match slot.stage {
                Stage::Ready | Stage::Missing => stages.ready += 1,
                Stage::Leased(lease) | Stage::Pinned(lease) => {
                    stages.leased += 1;
                    stages.oldest_lease_ms = earlier(stages.oldest_lease_ms, lease.started_ms);
                }
                // A late member is still working on it.
                Stage::PinnedLate { .. } => stages.leased += 1,
                Stage::Waiting { due_ms } => {
                    stages.waiting += 1;
                    stages.next_due_ms = earlier(stages.next_due_ms, due_ms);
                }
                Stage::BlockedByKey { .. } => stages.blocked_by_key += 1,
                Stage::DeadLettering => stages.dead_lettering += 1,
            }
        }
        stages
    }

    /// When the oldest open lease of each member began.
    pub(crate) fn oldest_leases(&self) -> BTreeMap<MemberId, u64> {
        let mut oldest = BTreeMap::new();
        for (_, slot) in self.unsettled.iter() {
            if let Stage::Leased(lease) | Stage::Pinned(lease) = slot.stage {
                let started_ms = oldest.entry(lease.member).or_insert(lease.started_ms);
                *started_ms = lease.started_ms.min(*started_ms);
            }
        }
        oldest
    }

    /// Up to `limit` lanes in which events wait, by position of what blocks them.
    pub(crate) fn blocked_lanes(&self, limit: usize) -> Vec<BlockedLane> {
        let under_way = self.unsettled.iter().filter_map(|(seq, slot)| {
            let lane = slot.lane?;
            let waiting = self.lanes.waiting(lane) + self.blocked_keys.waiting(lane) as usize;
            let due_ms = match slot.stage {
                Stage::BlockedByKey { .. } => return None,
                Stage::Waiting { due_ms } => Some(due_ms),
                _ => None,
            };
            (waiting > 0).then_some(BlockedLane {
                by_seq: seq,
                waiting,
                due_ms,
            })
        });
        under_way.take(limit).collect()
    }

    /// How many positions above the cursor are settled.
    pub(crate) fn settled_after(&self, cursor: u64) -> u64 {
        let read = self.head.saturating_sub(cursor);
        let waiting = self.unsettled.len() as u64 + self.blocked_keys.events();
        read.saturating_sub(waiting) + self.settled_ahead.count_within(0, u64::MAX)
    }

    /// How many positions from `first_seq`, the oldest that is kept, to `tail` are not settled.
    pub(crate) fn lag(&self, first_seq: u64, tail: u64) -> u64 {
        let read_from = self.read_from().max(first_seq);
        let unread = (tail + 1).saturating_sub(read_from);
        let settled_ahead = self.settled_ahead.count_within(read_from, tail);
        let unsettled = match self.unsettled.first() {
            Some(first) if first < first_seq => {
                let kept = self.unsettled.iter().filter(|&(seq, _)| seq >= first_seq);
                kept.count()
            }
            _ => self.unsettled.len(),
        };
        let blocked = if tail < first_seq {
            0
        } else {
            self.blocked_keys.events()
        };
        unsettled as u64 + blocked + unread - settled_ahead
    }

    /// How many positions from `first_seq` to `tail` a seek to `cursor` would deliver again, and how many that are
    /// not settled it would pass over.
    pub(crate) fn seek_effect(&self, cursor: u64, first_seq: u64, tail: u64) -> (u64, u64) {
        let redelivered = self.count_settled(cursor.max(first_seq.saturating_sub(1)), tail);
        let from = self.cursor().max(first_seq.saturating_sub(1));
        let to = cursor.min(tail);
        let skipped = to
            .saturating_sub(from)
            .saturating_sub(self.count_settled(from, to));
        (redelivered, skipped)
    }

    /// Whether no lease is open and nothing waits for a moment.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.timed == 0 && self.counts.in_flight == 0 && self.dead_lettering.is_empty()
    }

    /// Whether everything that was read is settled, and what was carried over from before was read.
    pub(crate) fn is_settled(&self) -> bool {
        self.unsettled.first().is_none()
            && self.blocked_keys.events() == 0
            && self.restored.is_empty()
            && self.settled_ahead.len() == 0
    }

    /// Whether nothing of what is left was delivered before.
    pub(crate) fn is_undelivered(&self) -> bool {
        let is_new = |slot: &Slot| {
            matches!(slot.stage, Stage::Ready | Stage::Missing) && slot.history.is_none()
        };
        self.restored.is_empty()
            && self.restored_blocked.is_empty()
            && self.unsettled.iter().all(|(_, slot)| is_new(slot))
    }

    /// How many events a member holds.
    pub(crate) fn held_by(&self, member: MemberId) -> usize {
        self.member_states
            .get(&member)
            .map_or(0, |member_state| member_state.leased)
    }

    /// Whether events wait outside the window.
    pub(crate) fn has_blocked_events(&self) -> bool {
        self.blocked_keys.events() > 0
    }

    pub(crate) fn created_ms(&self) -> u64 {
        self.created_ms
    }

    pub(crate) fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The position of an event by its id, where the group can tell without asking the store.
    pub(crate) fn seq_of(&self, id: &str) -> Option<u64> {
        if let Some(&seq) = self.client_ids.get(id) {
            return Some(seq);
        }
        let made = GeneratedId::parse(id)?;
        let own = |seq| {
            self.unsettled
                .get(seq)
                .is_some_and(|slot| slot.client_id.is_some())
        };
        let known = Some(made.tag) == self.id_tag && made.seq <= self.head && !own(made.seq);
        known.then_some(made.seq)
    }

    /// How many positions in `(after, to]` are settled.
    fn count_settled(&self, after: u64, to: u64) -> u64 {
        if to <= after {
            return 0;
        }
        let read = to.min(self.head).saturating_sub(after);
        let unsettled = self
            .unsettled
            .iter()
            .filter(|&(seq, _)| seq > after && seq <= to)
            .count();
        let open = unsettled as u64 + self.blocked_keys.events();
        read.saturating_sub(open)
            + self
                .settled_ahead
                .count_within(after.max(self.head) + 1, to)
    }
}
