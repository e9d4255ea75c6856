//! Delivery: leasing events to the members that have room, in turn.

use super::Owner;
use crate::group::compact::compact;
use crate::group::credit::ByteHold;
use crate::group::inbox::Inbox;
use crate::group::state::MemberId;
use crate::group::subscriber::{Chunk, Subscriber};
use std::collections::VecDeque;
use std::sync::Arc;

/// Room at a member for events that are being read. What is not used of it goes back when this is dropped.
pub(super) struct Reservation {
    pub(super) member: MemberId,
    subscriber: Arc<Subscriber>,
    inbox: Arc<Inbox>,
    count: usize,
    bytes: ByteHold,
}

/// Room that one member has now.
struct Room {
    events: usize,
    /// What is kept for it already, by its place among the reservations.
    reservation: Option<usize>,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.count > 0 {
            self.subscriber
                .credit
                .release_reserved(self.count, &self.inbox);
        }
    }
}

impl Owner {
    /// Leases ready events to members with room, in turn, until nothing is ready or no member has room.
    pub(super) fn deliver(&mut self, now_ms: u64) {
        if self.is_paused() {
            return self.hold_back();
        }
        if !self.may_lease() {
            return;
        }
        // Each gets its share of what is there, so that a few events spread over all.
        let share = match self.state.partition_count() {
            None => self.state.ready().div_ceil(self.members.len().max(1)),
            // What is there of a partition is its holder's.
            Some(_) => self.state.ready(),
        };
        let mut without_room = 0;
        while self.state.ready() > 0 && without_room < self.members.len() {
            self.turn = (self.turn + 1) % self.members.len();
            if self.deliver_to(self.turn, share, now_ms) {
                without_room = 0;
            } else {
                without_room += 1;
            }
        }
        if self.pending_read.is_none() {
            self.reservations.clear();
        }
        if self.state.ready() == 0 {
            self.page = None;
        } else if self.core.memory.free_bytes() == 0 {
            // No member has room, and others could use the memory: it is read again when one has.
            self.state.shed_ready();
            self.page = None;
        }
        self.return_credit();
    }

    /// Reserves room for up to `wanted` events of up to `wanted_bytes` that are about to be read: how many, and how many
    /// bytes.
    pub(super) fn reserve(&mut self, wanted: usize, wanted_bytes: usize) -> (usize, usize) {
        let (mut events, mut bytes) = (0, 0);
        for member in &self.members {
            if events == wanted || bytes >= wanted_bytes {
                break;
            }
            let subscriber = &member.subscriber;
            if !subscriber.is_open() {
                continue;
            }
            let (more, more_bytes) = (wanted - events, wanted_bytes - bytes);
            let reserved = subscriber.credit.reserve(more, more_bytes, &self.inbox);
            let Some((count, hold)) = reserved else {
                continue;
            };
            events += count;
            bytes += hold.bytes();
            self.reservations.push(Reservation {
                member: member.id,
                subscriber: subscriber.clone(),
                inbox: self.inbox.clone(),
                count,
                bytes: hold,
            });
        }
        (events, bytes)
    }

    /// Takes room for up to `wanted` events of one member: what was reserved for it, else what is free.
    fn take_room(&mut self, turn: usize, wanted: usize) -> Option<Room> {
        let member = &self.members[turn];
        let credit = &member.subscriber.credit;
        let is_usable =
            |one: &Reservation| one.member == member.id && one.count > 0 && one.bytes.bytes() > 0;
        let room = if let Some(at) = self.reservations.iter().position(is_usable) {
            let reservation = &mut self.reservations[at];
            let bytes = reservation.bytes.bytes();
            let wanted = wanted.min(reservation.count);
            let ready = self.state.ready_within(member.id, wanted, bytes);
            let events = credit.take_reserved(ready);
            reservation.count -= events;
            Room {
                events,
                reservation: Some(at),
            }
        } else {
            let bytes = credit.byte_room(&self.inbox);
            if bytes == 0 {
                credit.enqueue(&self.inbox);
                return None;
            }
            let ready = self.state.ready_within(member.id, wanted, bytes);
            Room {
                events: credit.take(ready, &self.inbox),
                reservation: None,
            }
        };
        (room.events > 0).then_some(room)
    }

    /// Counts the bytes of events that go to one member.
    fn hold_bytes(&mut self, turn: usize, room: &Room, bytes: usize) -> ByteHold {
        match room.reservation {
            Some(at) => self.reservations[at].bytes.split(bytes),
            None => ByteHold::new(&self.members[turn].subscriber.credit, &self.inbox, bytes),
        }
    }

    /// Gives the credit of leases that have ended back to the subscriptions that held them.
    pub(super) fn return_credit(&mut self) {
        let members = &self.members;
        self.state.take_freed(|freed_by, count| {
            if let Some(member) = members.iter().find(|member| member.id == freed_by) {
                member.subscriber.credit.release(count, &self.inbox);
            }
        });
    }

    /// Stops queueing for credit that is not needed now.
    pub(super) fn leave_credit_queues(&self) {
        for member in &self.members {
            member.subscriber.credit.dequeue(&self.inbox);
        }
    }

    /// Leases a chunk of up to `share` events to one member; `false` where it takes none.
    fn deliver_to(&mut self, turn: usize, share: usize, now_ms: u64) -> bool {
        let subscriber = &self.members[turn].subscriber;
        if !subscriber.is_open() {
            return false;
        }
        let member = self.members[turn].id;
        let wanted = share
            .min(subscriber.batch_size)
            .min(self.state.ready_for(member));
        if wanted == 0 {
            return false;
        }
        let Some(room) = self.take_room(turn, wanted) else {
            return false;
        };
        let mut leased = Vec::with_capacity(room.events);
        self.state.lease(member, room.events, now_ms, &mut leased);
        compact(&mut leased, self.core.memory.used_bytes());
        let bytes = leased.iter().map(|one| one.event.stored_bytes()).sum();
        let hold = self.hold_bytes(turn, &room, bytes);
        self.share_status();
        let subscriber = &self.members[turn].subscriber;
        if leased.len() < room.events {
            let unused = room.events - leased.len();
            subscriber.credit.release(unused, &self.inbox);
        }
        if leased.is_empty() {
            return true;
        }
        let chunk = Chunk {
            inbox: self.inbox.clone(),
            member,
            leased: VecDeque::from(leased),
            hold,
            taken_bytes: 0,
        };
        match subscriber.put(chunk) {
            Ok(()) => true,
            Err(chunk) => {
                self.state.release(chunk.member, &chunk.names());
                false
            }
        }
    }
}
