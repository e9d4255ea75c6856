//! Relaying: what an owner does while another node has its group and this one has members of it. It passes on what they ask
//! for, and hands out what the other node leases to them; `group/relay.rs` has the picture.
//!
//! A link that breaks, or on which nothing came for a while, ends one turn of this; the group's record then says what comes
//! next: the same node again, another one, or this one, which goes on with the members that it has.

mod grants;
mod messages;
mod requests;

use super::{Existence, FlushSchedule, Member, Owner, Stop};
use crate::error::{AckPublishError, GroupError, OwnedElsewhere};
use crate::group::Ended;
use crate::group::ownership::Nodes;
use crate::group::relay::{
    FromOwner, FromRelay, LINK_SILENT, LINK_TIMEOUT, LinkReceiver, LinkSender, NodeLink, WireEnded,
    WireHeld, WireJoin, WireSettings, decode, encode,
};
use crate::group::state::{GroupState, HeldLease, MemberId};
use grants::{GrantedRead, WaitingGrant};
use prombus_interface::StartAt;
use requests::Request;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long it rests where the other node cannot be reached.
const DIAL_REST: Duration = Duration::from_millis(200);
/// How long a relay waits for something to deliver to followers of a pattern before it makes room for their other topics.
const CROWDED_REST_MS: u64 = 500;
/// How long it rests where the group can be neither taken nor relayed.
const LOAD_REST: Duration = Duration::from_millis(500);

/// What a node knows of its members' leases while another node has their group.
#[derive(Default)]
pub(super) struct Relay {
    /// The node that has the group.
    owner: String,
    /// What members hold, or have in their mailboxes.
    held: BTreeMap<(MemberId, u64), HeldLease>,
    /// The first moment at which one of these may run out.
    expiry_ms: Option<u64>,
    /// Leases whose events are yet to be read here.
    grants: VecDeque<WaitingGrant>,
    reading: Option<GrantedRead>,
    /// What was asked of the other node and is not answered.
    requests: BTreeMap<u64, Request>,
    next_request: u64,
    /// Messages that wait for room on the link: bounded by what members hold and by the callers of commands.
    outgoing: VecDeque<Vec<u8>>,
    /// The limit and readiness of each member that the other node knows.
    credits: BTreeMap<MemberId, (usize, bool)>,
    /// What has to be added to the other node's monotonic time to get this one's, on this link.
    clock_ms: Option<i64>,
    /// The partitions that each member has.
    partitions: BTreeMap<MemberId, BTreeSet<u32>>,
}

/// How a turn of relaying ends.
pub(super) enum Relayed {
    /// The group's record is to be looked at again.
    Again,
    /// There is no member any more, and nobody asks for anything.
    Retired,
    Stop(Stop),
}

impl Owner {
    /// Takes the group, or relays it while another node has it; `None` when it is this node's, with the members it has.
    pub(super) async fn load_or_relay(&mut self) -> Option<Relayed> {
        let mut closing = self.core.closing();
        loop {
            let error = match self.load().await {
                Ok(()) => return self.resume_members(),
                Err(error) => error,
            };
            let rest = match error {
                GroupError::OwnedElsewhere(elsewhere) if self.may_relay() => {
                    match self.relay(&elsewhere).await {
                        Relayed::Again => DIAL_REST,
                        relayed => return Some(relayed),
                    }
                }
                error if self.members.is_empty() => {
                    self.fail_waiting(&error);
                    return Some(Relayed::Stop(Stop::Abandoning(Ended::TakenOver)));
                }
                error => {
                    self.fail_waiting(&error);
                    LOAD_REST
                }
            };
            tokio::select! {
                () = tokio::time::sleep(rest) => {}
                () = closing.closed() => return Some(Relayed::Stop(Stop::Closing)),
            }
        }
    }

    pub(super) fn may_relay(&self) -> bool {
        let nodes = self.core.nodes.as_ref();
        !self.name.ephemeral && nodes.is_some_and(|nodes| nodes.dialer().is_some())
    }

    /// Goes on as the owner with the members that were relayed until now, and with what they hold.
    fn resume_members(&mut self) -> Option<Relayed> {
        let relay = self.relay.take()?;
        if self.members.is_empty() {
            return None;
        }
        if self.existence == Existence::Absent {
            self.relay = Some(relay);
            return Some(Relayed::Stop(Stop::Abandoning(Ended::GroupRemoved)));
        }
        self.rejoin_members();
        let now_ms = self.now_ms();
        let Relay { held, requests, .. } = *relay;
        for ((member, _), lease) in held {
            if !self.state.adopt(member, None, lease, now_ms) {
                self.release_credit(member, 1);
            }
        }
        for (_, request) in requests {
            for message in request.into_messages() {
                self.inbox.push(message);
            }
        }
        None
    }

    /// Another node has taken the group: the members stay, with what they hold.
    pub(super) async fn begin_relaying(&mut self) {
        if self.is_writing_ack_publishes() {
            // They commit or not regardless of this owner, and the members wait for the outcome.
            self.await_pending_write().await;
        }
        self.core.unwritten.settled(&self.name);
        self.reservations.clear();
        for at in (0..self.members.len()).rev() {
            let member = &self.members[at];
            let untaken = member.subscriber.reclaim(member.id, |_| true);
            self.state.release(member.id, &untaken);
            if self.members[at].via.is_some() {
                // Their own node finds the next owner.
                let member = self.members.remove(at);
                member.subscriber.credit.dequeue(&self.inbox);
                member
                    .subscriber
                    .detach_group(&self.name.topic, Ended::TakenOver);
            }
        }
        self.return_credit();
        self.revoke_all(self.state.assignments());
        let ours: BTreeSet<MemberId> = self.members.iter().map(|member| member.id).collect();
        let held = self.state.held_leases(&ours);
        let expiry_ms = held.iter().map(|(_, lease)| lease.deadline_ms).min();
        self.relay = Some(Box::new(Relay {
            held: held
                .into_iter()
                .map(|(id, lease)| ((id, lease.seq), lease))
                .collect(),
            expiry_ms,
            ..Relay::default()
        }));
        self.fail_ack_publishes(&AckPublishError::Gone);
        self.pending_read = None;
        self.pending_write = None;
        self.originals_read = None;
        self.dead_letters.clear();
        self.page = None;
        self.ownership = None;
        self.flush_schedule = FlushSchedule::default();
        self.forget_state();
    }

    fn forget_state(&mut self) {
        let mut state = GroupState::new(super::rules(&self.core, &self.name), 0, self.now_ms());
        state.resume_counts(*self.state.counts());
        self.state = state;
        self.existence = Existence::Absent;
    }

    /// One turn of relaying, over one link.
    async fn relay(&mut self, elsewhere: &OwnedElsewhere) -> Relayed {
        self.relay_mut().owner.clone_from(&elsewhere.node);
        let link = match &self.core.nodes {
            Some(nodes) => nodes.dial(&elsewhere.node).await,
            None => None,
        };
        let Some((sender, mut receiver)) = link.map(NodeLink::split) else {
            let error = GroupError::OwnedElsewhere(elsewhere.clone());
            self.fail_waiting(&error);
            return if self.members.is_empty() && self.retire() {
                Relayed::Retired
            } else {
                Relayed::Again
            };
        };
        tracing::info!(topic = %self.name.topic, group = %self.name.group, node = %elsewhere.node, "relaying a group's members");
        let counted = self.core.nodes.as_ref().map(Nodes::count_relayed);
        self.begin_link();
        let relayed = self.serve_link(&sender, &mut receiver).await;
        self.end_link();
        drop(counted);
        tracing::info!(topic = %self.name.topic, group = %self.name.group, node = %elsewhere.node, "the relay's link ended");
        relayed
    }

    async fn serve_link(&mut self, sender: &LinkSender, receiver: &mut LinkReceiver) -> Relayed {
        let mut heard = Instant::now();
        loop {
            let now_ms = self.now_ms();
            let is_delisted = self.inbox.is_delisted();
            self.drain_relayed(now_ms);
            if is_delisted {
                self.say_goodbye(sender).await;
                return Relayed::Stop(Stop::Closing);
            }
            self.expire_held(now_ms);
            self.tell_credits();
            self.read_granted();
            if !self.send_waiting(sender) {
                return Relayed::Again;
            }
            if self.is_relay_idle() && self.say_goodbye(sender).await {
                return Relayed::Retired;
            }
            if self.is_relay_dormant(now_ms) && self.say_goodbye(sender).await {
                self.leave_followers();
                return Relayed::Retired;
            }
            let silent_at = heard + LINK_SILENT;
            let expiry_ms = self.relay_mut().expiry_ms;
            let expiry_ms = expiry_ms
                .into_iter()
                .chain(self.relay_dormant_at_ms())
                .min();
            let expiry_at = expiry_ms.map_or(silent_at, |at_ms| {
                Instant::now() + Duration::from_millis(at_ms.saturating_sub(now_ms))
            });
            let Self {
                inbox, relay, tail, ..
            } = self;
            let relay = relay.get_or_insert_default();
            let is_behind = relay.reading.is_none() && relay.grants.front().is_some();
            tokio::select! {
                biased;
                message = receiver.recv() => {
                    heard = Instant::now();
                    let Some((message, _)) = message.as_deref().and_then(decode::<FromOwner>) else {
                        return Relayed::Again;
                    };
                    if let Some(relayed) = self.handle_answer(message) {
                        return relayed;
                    }
                }
                page = grants::done(&mut relay.reading) => self.hand_out(page),
                () = inbox.arrived() => {}
                _ = tail.moved(), if is_behind => {}
                is_open = sender.ready(), if !relay.outgoing.is_empty() => {
                    if !is_open {
                        return Relayed::Again;
                    }
                }
                () = tokio::time::sleep_until(silent_at.min(expiry_at)) => {
                    if silent_at <= Instant::now() {
                        return Relayed::Again;
                    }
                }
            }
        }
    }

    /// Tells the other node which members there are and what they hold, and asks again what it has not answered.
    fn begin_link(&mut self) {
        let Some(nodes) = self.core.nodes.clone() else {
            return;
        };
        let hello = self.hello(&nodes);
        self.send(&hello);
        let now_ms = self.now_ms();
        let members: Vec<Member> = std::mem::take(&mut self.members);
        for member in &members {
            let join = self.rejoin(member, now_ms);
            let request = self.request(Request::Rejoin);
            self.send(&FromRelay::Join {
                request,
                member: member.id,
                join: Box::new(join),
            });
        }
        self.members = members;
        self.send(&FromRelay::Reported);
        self.ask_again();
    }

    fn hello(&self, nodes: &Arc<Nodes>) -> FromRelay {
        FromRelay::Hello {
            topic: self.name.topic.clone(),
            group: self.name.group.clone(),
            node: nodes.me().node,
            boot: nodes.me().boot,
            name: nodes.describe_me(),
        }
    }

    fn rejoin(&mut self, member: &Member, now_ms: u64) -> WireJoin {
        let (limit, is_open) = (
            member.subscriber.credit.limit(),
            member.subscriber.is_open(),
        );
        let relay = self.relay_mut();
        relay.credits.insert(member.id, (limit, is_open));
        let in_hands = relay.held.range((member.id, 0)..=(member.id, u64::MAX));
        let in_hands = in_hands.map(|(_, lease)| *lease);
        let settling = relay
            .requests
            .values()
            .flat_map(|request| request.leases_of(member.id));
        let held = in_hands.chain(settling).map(|lease| WireHeld {
            seq: lease.seq,
            number: lease.number,
            attempt: lease.attempt,
            left_ms: lease.deadline_ms.saturating_sub(now_ms),
        });
        WireJoin {
            name: member.subscriber.name.clone(),
            batch_size: member.subscriber.batch_size,
            limit,
            is_open,
            start_at: StartAt::Latest,
            held: held.collect(),
            settings: WireSettings::with_ack_timeout(member.ack_timeout_ms),
            pattern: None,
        }
    }

    /// The link is over. What members have not looked at is not theirs any more; what they hold stays theirs.
    fn end_link(&mut self) {
        let mut revoked = BTreeMap::new();
        for at in 0..self.members.len() {
            let (id, subscriber) = (self.members[at].id, self.members[at].subscriber.clone());
            let untaken = subscriber.reclaim(id, |_| true);
            for (seq, _) in untaken {
                if self.relay_mut().held.remove(&(id, seq)).is_some() {
                    self.release_credit(id, 1);
                }
            }
            let had = self.relay_mut().partitions.remove(&id).unwrap_or_default();
            revoked.insert(id, had.into_iter().collect());
        }
        self.revoke_all(revoked);
        let relay = self.relay_mut();
        relay.grants.clear();
        relay.reading = None;
        relay.outgoing.clear();
        relay.credits.clear();
        relay.clock_ms = None;
        relay.requests.retain(|_, request| request.outlives_link());
    }

    fn handle_answer(&mut self, message: FromOwner) -> Option<Relayed> {
        match message {
            FromOwner::Beat { at_ms } => self.compare_clocks(at_ms),
            FromOwner::Grants {
                member,
                at_ms,
                leases,
            } => {
                self.compare_clocks(at_ms);
                self.granted(member, at_ms, leases);
            }
            FromOwner::Assignment {
                member,
                revoked,
                assigned,
            } => self.assigned(member, revoked, assigned),
            FromOwner::Ended { reason } => {
                let reason = match reason {
                    WireEnded::BusClosed | WireEnded::TakenOver => return Some(Relayed::Again),
                    WireEnded::TopicDeleted => Ended::TopicDeleted,
                    WireEnded::GroupRemoved => Ended::GroupRemoved,
                };
                if reason == Ended::GroupRemoved {
                    self.confirm_removal();
                }
                return Some(Relayed::Stop(Stop::Abandoning(reason)));
            }
            answer => return self.answered(answer),
        }
        None
    }

    /// A message that took little time tells best how far the other node's clock is ahead; a slow one must not make leases
    /// longer than they are.
    fn compare_clocks(&mut self, at_ms: u64) {
        let behind_ms = self.now_ms() as i64 - at_ms as i64;
        let clock = &mut self.relay_mut().clock_ms;
        *clock = Some(clock.map_or(behind_ms, |least| least.min(behind_ms)));
    }

    /// Whether all members follow a pattern and there was nothing to do for them for a while, or others of their topics wait.
    fn is_relay_dormant(&mut self, now_ms: u64) -> bool {
        let relay = self.relay.get_or_insert_default();
        let is_at_rest =
            relay.held.is_empty() && relay.grants.is_empty() && relay.requests.is_empty();
        if !is_at_rest || !self.has_only_followers() || self.inbox.has_commands() {
            self.idle_since_ms = None;
            return false;
        }
        self.idle_since_ms.get_or_insert(now_ms);
        self.relay_dormant_at_ms()
            .is_some_and(|at_ms| at_ms <= now_ms)
    }

    /// When it leaves the other node, should nothing happen until then.
    fn relay_dormant_at_ms(&self) -> Option<u64> {
        if self.is_crowded() {
            Some(self.idle_since_ms?.saturating_add(CROWDED_REST_MS))
        } else {
            self.dormant_at_ms()
        }
    }

    /// Whether there is nothing left to relay.
    fn is_relay_idle(&mut self) -> bool {
        self.members.is_empty()
            && !self.inbox.has_commands()
            && self.relay_mut().requests.is_empty()
    }

    /// Says that no member holds anything, and goes off the list where nobody has just asked for something.
    async fn say_goodbye(&mut self, sender: &LinkSender) -> bool {
        let now_ms = self.now_ms();
        self.drain_relayed(now_ms);
        if !self.members.is_empty() && !self.core.is_closed() && !self.is_relay_dormant(now_ms) {
            return false;
        }
        if !self.core.is_closed() && !self.retire() {
            return false;
        }
        self.send(&FromRelay::Goodbye);
        let waiting = std::mem::take(&mut self.relay_mut().outgoing);
        let sending = async {
            for message in waiting {
                if !sender.send(message).await {
                    break;
                }
            }
        };
        // A node that does not read finds out by itself that this one is gone.
        let _ = tokio::time::timeout(LINK_TIMEOUT, sending).await;
        true
    }

    /// Ends the service of a group that another node has.
    pub(super) async fn stop_relaying(mut self, stop: Stop) {
        let reason = match stop {
            Stop::Closing => Ended::BusClosed,
            Stop::Abandoning(reason) => reason,
        };
        let held = std::mem::take(&mut self.relay_mut().held);
        for (member, _) in held.keys() {
            self.release_credit(*member, 1);
        }
        let members = std::mem::take(&mut self.members);
        self.inbox.close();
        for member in members {
            member.subscriber.reclaim(member.id, |_| true);
            member.subscriber.credit.dequeue(&self.inbox);
            member.subscriber.detach_group(&self.name.topic, reason);
        }
        if let Some(registry) = self.registry.upgrade() {
            let is_stored = !matches!(reason, Ended::TopicDeleted | Ended::GroupRemoved);
            registry.remove(&self.name, is_stored, &self.inbox);
            registry.outdate_directory();
        }
        if let Stop::Closing = stop {
            self.fail_all_commands(&GroupError::Closed);
        }
    }

    /// Puts a message in line.
    fn send(&mut self, message: &FromRelay) {
        self.send_with(message, &[]);
    }

    fn send_with(&mut self, message: &FromRelay, body: &[u8]) {
        let message = encode(message, body);
        self.relay_mut().outgoing.push_back(message);
    }

    /// Sends what there is room for; `false` where the link is over.
    fn send_waiting(&mut self, sender: &LinkSender) -> bool {
        let outgoing = &mut self.relay_mut().outgoing;
        while let Some(message) = outgoing.pop_front() {
            if let Err(returned) = sender.try_send(message) {
                outgoing.push_front(returned);
                return !sender.is_over();
            }
        }
        true
    }

    fn release_credit(&self, member: MemberId, count: usize) {
        if let Some(member) = self.members.iter().find(|one| one.id == member) {
            member.subscriber.credit.release(count, &self.inbox);
        }
    }

    fn relay_mut(&mut self) -> &mut Relay {
        self.relay.get_or_insert_default()
    }
}
