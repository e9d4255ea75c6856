//! Taking in what was read from the log: new events in their order, and events whose bytes are needed again.

use super::slot::{Slot, Stage};
use super::{GroupState, MemberId, RestoredEvent};
use crate::group::lanes::Lane;
use prombus_interface::Ordering;
use prombus_store::{GeneratedId, StoredEvent};

impl GroupState {
    /// The next position to read.
    pub(crate) fn read_from(&self) -> u64 {
        self.head + 1
    }

    /// How many more unsettled events it may keep track of.
    pub(crate) fn window_left(&self) -> usize {
        self.rules.window.saturating_sub(self.unsettled.len())
    }

    /// How many events are ready to be leased, or a few less.
    pub(crate) fn ready(&self) -> usize {
        self.queues.ready()
    }

    /// How many of them a member may be given.
    pub(crate) fn ready_for(&self, member: MemberId) -> usize {
        if self.partitions.is_none() {
            return self.ready();
        }
        let queues = self.ready_queues_of(member);
        queues.map(|queue| self.queues.ready_in(queue)).sum()
    }

    /// How many of the next `count` ready events of a member have up to `bytes` together, at least one.
    pub(crate) fn ready_within(&self, member: MemberId, count: usize, bytes: usize) -> usize {
        let mut left = Some(bytes);
        let queues = self.ready_queues_of(member);
        let next = queues.flat_map(|queue| self.queues.iter(queue)).take(count);
        next.take_while(|event| {
            let has_room = left.is_some_and(|left| left > 0);
            left = left.map(|left| left.saturating_sub(event.stored_bytes()));
            has_room
        })
        .count()
    }

    /// Lets go of the bytes of everything that is ready; they are read again.
    pub(crate) fn shed_ready(&mut self) {
        for event in self.queues.take_ready() {
            let seq = event.seq();
            // One that was settled meanwhile, or leased and brought back, is not ready.
            if self
                .unsettled
                .get(seq)
                .is_some_and(|slot| slot.stage == Stage::Ready)
            {
                self.set_missing(seq);
            }
        }
    }

    /// Takes in the next event of the log. One that is not wanted is settled unseen.
    pub(crate) fn offer(&mut self, event: StoredEvent, wanted: bool, now_ms: u64) {
        let seq = event.seq();
        let lane = self.lane_of(&event);
        let is_settled = self.settled_ahead.contains(seq);
        if seq <= self.head {
            return;
        }
        if is_settled && !self.unload_blocked(lane, &event) {
            return self.note_settled(&event);
        }
        self.head = seq;
        let restored = self.restored.remove(&seq);
        if !wanted {
            self.end_adopted(seq);
            self.counts.filtered += 1;
            self.changes += 1;
            return;
        }
        // An adopted lease goes on whether or not its member has room.
        let is_parked = !self.adopted.contains_key(&seq) && self.park(&event);
        if is_parked || lane.is_some_and(|lane| self.block(lane, &event)) {
            self.end_adopted(seq);
            if let Some(restored) = restored {
                self.restored_blocked.insert(seq, restored);
            }
            return;
        }
        self.admit(event, restored, now_ms);
    }

    /// Takes an event that nothing keeps outside into the window.
    pub(super) fn admit(
        &mut self,
        event: StoredEvent,
        restored: Option<RestoredEvent>,
        now_ms: u64,
    ) {
        let seq = event.seq();
        let lane = self.lane_of(&event);
        let client_id = self.record_client_id(&event);
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
            lane,
            client_id,
            history,
        };
        self.unsettled.insert(seq, slot);
        if lane.is_none_or(|lane| self.lanes.enter(lane, seq)) && self.schedule(seq, now_ms) {
            self.set_stage(seq, Stage::Ready);
            self.queues.push_fresh(queue, event);
        }
        self.lease_offered(seq);
    }

    /// Notes that the log keeps nothing before `first_seq`: what was not read by now never will be.
    pub(crate) fn trimmed(&mut self, first_seq: u64) {
        let read_from = self.read_from();
        if first_seq <= read_from {
            return;
        }
        let settled = self.settled_ahead.count_within(read_from, first_seq - 1);
        let lost = first_seq - read_from - settled;
        self.skipped += lost;
        self.counts.skipped += lost;
        self.passed(first_seq);
    }

    /// Notes that everything before `next_seq` has been offered or is gone.
    pub(crate) fn passed(&mut self, next_seq: u64) {
        if next_seq > self.read_from() {
            self.head = next_seq - 1;
            self.changes += 1;
        }
        self.blocked_keys.passed(self.head);
        // Positions of parked keys look settled and have to be read, and so have settled ones of parked partitions.
        let has_parked = self.partitions.is_some() && !self.blocked_keys.is_empty();
        if !self.blocked_keys.has_loaded() && !has_parked {
            self.head = self.settled_ahead.absorb(self.head);
        }
        while let Some(entry) = self.restored.first_entry()
            && *entry.key() <= self.head
        {
            entry.remove();
        }
        while let Some((&seq, _)) = self.adopted.first_key_value()
            && seq <= self.head
        {
            self.end_adopted(seq);
        }
    }

    /// Up to `count` positions whose bytes are needed again, as the first and the last of them, no further than
    /// `span` apart. Of a partitioned group only those whose holder `has_room`.
    pub(crate) fn missing(
        &self,
        span: u64,
        count: usize,
        has_room: impl Fn(MemberId) -> bool,
    ) -> Option<(u64, u64)> {
        self.queues.missing(span, count, |queue| {
            self.partitions.is_none() || self.holder_of_queue(queue).is_some_and(&has_room)
        })
    }

    pub(crate) fn has_missing(&self) -> bool {
        self.queues.has_missing()
    }

    /// An event is due, and its bytes have to be read.
    pub(super) fn set_missing(&mut self, seq: u64) {
        if let Some(slot) = self.unsettled.get_mut(seq) {
            slot.stage = Stage::Missing;
            self.queues.add_missing(slot.queue, seq);
        }
    }

    /// Gives up on all bytes that are needed again: the topic is gone.
    pub(crate) fn drop_missing(&mut self, now_ms: u64) {
        let missing: Vec<u64> = self.queues.missing_within(0..u64::MAX).collect();
        for seq in missing {
            self.gone(seq, now_ms);
        }
        self.blocked_keys.clear();
        self.refills.clear();
        self.restored_blocked.clear();
    }

    /// Takes in what was read again: every missing position from `from_seq` to before `next_seq` that is not among
    /// `events` is gone.
    pub(crate) fn supply(
        &mut self,
        from_seq: u64,
        events: Vec<StoredEvent>,
        next_seq: u64,
        now_ms: u64,
    ) {
        for event in events {
            let seq = event.seq();
            if let Some(slot) = self.unsettled.get_mut(seq)
                && self.queues.remove_missing(slot.queue, seq)
            {
                slot.stage = Stage::Ready;
                self.queues.push_returning(slot.queue, event);
            }
        }
        let gone = self.queues.missing_within(from_seq..next_seq.max(from_seq));
        let gone: Vec<u64> = gone.collect();
        for seq in gone {
            self.gone(seq, now_ms);
        }
    }

    /// Settles an event that the log no longer holds.
    pub(crate) fn gone(&mut self, seq: u64, now_ms: u64) {
        if self.settle(seq, now_ms) {
            self.skipped += 1;
            self.counts.skipped += 1;
        }
    }

    /// Sends an event that nothing holds back on its way: to wait, to die or to be read (`true`).
    pub(super) fn schedule(&mut self, seq: u64, now_ms: u64) -> bool {
        let Some(slot) = self.unsettled.get(seq) else {
            return false;
        };
        let due_ms = match slot.stage {
            Stage::BlockedByKey { due_ms } => due_ms,
            _ => 0,
        };
        if self.is_exhausted(slot) {
            self.dead_letter(seq, now_ms);
            false
        } else if due_ms > now_ms {
            self.wait(seq, due_ms);
            false
        } else {
            self.set_stage(seq, Stage::Missing);
            true
        }
    }

    pub(super) fn wait(&mut self, seq: u64, due_ms: u64) {
        self.set_stage(seq, Stage::Waiting { due_ms });
        self.timers.add(due_ms, seq);
        self.timed += 1;
    }

    pub(super) fn set_stage(&mut self, seq: u64, stage: Stage) {
        if let Some(slot) = self.unsettled.get_mut(seq) {
            slot.stage = stage;
        }
    }

    /// The id where the publisher chose it; else it shows what the ids of this topic have in common.
    pub(super) fn record_client_id(&mut self, event: &StoredEvent) -> Option<std::sync::Arc<str>> {
        if event.has_client_id() {
            return Some((*event.id()).into());
        }
        if self.id_tag.is_none() {
            self.id_tag = GeneratedId::parse(&event.id()).map(|made| made.tag);
        }
        None
    }

    pub(super) fn lane_of(&self, event: &StoredEvent) -> Option<Lane> {
        match self.rules.settings.ordering {
            Ordering::None => None,
            Ordering::Key => event.key().map(|key| Lane::of(&key)),
        }
    }
}
