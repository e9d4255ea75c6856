//! Subscriptions: a stream of deliveries from one topic or many, each to be acknowledged.

mod ack_publish;
mod delivery;
mod fan_in;
mod options;
pub(crate) mod pattern_group;
mod route;
mod subscribe;
mod topic_queue;

pub use ack_publish::{AckPublish, AckPublishFuture, AckPublishesFuture};
pub(crate) use delivery::Lease;
pub use delivery::{Context, Delivery};
pub use options::{SubscribeExtras, SubscribeOptions};
pub(crate) use subscribe::subscribe;

use crate::error::SettleError;
use crate::group::inbox::{Inbox, Message};
use crate::group::membership::Membership;
use crate::group::registry::Registry;
use crate::group::subscriber::{Subscriber, TakenEvent};
use crate::group::{Assignment, Ended};
use crate::pending::Pending;
use crate::schemas::Upcaster;
use prombus_interface::{Pattern, SettleOp};
use prombus_store::LockExt;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{self, Poll};
use tokio::task::AbortHandle;

/// A stream of deliveries. Letting go of it frees its leases at once; what it was not asked for yet goes back without
/// counting as delivered.
pub struct Subscription {
    control: SubscriptionControl,
}

/// A handle to a subscription that can be given to others: it pauses, resumes and settles by id. It does not keep the
/// subscription alive.
#[derive(Clone)]
pub struct SubscriptionControl {
    shared: Arc<Shared>,
}

/// What became of each event that was to be settled, in the order of their ids.
pub type SettleFuture = Pending<Vec<Result<(), SettleError>>>;

struct Shared {
    group: Arc<str>,
    ephemeral: bool,
    /// The patterns that it follows.
    patterns: Vec<Pattern>,
    /// For the groups of topics that it follows and is not served from now.
    registry: Weak<Registry>,
    /// Where the follower waits for its turn to join more topics.
    turn: Arc<Inbox>,
    /// How long leases are to be, where that was changed since.
    ack_timeout_ms: Mutex<Option<Option<u64>>>,
    subscriber: Arc<Subscriber>,
    /// Its places in the groups of its topics.
    memberships: Mutex<BTreeMap<Arc<str>, Membership>>,
    /// The group is a shadow.
    is_shadow: bool,
    /// What is done to events of earlier versions of their schemas.
    upcaster: Option<Upcaster>,
    /// The task that looks for new topics, where the subscription follows a pattern.
    follower: Mutex<Option<AbortHandle>>,
}

impl Subscription {
    /// The next delivery; `None` when no more will come, see [`Self::ended`]. Several tasks may wait at a time.
    pub async fn next(&self) -> Option<Delivery> {
        let taken = self.control.shared.subscriber.take().await?;
        Some(self.delivery(taken))
    }

    /// Waits for a delivery and takes up to `limit` that are there.
    pub async fn next_batch(&self, limit: usize) -> Vec<Delivery> {
        let Some(first) = self.next().await else {
            return Vec::new();
        };
        let more = self
            .control
            .shared
            .subscriber
            .take_ready(limit.saturating_sub(1));
        std::iter::once(first)
            .chain(more.into_iter().map(|taken| self.delivery(taken)))
            .collect()
    }

    /// Takes deliveries that are there, up to `limit` of them and until their events have `limit_bytes` together, for
    /// one task that serves many subscriptions. `Ready(false)` when no more will come; where there is none now, the
    /// task that asked last is woken by the next.
    pub fn poll_batch(
        &self,
        context: &mut task::Context<'_>,
        limit: usize,
        limit_bytes: usize,
        deliveries: &mut Vec<Delivery>,
    ) -> Poll<bool> {
        let take = |taken| deliveries.push(self.delivery(taken));
        let subscriber = &self.control.shared.subscriber;
        subscriber.poll_take(context, limit, limit_bytes, take)
    }

    /// The next change to the partitions that a partitioned subscription has; `None` when no more will come. What is
    /// assigned is reported before its events come. A member that is done with revoked partitions confirms that with
    /// [`SubscriptionControl::confirm_revoked`]; the next member gets them then, or as long after as a lease is.
    pub async fn next_assignment(&self) -> Option<Assignment> {
        self.control.shared.subscriber.next_assignment().await
    }

    /// The next change to the partitions, where there is one. [`Self::poll_batch`] wakes for it too.
    pub fn take_assignment(&self) -> Option<Assignment> {
        self.control.shared.subscriber.take_assignment()
    }

    /// Why no more deliveries come, where that is so.
    pub fn ended(&self) -> Option<Ended> {
        self.control.shared.subscriber.ended()
    }

    /// The group, also one that was made for it.
    pub fn group(&self) -> &str {
        &self.control.shared.group
    }

    /// A handle for others.
    pub fn control(&self) -> SubscriptionControl {
        self.control.clone()
    }

    fn delivery(&self, taken: TakenEvent) -> Delivery {
        let mut delivery = Delivery::new(taken);
        delivery.context.shadow = self.control.shared.is_shadow;
        if let Some(upcaster) = &self.control.shared.upcaster {
            delivery.event = upcaster.upcast(delivery.event);
        }
        delivery
    }

    /// Takes no new events until [`Self::resume`]. What was not asked for yet goes to other members.
    pub fn pause(&self) {
        self.control.pause();
    }

    /// Takes events again.
    pub fn resume(&self) {
        self.control.resume();
    }
}

impl SubscriptionControl {
    /// See [`Subscription::pause`].
    pub fn pause(&self) {
        self.shared.subscriber.pause();
    }

    /// See [`Subscription::resume`].
    pub fn resume(&self) {
        self.shared.subscriber.resume();
        self.shared.wake_owners();
    }

    /// Sets whether the consumer is stalled, for example because a client does not read. While it is, nothing is leased
    /// to it, and what it has not taken goes back to the group without counting as a delivery.
    pub fn set_stalled(&self, stalled: bool) {
        self.shared.subscriber.set_stalled(stalled);
        if !stalled {
            self.shared.wake_owners();
        }
    }

    /// Takes up to `count` more events than it holds now, whatever `max_in_flight` was. For a consumer that asks for
    /// events now and then instead of following all the time: nothing is leased that was not asked for.
    pub fn request(&self, count: usize) {
        self.shared.subscriber.credit.set_free(count);
        self.shared.wake_owners();
    }

    /// Gives the leases to come another length; `None` is that of the group.
    pub fn set_ack_timeout(&self, ack_timeout_ms: Option<u64>) {
        let memberships = self.shared.memberships();
        *self.shared.changed_ack_timeout() = Some(ack_timeout_ms);
        for membership in memberships.values() {
            let message = Message::SetAckTimeout(membership.member, ack_timeout_ms);
            membership.inbox.push(message);
        }
    }

    /// Done with partitions that were revoked: their next member gets them at once, and with them what is not settled.
    /// `false` where the subscription is not of this topic.
    pub fn confirm_revoked(&self, topic: &str, partitions: Vec<u32>) -> bool {
        let memberships = self.shared.memberships();
        let membership = memberships.get(topic);
        membership.is_some_and(|membership| {
            let message = Message::ConfirmRevoked(membership.member, partitions);
            membership.inbox.push(message)
        })
    }

    /// Whether it is paused.
    pub fn is_paused(&self) -> bool {
        self.shared.subscriber.is_paused()
    }

    /// The topics it is served from now.
    pub fn topics(&self) -> Vec<Arc<str>> {
        self.shared.memberships().keys().cloned().collect()
    }

    /// Whether it is served from this topic, now or when the topic has something for it.
    pub fn is_member_of(&self, topic: &str) -> bool {
        self.shared.memberships().contains_key(topic) || self.shared.follows(topic)
    }

    /// Acknowledges events of a topic by their ids, with one result for each. One that is settled already is fine.
    pub fn ack_ids(&self, topic: &str, ids: &[&str]) -> SettleFuture {
        self.settle_ids(topic, owned(ids), SettleOp::Ack)
    }

    /// Brings events of a topic back, after `delay_ms` or else a backoff. One that is settled already is fine.
    pub fn nack_ids(
        &self,
        topic: &str,
        ids: &[&str],
        reason: &str,
        delay_ms: Option<u64>,
    ) -> SettleFuture {
        self.settle_ids(topic, owned(ids), SettleOp::nack(reason, delay_ms))
    }

    /// Moves the deadlines of events of a topic to `max(1000, extend_ms)` from now, without a time by as much as leases
    /// are long.
    pub fn extend_ids(&self, topic: &str, ids: &[&str], extend_ms: Option<u64>) -> SettleFuture {
        self.settle_ids(topic, owned(ids), SettleOp::Extend { extend_ms })
    }

    /// Settles events of a topic by their ids, or extends their leases. The request is sent when this returns, behind
    /// everything that was sent through this handle before.
    pub fn settle_ids(&self, topic: &str, ids: Vec<String>, op: SettleOp) -> SettleFuture {
        match self.shared.route(topic) {
            Some(route) => route.settle(ids, op),
            None => Pending::known(all_gone(ids.len())),
        }
    }
}

impl Shared {
    fn memberships(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Membership>> {
        self.memberships.guard()
    }

    /// Wakes the owners, and the follower that waits to join more, after something was freed.
    fn wake_owners(&self) {
        let memberships = self.memberships();
        let inboxes = memberships.values().map(|membership| &membership.inbox);
        inboxes.for_each(|inbox| inbox.wake());
        self.turn.wake();
    }

    /// Takes a place in the group of a topic.
    fn add_membership(&self, topic: &Arc<str>, membership: Membership) {
        let mut memberships = self.memberships();
        if let Some(ack_timeout_ms) = *self.changed_ack_timeout() {
            let message = Message::SetAckTimeout(membership.member, ack_timeout_ms);
            membership.inbox.push(message);
        }
        let replaced = memberships.insert(topic.clone(), membership);
        drop(memberships);
        drop(replaced);
    }

    fn changed_ack_timeout(&self) -> MutexGuard<'_, Option<Option<u64>>> {
        self.ack_timeout_ms.guard()
    }

    /// Whether it is served from a topic by an owner that goes on.
    fn has_open_membership(&self, topic: &str) -> bool {
        let memberships = self.memberships();
        memberships
            .get(topic)
            .is_some_and(|membership| !membership.inbox.is_closed())
    }

    fn follower(&self) -> MutexGuard<'_, Option<AbortHandle>> {
        self.follower.guard()
    }
}

/// The results of an owner that is gone.
pub(crate) fn all_gone(count: usize) -> Vec<Result<(), SettleError>> {
    vec![Err(SettleError::Gone); count]
}

fn owned(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|&id| id.to_owned()).collect()
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let shared = &self.control.shared;
        if let Some(follower) = shared.follower().take() {
            follower.abort();
        }
        shared.subscriber.end(Ended::Unsubscribed);
        shared.memberships().clear();
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.control.fmt(f)
    }
}

impl fmt::Debug for SubscriptionControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("group", &self.shared.group)
            .field("topics", &self.topics())
            .finish_non_exhaustive()
    }
}
