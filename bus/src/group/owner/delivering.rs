//! Handing events out to the members that have room, in turn.

use super::Owner;
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
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.count > 0 {
            self.subscriber
                .credit
                .give_reserved(self.count, &self.inbox);
        }
    }
}

impl Owner {
    /// Leases what is ready to members with room, each in turn, until nothing is ready or nobody has room.
    pub(super) fn deliver(&mut self, now_ms: u64) {
        // Each gets its share of what is there, so that a few events spread over all.
        let share = self.state.ready().div_ceil(self.members.len().max(1));
        let mut without_room = 0;
        while self.state.ready() > 0 && without_room < self.members.len() {
            self.turn = (self.turn + 1) % self.members.len();
            if self.deliver_to(self.turn, share, now_ms) {
                without_room = 0;
            } else {
                without_room += 1;
            }
        }
        if self.reading.is_none() {
            self.reservations.clear();
        }
        self.return_credit();
    }

    /// Reserves room for up to `wanted` events that are about to be read.
    pub(super) fn reserve(&mut self, wanted: usize) -> usize {
        let mut reserved = 0;
        for member in &self.members {
            if reserved == wanted {
                break;
            }
            let subscriber = &member.subscriber;
            if subscriber.is_paused() {
                continue;
            }
            let count = subscriber.credit.reserve(wanted - reserved, &self.inbox);
            if count == 0 {
                continue;
            }
            reserved += count;
            self.reservations.push(Reservation {
                member: member.id,
                subscriber: subscriber.clone(),
                inbox: self.inbox.clone(),
                count,
            });
        }
        reserved
    }

    /// Takes room for up to `wanted` events of one member: what was reserved for it, else what is free.
    fn take_room(&mut self, turn: usize, wanted: usize) -> usize {
        let member = &self.members[turn];
        let mut reservations = self.reservations.iter_mut();
        let reservation = reservations.find(|one| one.member == member.id && one.count > 0);
        let Some(reservation) = reservation else {
            return member.subscriber.credit.take(wanted, &self.inbox);
        };
        let wanted = wanted.min(reservation.count);
        let taken = member.subscriber.credit.take_reserved(wanted);
        reservation.count -= taken;
        taken
    }

    /// Gives the credit of leases that have ended back to the subscriptions that held them.
    pub(super) fn return_credit(&mut self) {
        let members = &self.members;
        self.state.take_freed(|freed_by, count| {
            if let Some(member) = members.iter().find(|member| member.id == freed_by) {
                member.subscriber.credit.give(count, &self.inbox);
            }
        });
    }

    /// Stops queueing for credit that is not needed now.
    pub(super) fn leave_credit_queues(&self) {
        for member in &self.members {
            member.subscriber.credit.leave(&self.inbox);
        }
    }

    /// Leases a chunk of up to `share` events to one member; `false` where it takes none.
    fn deliver_to(&mut self, turn: usize, share: usize, now_ms: u64) -> bool {
        let subscriber = &self.members[turn].subscriber;
        if subscriber.is_paused() {
            return false;
        }
        let wanted = share.min(subscriber.batch_size).min(self.state.ready());
        let taken = self.take_room(turn, wanted);
        if taken == 0 {
            return false;
        }
        let member = &self.members[turn];
        let subscriber = &member.subscriber;
        let mut leased = Vec::with_capacity(taken);
        self.state.lease(member.id, taken, now_ms, &mut leased);
        if leased.len() < taken {
            subscriber.credit.give(taken - leased.len(), &self.inbox);
        }
        if leased.is_empty() {
            return true;
        }
        let chunk = Chunk {
            inbox: self.inbox.clone(),
            member: member.id,
            leased: VecDeque::from(leased),
        };
        match subscriber.put(chunk) {
            Ok(()) => true,
            Err(chunk) => {
                self.state.give_back(chunk.member, &chunk.names());
                false
            }
        }
    }
}
