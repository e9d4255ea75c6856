//! The subscriptions of one connection: looked up by topic and group, and polled round robin.

use super::outbound::Outbound;
use super::publish_batch::write_api_error;
use super::waker::SubscriptionWaker;
use crate::api_error::ApiError;
use crate::gateway::Gateway;
use crate::in_flight::{InFlight, Transport};
use crate::limits::{ConnectionLimits, Limit};
use prombus::{Delivery, Ended, Subscription, SubscriptionControl};
use prombus_api::Code;
use prombus_api::frames::{DeliveryContext, Partitions, write_assign, write_event, write_revoke};
use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// The most subscriptions of one connection.
pub(super) const MAX_SUBSCRIPTIONS: usize = 1_024;
/// The most events that one subscription may hand over before it is the next one's turn.
const TURN_EVENTS: u32 = 256;

/// All subscriptions of a connection.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    all: Vec<Member>,
    next_number: u64,
    /// Whose turn it is.
    turn: usize,
    /// The one that was named last, for acknowledgements mostly name the same again.
    latest: Cell<usize>,
    /// The client does not read, so that nothing is leased to them.
    is_stalled: bool,
    /// Deliveries on their way from a subscription to the socket; empty in between.
    deliveries: Vec<Delivery>,
}

/// One subscription.
#[derive(Debug)]
pub(super) struct Member {
    /// Its number among those that this connection ever had.
    pub(super) number: u64,
    /// The topic or pattern as the client named it.
    pub(super) topic: Arc<str>,
    pub(super) group: Arc<str>,
    /// Additional topics (fan-in).
    pub(super) more_topics: Vec<String>,
    pub(super) is_ephemeral: bool,
    pub(super) control: SubscriptionControl,
    pub(super) in_flight: InFlight,
    subscription: Subscription,
    woken: Arc<SubscriptionWaker>,
    waker: Waker,
    /// Whether it may have something.
    is_ready: bool,
    /// Since when it was waited for, where it had nothing.
    idle_since_ms: u64,
}

/// How far delivering came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivered {
    /// Nothing is left.
    All,
    /// There may be more.
    More,
    /// The rate limit allows the next one then.
    Throttled { again_ms: u64 },
}

impl Member {
    pub(super) fn new(
        (topic, group): (Arc<str>, Option<Arc<str>>),
        more_topics: Vec<String>,
        subscription: Subscription,
        task: Waker,
        now_ms: u64,
    ) -> Self {
        let is_ephemeral = group.is_none();
        let group = group.unwrap_or_else(|| subscription.group().into());
        let woken = SubscriptionWaker::new(task);
        Self {
            number: 0,
            topic,
            more_topics,
            is_ephemeral,
            control: subscription.control(),
            in_flight: InFlight::new(group.clone(), Transport::WebSocket),
            group,
            subscription,
            waker: woken.clone().into(),
            woken,
            is_ready: true,
            idle_since_ms: now_ms,
        }
    }

    /// Every topic and pattern that it is about.
    pub(super) fn topics(&self) -> impl Iterator<Item = &str> {
        topics(&self.topic, &self.more_topics)
    }

    /// Whether it is about one topic and no pattern.
    pub(super) fn is_of_one_topic(&self) -> bool {
        self.more_topics.is_empty() && !prombus::Pattern::is_pattern(&self.topic)
    }

    /// The error for a subscription that ended by itself.
    fn ending(&self) -> ApiError {
        let (code, reason) = match self.subscription.ended() {
            Some(Ended::TopicDeleted) => (Code::UnknownTopic, "topic deleted"),
            Some(Ended::GroupRemoved) => (Code::NotSubscribed, "group removed"),
            Some(Ended::TakenOver) => (Code::LeaseLost, "group taken over by another server"),
            Some(Ended::BusClosed | Ended::Unsubscribed) | None => {
                (Code::ShuttingDown, "server is shutting down")
            }
        };
        let (topic, group) = (&self.topic, &self.group);
        ApiError::new(
            code,
            format!("subscription of group {group} to {topic} ended: {reason}"),
        )
    }
}

/// A topic, unless it is empty and others are named, and the others.
pub(super) fn topics<'a>(topic: &'a str, more: &'a [String]) -> impl Iterator<Item = &'a str> {
    let topic = Some(topic).filter(|topic| !topic.is_empty() || more.is_empty());
    topic.into_iter().chain(more.iter().map(String::as_str))
}

impl Subscriptions {
    pub(super) fn add(&mut self, mut member: Member) {
        member.number = self.next_number;
        self.next_number += 1;
        if self.is_stalled {
            member.control.set_stalled(true);
        }
        self.all.push(member);
    }

    /// Stops leasing to all of them, or goes on.
    pub(super) fn set_stalled(&mut self, is_stalled: bool) {
        self.is_stalled = is_stalled;
        for member in &self.all {
            member.control.set_stalled(is_stalled);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Member> {
        self.all.iter()
    }

    /// Whether nothing is delivered and not settled.
    pub(super) fn is_settled(&self) -> bool {
        self.all.iter().all(|member| member.in_flight.is_empty())
    }

    /// The subscription with these names.
    pub(super) fn find(&self, topic: &str, group: &str) -> Option<&Member> {
        let is_named = |member: &Member| *member.topic == *topic && *member.group == *group;
        self.look_for(is_named)
    }

    /// The subscription that events come through, and their topic. Events of a pattern can be named by the pattern, and
    /// then their topic is not known yet, or by their own topic.
    pub(super) fn find_for<'a>(
        &'a self,
        topic: &'a str,
        group: &str,
    ) -> Result<(&'a Member, Option<&'a str>), ApiError> {
        if let Some(member) = self.find(topic, group) {
            return Ok((member, Some(topic).filter(|_| member.is_of_one_topic())));
        }
        let serves =
            |member: &Member| *member.group == *group && member.control.is_member_of(topic);
        let member = self.look_for(serves).ok_or_else(|| unknown(topic, group))?;
        Ok((member, Some(topic)))
    }

    /// The subscription with these names, or an error.
    pub(super) fn named(&self, topic: &str, group: &str) -> Result<&Member, ApiError> {
        self.find(topic, group).ok_or_else(|| unknown(topic, group))
    }

    pub(super) fn by_number(&self, number: u64) -> Option<&Member> {
        self.all.iter().find(|member| member.number == number)
    }

    pub(super) fn in_flight_of(&mut self, number: u64) -> Option<&mut InFlight> {
        let member = self.all.iter_mut().find(|member| member.number == number);
        member.map(|member| &mut member.in_flight)
    }

    fn look_for(&self, is_meant: impl Fn(&Member) -> bool) -> Option<&Member> {
        let latest = self.all.get(self.latest.get());
        if latest.is_some_and(&is_meant) {
            return latest;
        }
        let at = self.all.iter().position(is_meant)?;
        self.latest.set(at);
        self.all.get(at)
    }

    /// Ends a subscription: its leases are free at once.
    pub(super) fn remove(&mut self, gateway: &Gateway, number: u64) -> Option<Member> {
        let at = self.all.iter().position(|member| member.number == number)?;
        let mut member = self.all.swap_remove(at);
        member.in_flight.end(gateway, member.is_ephemeral);
        Some(member)
    }

    pub(super) fn clear(&mut self, gateway: &Gateway) {
        while let Some(number) = self.all.first().map(|member| member.number) {
            self.remove(gateway, number);
        }
    }

    /// Forgets deliveries whose leases have run out.
    pub(super) fn expire(&mut self, monotonic_ms: u64) {
        for member in &mut self.all {
            member.in_flight.expire(monotonic_ms);
        }
    }

    /// Writes events until `limit_bytes` wait to be sent or there are none, each subscription in turn.
    pub(super) fn deliver(
        &mut self,
        gateway: &Gateway,
        limits: &mut ConnectionLimits,
        outbound: &mut Outbound,
        limit_bytes: usize,
    ) -> Delivered {
        let now_ms = gateway.monotonic_ms();
        for _ in 0..self.all.len() {
            let Some(room) = limit_bytes
                .checked_sub(outbound.waiting())
                .filter(|&room| room > 0)
            else {
                return Delivered::More;
            };
            self.turn = (self.turn + 1) % self.all.len().max(1);
            let Some(member) = self.all.get_mut(self.turn) else {
                break;
            };
            member.is_ready |= member.woken.take_woken();
            if !member.is_ready {
                continue;
            }
            let granted = match limits.deliver(TURN_EVENTS, now_ms) {
                Ok(granted) => granted,
                Err(retry) => {
                    gateway
                        .metrics
                        .rate_limited(Limit::ConnDelivery)
                        .increment();
                    for topic in member.control.topics() {
                        gateway
                            .throttled
                            .record(topic, member.group.clone(), now_ms);
                    }
                    let again_ms = now_ms.saturating_add(retry.ms);
                    return Delivered::Throttled { again_ms };
                }
            };
            member.write_assignments(outbound);
            let polled = member.poll(granted, room, &mut self.deliveries);
            limits.give_back_deliveries(granted - self.deliveries.len() as u32);
            match polled {
                Poll::Ready(true) => {
                    member.write(gateway, outbound, &mut self.deliveries, now_ms);
                }
                Poll::Pending => {
                    member.is_ready = false;
                    member.idle_since_ms = now_ms;
                }
                Poll::Ready(false) => {
                    let number = member.number;
                    write_api_error(outbound, &member.ending(), None);
                    self.remove(gateway, number);
                }
            }
        }
        if self.all.iter().any(|member| member.is_ready) {
            Delivered::More
        } else {
            Delivered::All
        }
    }
}

impl Member {
    fn poll(&self, limit: u32, limit_bytes: usize, deliveries: &mut Vec<Delivery>) -> Poll<bool> {
        let mut context = Context::from_waker(&self.waker);
        self.subscription
            .poll_batch(&mut context, limit as usize, limit_bytes, deliveries)
    }

    /// Tells which partitions it has from now on, before their events.
    fn write_assignments(&self, outbound: &mut Outbound) {
        while let Some(assignment) = self.subscription.take_assignment() {
            for (partitions, write) in [
                (
                    assignment.revoked,
                    write_revoke as fn(&mut Vec<u8>, &Partitions<'_>),
                ),
                (assignment.assigned, write_assign),
            ] {
                if partitions.is_empty() {
                    continue;
                }
                let frame = Partitions {
                    topic: Cow::Borrowed(&assignment.topic),
                    group: Cow::Borrowed(&self.group),
                    partitions,
                };
                outbound.frame(|out| write(out, &frame));
            }
        }
    }

    fn write(
        &mut self,
        gateway: &Gateway,
        outbound: &mut Outbound,
        deliveries: &mut Vec<Delivery>,
        now_ms: u64,
    ) {
        let now = gateway.now();
        self.in_flight.expire(now.monotonic_ms);
        if let Some(first) = deliveries.first() {
            let waited_ms = now_ms.saturating_sub(self.idle_since_ms);
            self.in_flight.polled(gateway, first, waited_ms);
            self.idle_since_ms = now_ms;
        }
        for delivery in deliveries.drain(..) {
            let context = DeliveryContext {
                attempt: delivery.context.attempt,
                max_attempts: delivery.context.max_attempts,
                ack_deadline_ms: delivery.context.ack_deadline_ms,
                shadow: delivery.context.shadow,
            };
            outbound.reserve(delivery.event.stored_bytes());
            outbound.frame(|out| {
                write_event(
                    out,
                    &self.topic,
                    &self.group,
                    delivery.event.json_bytes(),
                    context,
                );
            });
            self.in_flight.deliver(gateway, &delivery, now);
        }
    }
}

fn unknown(topic: &str, group: &str) -> ApiError {
    ApiError::new(
        Code::NotSubscribed,
        format!("group {group:?} is not subscribed to {topic:?} on this connection"),
    )
}
