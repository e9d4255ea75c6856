//! Handing events out to the members that have room, in turn.

use super::Owner;
use crate::group::subscriber::Chunk;
use std::collections::VecDeque;

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
        self.return_credit();
    }

    /// How many more events members could be given.
    pub(super) fn room(&self) -> usize {
        let active = self
            .members
            .iter()
            .filter(|member| !member.subscriber.is_paused());
        active.map(|member| member.subscriber.credit.free()).sum()
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
        let member = &self.members[turn];
        let subscriber = &member.subscriber;
        if subscriber.is_paused() {
            return false;
        }
        let wanted = share.min(subscriber.batch_size).min(self.state.ready());
        let taken = subscriber.credit.take(wanted, &self.inbox);
        if taken == 0 {
            return false;
        }
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
