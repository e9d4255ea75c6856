//! The owner's side of a link: joins the group for each member behind it, passes leases on, and does what the members ask for.

use super::lingering::{Lingering, LingeringKey};
use super::question::answer_all;
use super::wire::{
    FromOwner, FromRelay, Grant, Lease, WireCommand, WireEnded, WireJoin, WirePublished, WireReply,
    decode, encode,
};
use super::{LINK_BEAT, LINK_TIMEOUT, LinkReceiver, LinkSender, NodeLink};
use super::{WireAckPublishError, WireGroupError, WireSettleError};
use crate::core::Core;
use crate::error::{GroupError, SettleError};
use crate::group::command::{AckPublishByIds, Asker, Command, Join, Seek, SettleByIds};
use crate::group::credit::Credit;
use crate::group::inbox::{AckPublishRequest, LeaseId, Message, SettleLease};
use crate::group::membership::Membership;
use crate::group::ownership::Via;
use crate::group::registry::{GroupName, Registry};
use crate::group::state::{HeldLease, MemberId};
use crate::group::subscriber::{Subscriber, TakenEvent};
use crate::group::{Assignment, Ended};
use crate::pending::Pending;
use crate::publish::AtomicBatch;
use crate::subscription::all_gone;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use prombus_interface::SettleOp;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// How many leases one message grants at most.
const MAX_GRANTS: usize = 256;

/// One link.
struct Host {
    core: Arc<Core>,
    registry: Arc<Registry>,
    name: GroupName,
    via: Via,
    /// What people know the relay's node by.
    node_name: Arc<str>,
    sender: LinkSender,
    members: HashMap<MemberId, Proxy>,
    /// What is to be answered once it is known.
    answers: FuturesUnordered<Pin<Box<dyn Future<Output = FromOwner> + Send>>>,
    is_goodbye: bool,
}

/// A member of the group that stands for one on the relay's node.
struct Proxy {
    membership: Membership,
    subscriber: Arc<Subscriber>,
    task: AbortHandle,
}

/// Serves a link to its end.
pub(crate) async fn serve(core: Arc<Core>, registry: Arc<Registry>, link: NodeLink) {
    let (sender, mut receiver) = link.split();
    let hello = tokio::time::timeout(LINK_TIMEOUT, receiver.recv()).await;
    let Ok(Some(hello)) = hello else {
        return;
    };
    let Some((
        FromRelay::Hello {
            topic,
            group,
            node,
            boot,
            name,
        },
        _,
    )) = decode(&hello)
    else {
        return answer_all(&core, &registry, hello, (sender, receiver)).await;
    };
    let via = Via { node, boot };
    let mut host = Host {
        core,
        registry,
        name: GroupName {
            topic,
            group,
            ephemeral: false,
        },
        via,
        node_name: name.into(),
        sender,
        members: HashMap::new(),
        answers: FuturesUnordered::new(),
        is_goodbye: false,
    };
    host.run(&mut receiver).await;
    host.end();
}

impl Host {
    async fn run(&mut self, receiver: &mut LinkReceiver) {
        let mut closing = self.core.closing();
        let mut beat = tokio::time::interval(LINK_BEAT);
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !self.is_goodbye {
            let answer = tokio::select! {
                message = receiver.recv() => {
                    let Some(message) = message else {
                        return;
                    };
                    let Some((head, body)) = decode(&message) else {
                        return;
                    };
                    if !self.handle(head, body).await {
                        return;
                    }
                    continue;
                }
                Some(answer) = self.answers.next() => answer,
                _ = beat.tick() => FromOwner::Beat { at_ms: self.core.monotonic_ms() },
                () = closing.closed() => FromOwner::Ended { reason: WireEnded::BusClosed },
            };
            let is_ended = matches!(answer, FromOwner::Ended { .. });
            if !self.sender.send(encode(&answer, &[])).await || is_ended {
                return;
            }
        }
    }

    /// The link is over.
    fn end(mut self) {
        for (id, proxy) in std::mem::take(&mut self.members) {
            proxy.task.abort();
            if !self.is_goodbye {
                let key = self.key(id);
                let kept = (proxy.membership, proxy.subscriber);
                Lingering::keep(&self.core, self.via, key, kept);
            }
        }
    }

    fn key(&self, member: MemberId) -> LingeringKey {
        let GroupName { topic, group, .. } = &self.name;
        (self.via.boot, topic.clone(), group.clone(), member)
    }

    /// Does what a message says; `false` where it makes no sense.
    async fn handle(&mut self, message: FromRelay, body: &[u8]) -> bool {
        match message {
            FromRelay::Hello { .. } => return false,
            FromRelay::Join {
                request,
                member,
                join,
            } => {
                let result = self.join(member, *join).await;
                let result = result.map_err(|error| WireGroupError::of(&error));
                let answer = FromOwner::Joined { request, result };
                return self.sender.send(encode(&answer, &[])).await;
            }
            FromRelay::Reported => self.reported(),
            FromRelay::Leave { member } => {
                if let Some(proxy) = self.members.remove(&member) {
                    proxy.task.abort();
                }
            }
            FromRelay::Credit {
                member,
                limit,
                is_open,
            } => {
                if let Some(proxy) = self.members.get(&member) {
                    proxy.subscriber.credit.set_limit(limit);
                    proxy.subscriber.set_stalled(!is_open);
                    proxy.membership.inbox.wake();
                }
            }
            FromRelay::Release { member, leases } => {
                if let Some(proxy) = self.members.get(&member) {
                    let id = proxy.membership.member;
                    proxy.membership.inbox.push(Message::Release(id, leases));
                }
            }
            FromRelay::SetAckTimeout {
                member,
                ack_timeout_ms,
            } => {
                if let Some(proxy) = self.members.get(&member) {
                    let id = proxy.membership.member;
                    let message = Message::SetAckTimeout(id, ack_timeout_ms);
                    proxy.membership.inbox.push(message);
                }
            }
            FromRelay::ConfirmRevoked { member, partitions } => {
                if let Some(proxy) = self.members.get(&member) {
                    let id = proxy.membership.member;
                    let message = Message::ConfirmRevoked(id, partitions);
                    proxy.membership.inbox.push(message);
                }
            }
            FromRelay::Goodbye => self.is_goodbye = true,
            message => return self.ask(message, body),
        }
        true
    }

    /// Does what is answered later.
    fn ask(&mut self, message: FromRelay, body: &[u8]) -> bool {
        match message {
            FromRelay::Acks { request, leases } => self.ack(request, &leases),
            FromRelay::Settle {
                request,
                lease,
                what,
            } => self.settle(request, lease, what),
            FromRelay::SettleByIds {
                request,
                member,
                ids,
                what: op,
            } => {
                let asker = self.asker(member);
                self.settle_by_ids(request, SettleByIds { asker, ids, op });
            }
            FromRelay::AckPublish { request, leases } => {
                let Some(events) = AtomicBatch::decode(body) else {
                    return false;
                };
                self.ack_publish(request, &leases, events);
            }
            FromRelay::AckPublishByIds {
                request,
                member,
                ids,
            } => {
                let Some(events) = AtomicBatch::decode(body) else {
                    return false;
                };
                self.ack_publish_by_ids(request, member, AckPublishByIds { ids, events });
            }
            FromRelay::Command { request, command } => self.command(request, command),
            _ => return false,
        }
        true
    }

    async fn join(&mut self, member: MemberId, join: WireJoin) -> Result<(), GroupError> {
        let before = self.core.lingering.take(&self.key(member));
        let credit = Credit::new(
            join.limit,
            self.core.options.subscription_bytes,
            self.core.memory.clone(),
        );
        let clock = self.core.options.clock.clone();
        let subscriber = Subscriber::new(join.name, join.batch_size, credit, false, clock);
        let subscriber = Arc::new(subscriber);
        subscriber.set_stalled(!join.is_open);
        let now_ms = self.core.monotonic_ms();
        let held: Vec<HeldLease> = join
            .held
            .iter()
            .map(|held| HeldLease {
                seq: held.seq,
                number: held.number,
                attempt: held.attempt,
                deadline_ms: now_ms.saturating_add(held.left_ms),
            })
            .collect();
        let settings = join.settings.into_request();
        let replaces = before.as_ref().map(|before| before.membership.member);
        let command = |reply| {
            let join = Join {
                member: self.core.number(),
                subscriber: subscriber.clone(),
                start_at: join.start_at.clone(),
                settings: settings.clone(),
                pattern: join.pattern.clone(),
                via: Some((self.via, self.node_name.clone())),
                held: held.clone(),
                replaces,
            };
            Command::Join(Box::new(join), reply)
        };
        let membership = self.registry.call(&self.name, command).await?;
        // What it held is the new one's by now.
        drop(before);
        let (core, sender) = (self.core.clone(), self.sender.clone());
        let passing = pass_on(core, member, subscriber.clone(), sender);
        let proxy = Proxy {
            membership,
            subscriber,
            task: tokio::spawn(passing).abort_handle(),
        };
        if let Some(replaced) = self.members.insert(member, proxy) {
            replaced.task.abort();
        }
        Ok(())
    }

    /// All that the relay's members hold is known.
    fn reported(&mut self) {
        let GroupName { topic, group, .. } = &self.name;
        let is_left = |member| self.members.contains_key(&member);
        let lingering = &self.core.lingering;
        lingering.release_others(self.via.boot, (topic, group), is_left);
        let command = Command::Reported(self.via);
        self.registry.send(&self.name, command);
    }

    /// A relay's lease as this node's owner names it.
    fn lease(&self, (member, seq, number): Lease) -> Option<(&Proxy, LeaseId)> {
        let proxy = self.members.get(&member)?;
        let member = proxy.membership.member;
        Some((
            proxy,
            LeaseId {
                member,
                seq,
                number,
            },
        ))
    }

    /// The members' own numbers are the owner's. One that is none holds nothing.
    fn asker(&self, member: MemberId) -> Asker {
        let proxy = self.members.get(&member);
        Asker::Member(proxy.map_or(0, |proxy| proxy.membership.member))
    }

    /// The last one is confirmed, and with it all before.
    fn ack(&mut self, request: u64, leases: &[Lease]) {
        let mut last = None;
        for (at, lease) in leases.iter().enumerate() {
            let Some((proxy, lease)) = self.lease(*lease) else {
                continue;
            };
            let mut reply = None;
            if at + 1 == leases.len() {
                let (sender, answer) = oneshot::channel();
                (reply, last) = (Some(sender), Some(answer));
            }
            let op = SettleOp::Ack;
            let message = Message::Settle(SettleLease { lease, op, reply });
            proxy.membership.inbox.push(message);
        }
        self.answers.push(Box::pin(async move {
            if let Some(last) = last {
                // Where the owner is gone, so is the link soon.
                let _ = last.await;
            }
            FromOwner::Acked { request }
        }));
    }

    fn settle(&mut self, request: u64, lease: Lease, op: SettleOp) {
        let (reply, answer) = oneshot::channel();
        if let Some((proxy, lease)) = self.lease(lease) {
            let reply = Some(reply);
            let message = Message::Settle(SettleLease { lease, op, reply });
            proxy.membership.inbox.push(message);
        }
        self.answers.push(Box::pin(async move {
            let result = answer.await.unwrap_or(Err(SettleError::Gone));
            let result = result.map_err(|error| WireSettleError::of(&error));
            FromOwner::Settled { request, result }
        }));
    }

    fn settle_by_ids(&mut self, request: u64, settle: SettleByIds) {
        let count = settle.ids.len();
        let (reply, results) = Pending::channel(count, all_gone);
        let command = Command::Settle(settle, reply);
        self.registry.send(&self.name, command);
        self.answers.push(Box::pin(async move {
            let results = results
                .await
                .into_iter()
                .map(|result| result.map_err(|error| WireSettleError::of(&error)))
                .collect();
            FromOwner::SettledByIds { request, results }
        }));
    }

    fn ack_publish(&mut self, request: u64, leases: &[Lease], events: AtomicBatch) {
        let named: Vec<LeaseId> = leases
            .iter()
            .filter_map(|lease| Some(self.lease(*lease)?.1))
            .collect();
        let (reply, answer) = oneshot::channel();
        if let Some((proxy, _)) = leases.first().and_then(|lease| self.lease(*lease)) {
            let message = AckPublishRequest {
                leases: named,
                events,
                reply,
            };
            let message = Message::AckPublish(Box::new(message));
            proxy.membership.inbox.push(message);
        }
        self.await_ack_publish(request, answer);
    }

    fn ack_publish_by_ids(&mut self, request: u64, member: MemberId, step: AckPublishByIds) {
        let (reply, answer) = oneshot::channel();
        let command = Command::AckPublish(self.asker(member), vec![(step, reply)]);
        self.registry.send(&self.name, command);
        self.await_ack_publish(request, answer);
    }

    fn await_ack_publish(
        &mut self,
        request: u64,
        answer: oneshot::Receiver<crate::group::inbox::AckPublishResult>,
    ) {
        self.answers.push(Box::pin(async move {
            let result = answer
                .await
                .unwrap_or(Err(crate::error::AckPublishError::Gone));
            let result = match result {
                Ok(published) => Ok(published.iter().map(WirePublished::of).collect()),
                Err(error) => Err(WireAckPublishError::of(&error)),
            };
            FromOwner::AckPublished { request, result }
        }));
    }

    fn command(&mut self, request: u64, command: WireCommand) {
        let (registry, name) = (self.registry.clone(), self.name.clone());
        self.answers.push(Box::pin(async move {
            let result = call(&registry, &name, command).await;
            let result = result.map_err(|error| WireGroupError::of(&error));
            FromOwner::Replied { request, result }
        }));
    }
}

async fn call(
    registry: &Registry,
    name: &GroupName,
    command: WireCommand,
) -> Result<WireReply, GroupError> {
    let info = |info| WireReply::Info(Box::new(info));
    match command {
        WireCommand::Describe => registry.call(name, Command::Describe).await.map(info),
        WireCommand::Explain => {
            let explained = registry.call(name, Command::Explain).await;
            explained.map(|explained| WireReply::Explanation(Box::new(explained)))
        }
        WireCommand::Seek { place, dry_run } => {
            let seek = |reply| {
                let place = place.clone();
                Command::Seek(Seek { place, dry_run }, reply)
            };
            registry.call(name, seek).await.map(WireReply::Effect)
        }
        WireCommand::UndoSeek => {
            let effect = registry.call(name, Command::UndoSeek).await;
            effect.map(WireReply::Effect)
        }
        WireCommand::SetPaused(paused) => {
            let pause = |reply| Command::SetPaused(paused, reply);
            registry.call(name, pause).await.map(info)
        }
        WireCommand::Configure(settings) => {
            let request = settings.into_request();
            let configure = |reply| Command::Configure(request.clone(), reply);
            let configured = registry.call(name, configure).await;
            configured.map(|()| WireReply::Done)
        }
        WireCommand::Remove => {
            let remove = |reply| Command::Remove(Ended::GroupRemoved, reply);
            registry.call(name, remove).await.map(|()| WireReply::Done)
        }
    }
}

/// Passes on what one member gets, until the owner is gone: which partitions it has, and leases.
async fn pass_on(
    core: Arc<Core>,
    member: MemberId,
    subscriber: Arc<Subscriber>,
    sender: LinkSender,
) {
    loop {
        let taken = tokio::select! {
            taken = subscriber.take() => taken,
            Some(assignment) = subscriber.next_assignment() => {
                if !sender.send(assigned(member, assignment)).await {
                    return;
                }
                continue;
            }
        };
        // Partitions are told of before their events come.
        while let Some(assignment) = subscriber.take_assignment() {
            if !sender.send(assigned(member, assignment)).await {
                return;
            }
        }
        let Some(first) = taken else {
            break;
        };
        let more = subscriber.take_ready(MAX_GRANTS - 1);
        let now_ms = core.monotonic_ms();
        let leases = std::iter::once(first).chain(more);
        let leases = leases.map(|taken| granted(&taken, now_ms)).collect();
        let at_ms = now_ms;
        let grants = FromOwner::Grants {
            member,
            at_ms,
            leases,
        };
        if !sender.send(encode(&grants, &[])).await {
            return;
        }
    }
    let reason = WireEnded::of(subscriber.ended().unwrap_or(Ended::BusClosed));
    sender.send(encode(&FromOwner::Ended { reason }, &[])).await;
}

fn assigned(member: MemberId, assignment: Assignment) -> Vec<u8> {
    let message = FromOwner::Assignment {
        member,
        revoked: assignment.revoked,
        assigned: assignment.assigned,
    };
    encode(&message, &[])
}

fn granted(taken: &TakenEvent, now_ms: u64) -> Grant {
    let leased = &taken.leased;
    Grant {
        seq: leased.event.seq(),
        number: leased.number,
        attempt: leased.attempt,
        max_attempts: leased.max_attempts,
        left_ms: leased.deadline_ms.saturating_sub(now_ms),
        timeout_ms: leased.timeout_ms,
    }
}
