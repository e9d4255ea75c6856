//! Parked partitions: once the window is half full, new events of a partition whose member does not keep up are kept
//! outside of it, and come back when that member has room and nothing of the partition waits. So a member without room does
//! not stop the others.
//!
//! Only events that were not read before are parked, so what is parked of a partition is behind everything of it in the
//! window, and its order stays.

use super::{GroupState, MemberId};
use crate::group::blocked_keys::{BlockedBy, ParkedPartition};
use crate::group::lanes::Lane;
use crate::partition::partition_of_event;
use prombus_store::StoredEvent;
use std::collections::{BTreeMap, BTreeSet};

/// How many events of a partition come back with one read.
const REFILL_EVENTS: u64 = 256;
/// A partition is parked where it has more than its share of a quarter of the window waiting.
const WINDOW_SHARE: usize = 4;

impl GroupState {
    /// Parks an event, where its partition is parked or should be.
    pub(super) fn park(&mut self, event: &StoredEvent) -> bool {
        let Some(of) = self.partition_count() else {
            return false;
        };
        let is_half_full = self.unsettled.len() >= self.rules.window / 2;
        if !is_half_full && self.blocked_keys.is_empty() {
            return false;
        }
        let (_, queue) = self.place_of(event);
        let number = u32::from(queue);
        let lane = Lane::of_partition(number, of);
        let share = self.rules.window / WINDOW_SHARE / of as usize;
        let may_begin = is_half_full && self.queues.waiting_in(queue) > share;
        if !may_begin && !self.blocked_keys.is_blocked(lane) {
            return false;
        }
        let by = BlockedBy::Partition { number, of };
        let is_parked = self.blocked_keys.block(lane, by, event.seq(), may_begin);
        self.changes += u64::from(is_parked);
        is_parked
    }

    /// Takes note that an event was settled before the group was loaded, where its partition is parked by now.
    pub(super) fn note_settled(&mut self, event: &StoredEvent) {
        if let Some(of) = self.partition_count()
            && !self.blocked_keys.is_empty()
        {
            let (_, queue) = self.place_of(event);
            let lane = Lane::of_partition(u32::from(queue), of);
            self.blocked_keys.note_settled(lane, event.seq());
        }
    }

    /// Whether the record that the group was loaded from has this event parked, with its key or its partition.
    pub(super) fn unload_blocked(&mut self, lane: Option<Lane>, event: &StoredEvent) -> bool {
        let seq = event.seq();
        if self.blocked_keys.unload(lane, seq) {
            return true;
        }
        let counts = self.blocked_keys.loaded_partition_counts();
        counts.into_iter().any(|of| {
            let lane = Lane::of_partition(partition_of_event(event, of) % of, of);
            self.blocked_keys.unload(Some(lane), seq)
        })
    }

    /// The parked partitions whose events can come back: nothing of them waits, and their member `has_room`.
    pub(crate) fn partition_refills(
        &self,
        has_room: impl Fn(MemberId) -> bool,
    ) -> Vec<ParkedPartition> {
        if self.blocked_keys.is_empty() || self.window_left() == 0 {
            return Vec::new();
        }
        let count = self.partition_count();
        let is_open = |parked: &ParkedPartition| {
            // Where the number of partitions has changed since, its events are spread over all.
            count != Some(parked.of) || {
                let queue = parked.number as u16;
                self.queues.waiting_in(queue) == 0
                    && self.holder_of_queue(queue).is_some_and(&has_room)
            }
        };
        self.blocked_keys.partitions().filter(is_open).collect()
    }

    /// Takes events of these partitions out of what was read from `from_seq` to before `next_seq`.
    pub(crate) fn refill_partitions(
        &mut self,
        refills: &[ParkedPartition],
        (from_seq, next_seq): (u64, u64),
        events: Vec<StoredEvent>,
        is_wanted: impl Fn(&StoredEvent) -> bool,
        now_ms: u64,
    ) {
        // What of a partition is before the page has to be read first.
        let is_covered = |one: &&ParkedPartition| (from_seq..=next_seq).contains(&one.from_seq);
        let refills = refills.iter().filter(is_covered);
        let mut refills: BTreeMap<(u32, u32), Refill> = refills.map(Refill::named).collect();
        let counts: BTreeSet<u32> = refills.keys().map(|(of, _)| *of).collect();
        for event in events {
            let seq = event.seq();
            let names = counts.iter();
            let mut names = names.map(|&of| (of, partition_of_event(&event, of) % of));
            let name = names.find(|name| refills.get(name).is_some_and(|one| one.takes(seq)));
            let Some(refill) = name.and_then(|name| refills.get_mut(&name)) else {
                continue;
            };
            let is_settled = self.blocked_keys.is_settled(refill.parked.lane(), seq);
            if is_settled || !is_wanted(&event) {
                continue;
            }
            if refill.taken >= REFILL_EVENTS || self.window_left() == 0 {
                refill.next_seq = Some(seq);
                continue;
            }
            refill.taken += 1;
            self.take_parked(event, now_ms);
        }
        for refill in refills.into_values() {
            let parked = refill.parked;
            let next_seq = refill.next_seq.unwrap_or(next_seq.max(parked.from_seq));
            let gone = self
                .blocked_keys
                .taken(parked.lane(), next_seq, refill.taken);
            self.skipped += gone;
            self.counts.skipped += gone;
        }
        self.changes += 1;
    }

    fn take_parked(&mut self, event: StoredEvent, now_ms: u64) {
        let lane = self.lane_of(&event);
        if lane.is_some_and(|lane| self.block(lane, &event)) {
            return;
        }
        let restored = self.restored_blocked.remove(&event.seq());
        self.admit(event, restored, now_ms);
    }
}

/// A partition whose events come back.
struct Refill {
    parked: ParkedPartition,
    taken: u64,
    /// Where the rest begins, where there is not room for all.
    next_seq: Option<u64>,
}

impl Refill {
    fn named(parked: &ParkedPartition) -> ((u32, u32), Self) {
        let refill = Self {
            parked: *parked,
            taken: 0,
            next_seq: None,
        };
        ((parked.of, parked.number), refill)
    }

    fn takes(&self, seq: u64) -> bool {
        self.next_seq.is_none() && (self.parked.from_seq..=self.parked.to_seq).contains(&seq)
    }
}
