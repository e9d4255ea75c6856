//! What members ask for while another node has their group.

use super::super::Owner;
use super::requests::{Request, Settling};
use crate::group::inbox::{AckPublishRequest, LeaseId, Message, SettleLease};
use crate::group::relay::FromRelay;
use crate::group::state::{HeldLease, MemberId};
use prombus_interface::SettleOp;

impl Owner {
    /// Passes on what was sent since the last time.
    pub(super) fn drain_relayed(&mut self, now_ms: u64) {
        self.inbox.take(&mut self.messages);
        let mut acks = Vec::new();
        while let Some(message) = self.messages.pop_front() {
            if let Message::Settle(SettleLease {
                lease,
                op: SettleOp::Ack,
                reply: None,
            }) = message
            {
                acks.push(self.let_go(lease, now_ms));
                continue;
            }
            // What a member does comes in the order in which it did it.
            self.send_acks(&mut acks);
            self.relay_message(message, now_ms);
        }
        self.send_acks(&mut acks);
    }

    fn send_acks(&mut self, acks: &mut Vec<(MemberId, HeldLease)>) {
        if acks.is_empty() {
            return;
        }
        let acked = std::mem::take(acks);
        let leases = acked.iter().map(name).collect();
        let request = self.request(Request::Acks(acked));
        self.send(&FromRelay::Acks { request, leases });
    }

    fn relay_message(&mut self, message: Message, now_ms: u64) {
        match message {
            Message::Settle(settle) => self.settle_relayed(settle, now_ms),
            Message::Command(command) => self.pass_on(*command),
            Message::AckPublish(step) => self.ack_publish_relayed(*step),
            Message::Release(member, leases) => {
                for (seq, number) in &leases {
                    let lease = LeaseId {
                        member,
                        seq: *seq,
                        number: *number,
                    };
                    self.let_go(lease, now_ms);
                }
                self.send(&FromRelay::Release { member, leases });
            }
            Message::SetAckTimeout(member, ack_timeout_ms) => {
                for one in self.members.iter_mut().filter(|one| one.id == member) {
                    one.ack_timeout_ms = ack_timeout_ms;
                }
                self.send(&FromRelay::SetAckTimeout {
                    member,
                    ack_timeout_ms,
                });
            }
            Message::ConfirmRevoked(member, partitions) => {
                self.send(&FromRelay::ConfirmRevoked { member, partitions });
            }
            Message::Leave(member) => self.leave_relayed(member),
        }
    }

    fn settle_relayed(&mut self, settle: SettleLease, now_ms: u64) {
        let SettleLease { lease, op, reply } = settle;
        let (member, lease) = if op.is_extension() {
            self.held(lease, now_ms)
        } else {
            self.let_go(lease, now_ms)
        };
        let request = self.request(Request::Settle(Settling {
            member,
            lease,
            op: op.clone(),
            reply,
        }));
        self.send(&FromRelay::Settle {
            request,
            lease: name(&(member, lease)),
            what: op,
        });
    }

    fn ack_publish_relayed(&mut self, step: AckPublishRequest) {
        let leases = step.leases.iter();
        let leases = leases.map(|lease| (lease.member, lease.seq, lease.number));
        let leases = leases.collect::<Vec<_>>();
        let body = step.events.encode();
        let request = self.request(Request::AckPublish(leases.clone(), step.reply));
        self.send_with(&FromRelay::AckPublish { request, leases }, &body);
    }

    /// A member is gone: its leases are free at once.
    fn leave_relayed(&mut self, member: MemberId) {
        let Some(at) = self.members.iter().position(|one| one.id == member) else {
            return;
        };
        let left = self.members.remove(at);
        left.subscriber.reclaim(member, |_| true);
        let relay = self.relay_mut();
        relay.grants.retain(|one| one.member != member);
        relay.credits.remove(&member);
        relay.partitions.remove(&member);
        let mut held = relay.held.split_off(&(member, 0));
        let mut others = held.split_off(&(member + 1, 0));
        relay.held.append(&mut others);
        left.subscriber.credit.release(held.len(), &self.inbox);
        left.subscriber.credit.dequeue(&self.inbox);
        self.send(&FromRelay::Leave { member });
    }

    /// A lease that its member is done with.
    fn let_go(&mut self, lease: LeaseId, now_ms: u64) -> (MemberId, HeldLease) {
        let relay = self.relay_mut();
        let named = (lease.member, lease.seq);
        let is_same = |held: &&HeldLease| held.number == lease.number;
        match relay.held.get(&named).filter(is_same).copied() {
            Some(held) => {
                relay.held.remove(&named);
                self.release_credit(lease.member, 1);
                (lease.member, held)
            }
            None => (lease.member, ended(lease, now_ms)),
        }
    }

    /// A lease that its member keeps.
    fn held(&mut self, lease: LeaseId, now_ms: u64) -> (MemberId, HeldLease) {
        let held = self.relay_mut().held.get(&(lease.member, lease.seq));
        let held = held.copied().filter(|held| held.number == lease.number);
        (lease.member, held.unwrap_or_else(|| ended(lease, now_ms)))
    }

    /// Tells the other node how many events members may have in flight, where that has changed.
    pub(super) fn tell_credits(&mut self) {
        for at in 0..self.members.len() {
            let member = self.members[at].id;
            let subscriber = &self.members[at].subscriber;
            let current = (subscriber.credit.limit(), subscriber.is_open());
            let known = self.relay_mut().credits.insert(member, current);
            if known != Some(current) {
                let (limit, is_open) = current;
                self.send(&FromRelay::Credit {
                    member,
                    limit,
                    is_open,
                });
            }
        }
    }
}

/// A lease that ran out here: it may still be settled, and is not held.
fn ended(lease: LeaseId, now_ms: u64) -> HeldLease {
    HeldLease {
        seq: lease.seq,
        number: lease.number,
        attempt: 1,
        deadline_ms: now_ms,
    }
}

fn name((member, lease): &(MemberId, HeldLease)) -> (MemberId, u64, u64) {
    (*member, lease.seq, lease.number)
}
