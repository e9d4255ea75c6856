//! The group member that serves pulls over HTTP.

use crate::gateway::Gateway;
use crate::in_flight::{InFlight, MIN_EXTEND_MS, Now, Transport};
use crate::metrics::GroupSeries;
use prombus::LockExt;
use prombus::{Clock, Delivery, SettleOp, Subscription, SubscriptionControl};
use std::sync::{Arc, Mutex, MutexGuard};

/// One group as it is pulled.
pub(in crate::http) struct PullConsumer {
    subscription: Subscription,
    series: Arc<GroupSeries>,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

struct State {
    /// How many requests use it, also while they wait for the delivery limit. It is kept while there are some: their
    /// leases would end with it.
    users: usize,
    /// How many pulls are waiting or taking.
    pulls: usize,
    /// How many events they want together.
    wanted: usize,
    /// Until then there may be leases.
    keep_until_ms: u64,
    /// The lease that the last pull wanted.
    ack_timeout_ms: Option<u64>,
    /// Bounded by what pulls ask for within one lease.
    in_flight: InFlight,
}

/// A request that uses a consumer.
pub(in crate::http) struct ConsumerGuard(Arc<PullConsumer>);

impl ConsumerGuard {
    /// Must be called where no sweep can come between finding the consumer and using it.
    pub(super) fn new(consumer: Arc<PullConsumer>) -> Self {
        consumer.state().users += 1;
        Self(consumer)
    }
}

impl std::ops::Deref for ConsumerGuard {
    type Target = PullConsumer;

    fn deref(&self) -> &PullConsumer {
        &self.0
    }
}

impl Drop for ConsumerGuard {
    fn drop(&mut self) {
        self.0.state().users -= 1;
    }
}

/// A pull that wants events. Letting go of it is how it stops wanting.
pub(super) struct ActivePull<'a> {
    consumer: &'a PullConsumer,
    count: usize,
}

impl PullConsumer {
    pub(super) fn new(
        gateway: &Gateway,
        topic: &str,
        subscription: Subscription,
        ack_timeout_ms: Option<u64>,
    ) -> Self {
        subscription.pause();
        let series = gateway.metrics.group(topic, subscription.group());
        let state = State {
            users: 0,
            pulls: 0,
            wanted: 0,
            keep_until_ms: 0,
            ack_timeout_ms,
            in_flight: InFlight::new(subscription.group().into(), Transport::Pull),
        };
        Self {
            subscription,
            series,
            clock: gateway.options.clock.clone(),
            state: Mutex::new(state),
        }
    }

    /// Wants `count` events more.
    pub(super) fn ask(&self, count: usize) -> ActivePull<'_> {
        let mut state = self.state();
        state.pulls += 1;
        state.wanted += count;
        // Under the lock, so that a pull that ends at the same moment does not pause this one.
        self.control().request(state.wanted);
        self.subscription.resume();
        drop(state);
        ActivePull {
            consumer: self,
            count,
        }
    }

    /// The next event.
    pub(super) async fn next(&self) -> Option<Delivery> {
        self.subscription.next().await
    }

    /// Settles by id.
    pub(in crate::http) fn control(&self) -> SubscriptionControl {
        self.subscription.control()
    }

    /// Whether no more events come: the group or its topic is gone.
    pub(super) fn is_ended(&self) -> bool {
        self.subscription.ended().is_some()
    }

    /// Whether there are no pulls and no leases.
    pub(super) fn is_idle(&self) -> bool {
        let mut state = self.state();
        let now_ms = self.clock.monotonic_ms();
        state.in_flight.expire(now_ms);
        state.users == 0 && state.in_flight.is_empty() && state.keep_until_ms <= now_ms
    }

    /// Gives the leases to come the length that a pull wants, where that is another than the last one wanted.
    pub(super) fn set_ack_timeout(&self, wanted_ms: Option<u64>) {
        let mut state = self.state();
        let before_ms = std::mem::replace(&mut state.ack_timeout_ms, wanted_ms);
        if before_ms != wanted_ms {
            self.control().set_ack_timeout(wanted_ms);
        }
    }

    /// Adds what a pull got to the events in flight.
    pub(super) fn delivered(&self, gateway: &Gateway, deliveries: &[Delivery], began_ms: u64) {
        let now = gateway.now();
        let mut state = self.state();
        state.in_flight.expire(now.monotonic_ms);
        for delivery in deliveries {
            let lease_ms = delivery.context.ack_deadline_ms;
            state.keep_until(now, lease_ms);
            state.in_flight.deliver(gateway, delivery, now);
        }
        drop(state);
        let waited_ms = now.monotonic_ms.saturating_sub(began_ms);
        self.series.poll.observe_ms(waited_ms);
    }

    /// Records that an event was settled or its lease extended.
    pub(in crate::http) fn settled(&self, id: &str, op: &SettleOp, now: Now) {
        let mut state = self.state();
        if let SettleOp::Extend { extend_ms } = op {
            state.keep_until(now, extend_ms.unwrap_or(0).max(MIN_EXTEND_MS));
        }
        let hash = state.in_flight.hash(id);
        state.in_flight.settle(hash, op, now);
    }

    /// Records that an event was acknowledged atomically with publishing.
    pub(in crate::http) fn ack_published(&self, gateway: &Gateway, topic: &str, id: &str) {
        let mut state = self.state();
        let hash = state.in_flight.hash(id);
        state
            .in_flight
            .ack_published(gateway, topic, hash, gateway.now());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.guard()
    }
}

impl Drop for ActivePull<'_> {
    fn drop(&mut self) {
        let mut state = self.consumer.state();
        state.pulls -= 1;
        state.wanted -= self.count;
        let left = state.wanted;
        self.consumer.control().request(left);
        if state.pulls == 0 {
            // What was not taken goes to other members, or waits for the next pull.
            self.consumer.subscription.pause();
        }
    }
}

impl State {
    fn keep_until(&mut self, now: Now, lease_ms: u64) {
        let until_ms = now.monotonic_ms.saturating_add(lease_ms);
        self.keep_until_ms = self.keep_until_ms.max(until_ms);
    }
}
