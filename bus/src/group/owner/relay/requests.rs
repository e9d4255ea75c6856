//! What was asked of the node that has the group, and its answers.

use super::super::{Member, Owner};
use super::Relayed;
use crate::error::{AckPublishError, GroupError, OwnedElsewhere, SettleError};
use crate::group::command::{Asker, Command, Join, Reply};
use crate::group::inbox::{AckPublishReply, LeaseId, Message, SettleLease, SettleReply};
use crate::group::membership::Membership;
use crate::group::relay::{
    FromOwner, FromRelay, Lease, WireCommand, WireJoin, WireReply, WireSettings,
};
use crate::group::state::{HeldLease, MemberId, Settled};
use prombus_interface::{Explanation, GroupInfo, SeekEffect, SettleOp};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Something that was asked. One that is dropped unanswered is asked again by its caller, or is known to be lost.
pub(super) enum Request {
    Join(Box<Join>, Reply<Membership>),
    /// A member that is there since before.
    Rejoin,
    Acks(Vec<(MemberId, HeldLease)>),
    Settle(Settling),
    AckPublish(Vec<Lease>, AckPublishReply),
    AckPublishByIds(AckPublishReply),
    SettleByIds(oneshot::Sender<Vec<Result<(), SettleError>>>),
    Describe(Reply<GroupInfo>),
    Explain(Reply<Explanation>),
    Seek(Reply<SeekEffect>),
    Change(Reply<()>),
    Remove(Reply<()>),
}

/// An event that is being settled, or whose lease is being extended.
pub(super) struct Settling {
    pub(super) member: MemberId,
    pub(super) lease: HeldLease,
    pub(super) op: SettleOp,
    pub(super) reply: Option<SettleReply>,
}

impl Request {
    /// Whether it is asked again over the next link. Settling twice is settling once.
    pub(super) fn outlives_link(&self) -> bool {
        matches!(self, Self::Acks(_) | Self::Settle(_))
    }

    /// The leases of a member that it is about and that are not among those that the member holds.
    pub(super) fn leases_of(&self, member: MemberId) -> Vec<HeldLease> {
        match self {
            Self::Acks(acked) => {
                let of_member = acked.iter().filter(|(one, _)| *one == member);
                of_member.map(|(_, lease)| *lease).collect()
            }
            Self::Settle(settling) if settling.member == member && !settling.op.is_extension() => {
                vec![settling.lease]
            }
            _ => Vec::new(),
        }
    }

    /// The same for an owner on this node; nothing where it is dropped instead.
    pub(super) fn into_messages(self) -> Vec<Message> {
        let settling = match self {
            Self::Settle(settling) => settling,
            Self::Acks(acked) => {
                let acks = acked.into_iter().map(|(member, lease)| {
                    let (seq, number) = (lease.seq, lease.number);
                    Message::ack(LeaseId {
                        member,
                        seq,
                        number,
                    })
                });
                return acks.collect();
            }
            _ => return Vec::new(),
        };
        let lease = LeaseId {
            member: settling.member,
            seq: settling.lease.seq,
            number: settling.lease.number,
        };
        vec![Message::Settle(SettleLease {
            lease,
            op: settling.op,
            reply: settling.reply,
        })]
    }
}

impl Owner {
    /// Notes a request and gives it a number.
    pub(super) fn request(&mut self, request: Request) -> u64 {
        let relay = self.relay_mut();
        relay.next_request += 1;
        relay.requests.insert(relay.next_request, request);
        relay.next_request
    }

    /// Asks again what the last link left unanswered.
    pub(super) fn ask_again(&mut self) {
        let mut again = Vec::new();
        for (&request, asked) in &self.relay_mut().requests {
            match asked {
                Request::Acks(acked) => again.push(FromRelay::Acks {
                    request,
                    leases: acked
                        .iter()
                        .map(|(member, lease)| (*member, lease.seq, lease.number))
                        .collect(),
                }),
                Request::Settle(settling) => again.push(FromRelay::Settle {
                    request,
                    lease: (settling.member, settling.lease.seq, settling.lease.number),
                    what: settling.op.clone(),
                }),
                _ => {}
            }
        }
        for message in again {
            self.send(&message);
        }
    }

    /// Passes a command on to the node that has the group.
    pub(super) fn pass_on(&mut self, command: Command) {
        let (request, command) = match command {
            Command::Join(join, reply) => return self.join_relayed(join, reply),
            Command::Settle(settle, reply) => {
                let member = self.relayed_member(&settle.asker);
                let request = self.request(Request::SettleByIds(reply));
                return self.send(&FromRelay::SettleByIds {
                    request,
                    member,
                    what: settle.op,
                    ids: settle.ids,
                });
            }
            Command::AckPublish(asker, steps) => {
                let member = self.relayed_member(&asker);
                for (step, reply) in steps {
                    let request = self.request(Request::AckPublishByIds(reply));
                    let body = step.events.encode();
                    let ids = step.ids;
                    let message = FromRelay::AckPublishByIds {
                        request,
                        member,
                        ids,
                    };
                    self.send_with(&message, &body);
                }
                return;
            }
            Command::Describe(reply) => (Request::Describe(reply), WireCommand::Describe),
            Command::Explain(reply) => (Request::Explain(reply), WireCommand::Explain),
            Command::Seek(seek, reply) => (Request::Seek(reply), WireCommand::of_seek(&seek)),
            Command::UndoSeek(reply) => (Request::Seek(reply), WireCommand::UndoSeek),
            Command::SetPaused(paused, reply) => {
                (Request::Describe(reply), WireCommand::SetPaused(paused))
            }
            Command::Configure(settings, reply) => match WireSettings::of(&settings) {
                Some(settings) => (Request::Change(reply), WireCommand::Configure(settings)),
                None => return drop(reply.send(Err(self.elsewhere()))),
            },
            Command::Remove(_, reply) => (Request::Remove(reply), WireCommand::Remove),
            Command::Abandon(_, reply) => return drop(reply.send(Ok(()))),
            // It would be relayed twice.
            Command::Reported(_) => return,
        };
        let request = self.request(request);
        self.send(&FromRelay::Command { request, command });
    }

    fn relayed_member(&self, asker: &Asker) -> MemberId {
        match asker {
            Asker::Member(member) => *member,
            Asker::Follower(subscriber) => {
                let mut members = self.members.iter();
                let member = members.find(|member| Arc::ptr_eq(&member.subscriber, subscriber));
                member.map_or(0, |member| member.id)
            }
        }
    }

    /// A member joins. A filter function cannot leave its process, and what comes from another node is not relayed a second
    /// time.
    fn join_relayed(&mut self, join: Box<Join>, reply: Reply<Membership>) {
        let settings = WireSettings::of(&join.settings);
        let Some(settings) = settings.filter(|_| join.via.is_none()) else {
            return drop(reply.send(Err(self.elsewhere())));
        };
        let (limit, is_open) = (join.subscriber.credit.limit(), join.subscriber.is_open());
        let member = join.member;
        let wire = WireJoin {
            name: join.subscriber.name.clone(),
            batch_size: join.subscriber.batch_size,
            limit,
            is_open,
            start_at: join.start_at.clone(),
            settings,
            held: Vec::new(),
            pattern: join.pattern.clone(),
        };
        self.relay_mut().credits.insert(member, (limit, is_open));
        let request = self.request(Request::Join(join, reply));
        self.send(&FromRelay::Join {
            request,
            member,
            join: Box::new(wire),
        });
    }

    fn elsewhere(&self) -> GroupError {
        OwnedElsewhere {
            topic: self.name.topic.clone(),
            group: self.name.group.clone(),
            node: self
                .relay
                .as_ref()
                .map_or_else(String::new, |relay| relay.owner.clone()),
        }
        .into()
    }

    /// Takes in an answer; some of them end the link.
    pub(super) fn answered(&mut self, answer: FromOwner) -> Option<Relayed> {
        let number = match &answer {
            FromOwner::Joined { request, .. }
            | FromOwner::Acked { request }
            | FromOwner::Settled { request, .. }
            | FromOwner::SettledByIds { request, .. }
            | FromOwner::AckPublished { request, .. }
            | FromOwner::Replied { request, .. } => *request,
            _ => return None,
        };
        let request = self.relay_mut().requests.remove(&number)?;
        let topic = self.name.topic.clone();
        // Those who asked may have gone away.
        match (request, answer) {
            (Request::Join(join, reply), FromOwner::Joined { result, .. }) => {
                self.joined(
                    *join,
                    reply,
                    result.map_err(|error| error.into_error(&self.name)),
                );
            }
            (Request::Rejoin, FromOwner::Joined { result: Err(_), .. }) => {
                return Some(Relayed::Again);
            }
            (Request::Settle(settling), FromOwner::Settled { result, .. }) => {
                self.extended(&settling, matches!(result, Ok(Settled::Done)));
                if let Some(reply) = settling.reply {
                    let _ = reply.send(result.map_err(|error| error.into_error(&topic)));
                }
            }
            (Request::SettleByIds(reply), FromOwner::SettledByIds { results, .. }) => {
                let results = results.into_iter();
                let results = results.map(|one| one.map_err(|error| error.into_error(&topic)));
                let _ = reply.send(results.collect());
            }
            (Request::AckPublish(leases, reply), FromOwner::AckPublished { result, .. }) => {
                if result.is_ok() {
                    self.published(&leases);
                }
                let _ = reply.send(published(result, &topic));
            }
            (Request::AckPublishByIds(reply), FromOwner::AckPublished { result, .. }) => {
                let _ = reply.send(published(result, &topic));
            }
            (request, FromOwner::Replied { result, .. }) => {
                let result = result.map_err(|error| error.into_error(&self.name));
                replied(request, result);
            }
            _ => {}
        }
        None
    }

    /// The group is gone, as was asked: that may be heard of before the answer.
    pub(super) fn confirm_removal(&mut self) {
        for (_, request) in std::mem::take(&mut self.relay_mut().requests) {
            if let Request::Remove(reply) = request {
                let _ = reply.send(Ok(()));
            }
        }
    }

    fn joined(&mut self, join: Join, reply: Reply<Membership>, result: Result<(), GroupError>) {
        let membership = match result {
            Err(error) => Err(error),
            Ok(()) if self.inbox.is_delisted() => Err(GroupError::Closed),
            Ok(()) => {
                join.subscriber.attach_group();
                self.members.push(Member {
                    id: join.member,
                    subscriber: join.subscriber,
                    ack_timeout_ms: join.settings.ack_timeout_ms,
                    follows_pattern: join.pattern.is_some(),
                    via: None,
                });
                Ok(Membership {
                    inbox: self.inbox.clone(),
                    member: join.member,
                })
            }
        };
        // A membership that the caller no longer waits for is dropped, which ends it.
        let _ = reply.send(membership);
    }

    /// A lease is as long as its member was told.
    fn extended(&mut self, settling: &Settling, is_done: bool) {
        let SettleOp::Extend { extend_ms } = settling.op else {
            return;
        };
        let now_ms = self.now_ms();
        let held = self
            .relay_mut()
            .held
            .get_mut(&(settling.member, settling.lease.seq));
        if let Some(held) = held.filter(|held| is_done && held.number == settling.lease.number) {
            let extend_ms = super::super::ownership::extended_ms(extend_ms.unwrap_or_default());
            held.deadline_ms = held.deadline_ms.max(now_ms.saturating_add(extend_ms));
        }
    }

    /// Events were acknowledged together with publishing others.
    fn published(&mut self, leases: &[Lease]) {
        for (member, seq, number) in leases {
            let relay = self.relay_mut();
            let held = relay.held.get(&(*member, *seq));
            if held.is_some_and(|held| held.number == *number) {
                relay.held.remove(&(*member, *seq));
                self.release_credit(*member, 1);
            }
        }
    }
}

fn published(
    result: Result<
        Vec<crate::group::relay::WirePublished>,
        crate::group::relay::WireAckPublishError,
    >,
    topic: &Arc<str>,
) -> crate::group::inbox::AckPublishResult {
    let published = result.map_err(|error| error.into_error(topic))?;
    let published = published.into_iter().map(|one| one.into_published());
    published
        .collect::<Option<_>>()
        .ok_or(AckPublishError::Gone)
}

fn replied(request: Request, result: Result<WireReply, GroupError>) {
    match (request, result) {
        (Request::Describe(reply), Ok(WireReply::Info(info))) => drop(reply.send(Ok(*info))),
        (Request::Describe(reply), Err(error)) => drop(reply.send(Err(error))),
        (Request::Explain(reply), Ok(WireReply::Explanation(explanation))) => {
            drop(reply.send(Ok(*explanation)));
        }
        (Request::Explain(reply), Err(error)) => drop(reply.send(Err(error))),
        (Request::Seek(reply), Ok(WireReply::Effect(effect))) => drop(reply.send(Ok(effect))),
        (Request::Seek(reply), Err(error)) => drop(reply.send(Err(error))),
        (Request::Change(reply) | Request::Remove(reply), Ok(WireReply::Done)) => {
            drop(reply.send(Ok(())));
        }
        (Request::Change(reply) | Request::Remove(reply), Err(error)) => {
            drop(reply.send(Err(error)));
        }
        _ => {}
    }
}
