//! BlockedKeys: events behind a blocked key leave the window once it is half full, and come back when their key is free.

use super::GroupState;
use super::slot::{Slot, Stage};
use crate::group::blocked_keys::BlockedBy;
use crate::group::lanes::Lane;
use prombus_store::StoredEvent;

/// How many events of a key come back at a time.
const REFILL_EVENTS: u64 = 64;

impl GroupState {
    /// Parks an event whose key is blocked, where that is due.
    pub(super) fn block(&mut self, lane: Lane, event: &StoredEvent) -> bool {
        let is_half_full = self.unsettled.len() >= self.rules.window / 2;
        let may_begin = is_half_full && self.lanes.is_busy(lane);
        if !may_begin && !self.blocked_keys.is_blocked(lane) {
            return false;
        }
        let key = event.key().unwrap_or_default();
        let by = BlockedBy::Key(&key);
        let is_blocked = self.blocked_keys.block(lane, by, event.seq(), may_begin);
        self.changes += u64::from(is_blocked);
        is_blocked
    }

    /// The event of a lane that was under way is done: the next one goes, in the window or out of it.
    pub(super) fn free_lane(&mut self, lane: Lane, now_ms: u64) {
        if let Some(next) = self.lanes.advance(lane) {
            if self.schedule(next, now_ms) {
                self.set_missing(next);
            }
        } else if self.blocked_keys.is_blocked(lane) {
            self.refills.insert(lane);
        }
    }

    /// A key that is free and has parked events, and from where on they are to be read.
    pub(crate) fn next_refill(&self) -> Option<(Lane, u64)> {
        if self.window_left() == 0 {
            return None;
        }
        let &lane = self.refills.first()?;
        Some((lane, self.blocked_keys.first_seq(lane)?))
    }

    /// Takes events of a free key out of what was read for it, up to before `next_seq`.
    pub(crate) fn refill(
        &mut self,
        lane: Lane,
        events: Vec<StoredEvent>,
        next_seq: u64,
        is_wanted: impl Fn(&StoredEvent) -> bool,
        now_ms: u64,
    ) {
        let Some((from_seq, to_seq)) = self
            .blocked_keys
            .first_seq(lane)
            .zip(self.blocked_keys.to_seq(lane))
        else {
            self.refills.remove(&lane);
            return;
        };
        let (mut taken, mut next_seq) = (0, next_seq.max(from_seq));
        for event in events {
            let seq = event.seq();
            let is_of_key =
                (from_seq..=to_seq).contains(&seq) && self.lane_of(&event) == Some(lane);
            if !is_of_key || !is_wanted(&event) {
                continue;
            }
            if taken >= REFILL_EVENTS.min(self.window_left() as u64 + taken) {
                next_seq = seq;
                break;
            }
            taken += 1;
            self.take_blocked(lane, event, now_ms);
        }
        if taken > 0 || next_seq > to_seq {
            self.refills.remove(&lane);
        }
        let gone = self.blocked_keys.taken(lane, next_seq, taken);
        self.skipped += gone;
        self.counts.skipped += gone;
        self.changes += 1;
    }

    fn take_blocked(&mut self, lane: Lane, event: StoredEvent, now_ms: u64) {
        let seq = event.seq();
        let restored = self.restored_blocked.remove(&seq);
        let (history, due_ms) = match restored {
            Some(restored) => (Some(Box::new(restored.history)), restored.due_ms),
            None => (None, 0),
        };
        let due_ms = self.held_until_ms(seq).max(due_ms);
        let (partition, queue) = self.place_of(&event);
        let slot = Slot {
            stage: Stage::BlockedByKey { due_ms },
            queue,
            partition,
            lane: Some(lane),
            client_id: self.record_client_id(&event),
            history,
        };
        self.unsettled.insert(seq, slot);
        if self.lanes.enter(lane, seq) && self.schedule(seq, now_ms) {
            self.set_stage(seq, Stage::Ready);
            self.queues.push_returning(queue, event);
        }
    }
}
