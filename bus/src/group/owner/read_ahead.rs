//! Reading ahead: what is new, and what failed and is due again, never more events or bytes than members can take now.

use super::{Member, Owner, Stop};
use crate::dead_letters::is_for_another_group;
use crate::filter::Filter;
use crate::group::blocked_keys::ParkedPartition;
use crate::group::lanes::Lane;
use crate::group::state::MemberId;
use crate::group::subscriber::Ended;
use prombus_store::{Answer, Page, ReadError, ReadFrom, ReadLimit, StoredEvent};

/// The most events that one read asks for.
const READ_EVENTS: usize = 4_096;
/// About how many bytes one read brings.
const READ_BYTES: usize = 1 << 20;
/// How large events are taken to be before any was read.
pub(super) const FIRST_EVENT_BYTES: usize = 1 << 10;
/// How many events are read at least where a filter may drop most of them.
const FILTERED_READ_EVENTS: usize = 256;
/// How far apart events that are due again may be to be read together.
const AGAIN_SPAN: u64 = 256;
/// How many events of a partitioned group may be ready for members without room while it reads on for others; beyond it
/// they are read again.
const MAX_READY_AHEAD: usize = 8_192;
/// How many events a partitioned group reads at least: those who have room get only some of them.
const PARTITIONED_READ_EVENTS: usize = 512;
/// How long reading rests after a failure.
const READ_BACKOFF_MS: u64 = 1_000;

/// A read that is under way.
pub(super) struct PendingRead {
    answer: Answer<Page, ReadError>,
    from_seq: u64,
    purpose: Purpose,
}

/// What a read is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// What was not read before.
    New,
    /// Events that are due again.
    Again,
    /// Events of a key that is free again.
    Refill(Lane),
    /// Events of parked partitions whose members have room again.
    RefillPartitions,
}

/// What a read brought.
pub(super) struct ReadDone {
    page: Result<Page, ReadError>,
    from_seq: u64,
    purpose: Purpose,
}

/// Waits for the read that is under way, for ever where there is none.
pub(super) async fn done(pending_read: &mut Option<PendingRead>) -> ReadDone {
    let Some(pending) = pending_read else {
        return std::future::pending().await;
    };
    let page = pending.answer.as_mut().await;
    let done = ReadDone {
        page,
        from_seq: pending.from_seq,
        purpose: pending.purpose,
    };
    *pending_read = None;
    done
}

impl Owner {
    /// Begins the next read, where members have room for what it would bring.
    pub(super) fn start_next_read(&mut self, now_ms: u64) {
        self.awaiting_tail = false;
        if self.pending_read.is_some() || now_ms < self.read_retry_at_ms {
            return;
        }
        self.read_retry_at_ms = 0;
        if self.is_paused() {
            return self.leave_credit_queues();
        }
        if let Some((lane, from_seq)) = self.state.next_refill()
            && !self.members.is_empty()
        {
            let limit = ReadLimit {
                events: READ_EVENTS,
                bytes: READ_BYTES,
            };
            return self.begin_read(from_seq, limit, Purpose::Refill(lane));
        }
        let refills = self.partition_refills();
        // In turn with what is new, so that neither waits for all of the other.
        self.has_refilled = !self.has_refilled && !refills.is_empty();
        if self.has_refilled {
            return self.begin_refill(&refills);
        }
        let tail_seq = self.tail.current();
        let is_claimed = tail_seq <= self.claimed_to();
        let tail_seq = tail_seq.min(self.claimed_to());
        let unread = (tail_seq + 1).saturating_sub(self.state.read_from());
        let new_events = (unread as usize).min(self.state.window_left());
        let has_missing = self.has_readable_missing();
        let wanted = if has_missing {
            AGAIN_SPAN as usize
        } else {
            new_events
        };
        if wanted > 0 {
            self.shed_for_others();
        }
        let is_full = self.is_full();
        let (reserved, bytes) = if is_full {
            (0, 0)
        } else {
            let wanted = wanted.min(READ_EVENTS);
            self.reserve(wanted, self.page_bytes(self.page_events(wanted)))
        };
        let again = self
            .state
            .missing(self.again_span(), reserved, |member| self.has_room(member));
        if let Some((first, last)) = again {
            let events = (last - first) as usize + 1;
            let bytes = self.read_bytes(bytes, events);
            self.begin_read(first, ReadLimit { events, bytes }, Purpose::Again);
        } else if reserved > 0 {
            let events = self.page_events(reserved).min(self.state.window_left());
            let bytes = self.read_bytes(bytes, events);
            let events = events.min(usize::try_from(unread).unwrap_or(usize::MAX));
            let limit = ReadLimit { events, bytes };
            self.begin_read(self.state.read_from(), limit, Purpose::New);
        } else if !refills.is_empty() {
            self.begin_refill(&refills);
        } else {
            // What is not claimed yet is read when the claim is written.
            self.awaiting_tail = unread == 0 && is_claimed;
            // What is blocked by its key waits for an acknowledgement and not for room.
            let has_parked =
                self.state.partition_count().is_some() && self.state.has_blocked_events();
            if is_full || wanted > 0 || self.state.has_missing() || has_parked {
                self.queue_for_credit()
            } else {
                self.leave_credit_queues()
            }
        }
    }

    /// In a partitioned group what is ready may wait for a member without room while others have nothing. Where that is
    /// too much, it is read again when its member has room.
    fn shed_for_others(&mut self) {
        let is_much = self.state.ready() >= MAX_READY_AHEAD || self.core.memory.free_bytes() == 0;
        if is_much && self.state.partition_count().is_some() && self.has_idle_member() {
            self.state.shed_ready();
            self.page = None;
        }
    }

    /// Whether no member has room for more than is ready already.
    fn is_full(&self) -> bool {
        let is_partitioned = self.state.partition_count().is_some();
        self.state.ready() > 0 && !(is_partitioned && self.has_idle_member())
    }

    /// Whether a member has room and nothing is ready for it.
    fn has_idle_member(&self) -> bool {
        let is_idle =
            |member: &Member| self.state.ready_for(member.id) == 0 && self.has_room(member.id);
        self.members.iter().any(is_idle)
    }

    /// How far apart events that are due again may be: those of a few partitions are.
    fn again_span(&self) -> u64 {
        match self.state.partition_count() {
            None => AGAIN_SPAN,
            Some(_) => READ_EVENTS as u64,
        }
    }

    /// How many bytes are read where so many are reserved. Of a partitioned group those who have room get only some of the
    /// events.
    fn read_bytes(&self, reserved: usize, events: usize) -> usize {
        match self.state.partition_count() {
            None => reserved,
            Some(_) => reserved.max(self.page_bytes(events)),
        }
    }

    /// The parked partitions whose events can come back, where there is room for what is ready.
    fn partition_refills(&self) -> Vec<ParkedPartition> {
        if self.state.ready() >= MAX_READY_AHEAD {
            return Vec::new();
        }
        self.state.partition_refills(|member| self.has_room(member))
    }

    /// Reads for parked partitions, beginning with another one each time.
    fn begin_refill(&mut self, refills: &[ParkedPartition]) {
        self.refill_turn = self.refill_turn.wrapping_add(1);
        let Some(first) = refills.get(self.refill_turn % refills.len().max(1)) else {
            return;
        };
        let limit = ReadLimit {
            events: READ_EVENTS,
            bytes: READ_BYTES,
        };
        self.has_refilled = true;
        self.begin_read(first.from_seq, limit, Purpose::RefillPartitions);
    }

    /// Whether events whose bytes have to be read again could be given to anyone.
    fn has_readable_missing(&self) -> bool {
        match self.state.partition_count() {
            None => self.state.has_missing(),
            Some(_) => {
                let first = self.state.missing(1, 1, |member| self.has_room(member));
                first.is_some()
            }
        }
    }

    /// Whether a member takes events now, or has room reserved for some.
    fn has_room(&self, member: MemberId) -> bool {
        let members = self.members.iter();
        let subscriber = members
            .filter(|one| one.id == member)
            .map(|one| &one.subscriber)
            .next();
        subscriber.is_some_and(|one| one.is_open() && one.credit.has_room(&self.inbox))
            || self.reservations.iter().any(|one| one.member == member)
    }

    /// Takes in what a read brought.
    pub(super) fn read_completed(&mut self, done: ReadDone) -> Option<Stop> {
        // The topic is the one it was before the read began, so all of the page is of it.
        if self.is_stale() {
            return Some(Stop::Abandoning(Ended::TopicDeleted));
        }
        let now_ms = self.now_ms();
        match done.page {
            Ok(page) => self.take_events(page, done.from_seq, done.purpose, now_ms),
            Err(ReadError::UnknownTopic(_)) => self.state.drop_missing(now_ms),
            Err(ReadError::Failed { .. }) => self.back_off_reading(now_ms),
        }
        None
    }

    fn take_events(&mut self, page: Page, from_seq: u64, purpose: Purpose, now_ms: u64) {
        let bytes: usize = page.events.iter().map(StoredEvent::stored_bytes).sum();
        if let Some(mean) = bytes.checked_div(page.events.len()) {
            self.event_bytes = mean;
            let ahead_bytes = self.state.ready().saturating_mul(mean);
            self.page = Some(self.core.memory.hold(bytes + ahead_bytes));
        }
        let is_wanted = |event: &StoredEvent| {
            self.filter.matches(event) && !is_for_another_group(event, &self.name.group)
        };
        match purpose {
            Purpose::New => {}
            Purpose::Again => {
                self.state
                    .supply(from_seq, page.events, page.next_seq, now_ms);
                return;
            }
            Purpose::RefillPartitions => {
                let refills = self.partition_refills();
                let range = (from_seq, page.next_seq);
                self.state
                    .refill_partitions(&refills, range, page.events, is_wanted, now_ms);
                return;
            }
            Purpose::Refill(lane) => {
                self.state
                    .refill(lane, page.events, page.next_seq, is_wanted, now_ms);
                return;
            }
        }
        if page.next_seq <= from_seq && page.first_seq <= from_seq {
            // A tail that was promised but cannot be read is asked for again, but not at once.
            return self.back_off_reading(now_ms);
        }
        self.state.trimmed(page.first_seq);
        for event in page.events {
            let wanted = is_wanted(&event);
            self.state.offer(event, wanted, now_ms);
        }
        self.state.passed(page.next_seq);
    }

    /// How many events are read where members have room for so many: a filter may drop most of them.
    fn page_events(&self, wanted: usize) -> usize {
        match self.filter {
            Filter::All if self.state.partition_count().is_some() => {
                wanted.max(PARTITIONED_READ_EVENTS)
            }
            Filter::All => wanted,
            Filter::Fields(_) | Filter::Function(_) => wanted.max(FILTERED_READ_EVENTS),
        }
    }

    /// About how many bytes so many events have, by those that were read last.
    fn page_bytes(&self, events: usize) -> usize {
        let event_bytes = self.event_bytes.saturating_add(self.event_bytes / 4);
        event_bytes.saturating_mul(events).clamp(1, READ_BYTES)
    }

    fn begin_read(&mut self, from_seq: u64, limit: ReadLimit, purpose: Purpose) {
        let from = ReadFrom::Seq(from_seq);
        let answer = self.core.store.read(&self.name.topic, from, limit);
        self.pending_read = Some(PendingRead {
            answer: self.core.shadows.clipped(&self.name, answer),
            from_seq,
            purpose,
        });
    }

    fn back_off_reading(&mut self, now_ms: u64) {
        self.read_retry_at_ms = now_ms + READ_BACKOFF_MS;
    }

    /// Where other groups hold the credit of a subscription, being in the queue is what brings the wake-up.
    fn queue_for_credit(&self) {
        // Of a partitioned group some have room and nothing to take, which is not worth waking up for.
        let is_waiting = |member: &&Member| {
            let is_partitioned = self.state.partition_count().is_some();
            member.subscriber.is_open() && !(is_partitioned && self.has_room(member.id))
        };
        for member in self.members.iter().filter(is_waiting) {
            member.subscriber.credit.enqueue(&self.inbox);
        }
    }
}
