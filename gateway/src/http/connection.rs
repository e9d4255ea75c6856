//! One client's connection as its requests see it.

use crate::gateway::Gateway;
use crate::limits::{ConnectionLimits, RateLimited};
use crate::limits::{Limit, RetryAfter};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What the requests of one connection share. Over HTTP too a connection is one TCP connection: a client that opens a
/// new one for each request has a full bucket each time, and is held by the limits of topics.
pub(super) struct Connection {
    pub(super) gateway: Arc<Gateway>,
    limits: Mutex<ConnectionLimits>,
    /// It came in by a listener that only this machine can reach.
    listens_on_loopback: bool,
}

impl Connection {
    pub(super) fn new(gateway: Arc<Gateway>, listens_on_loopback: bool) -> Self {
        let limits = ConnectionLimits::new(&gateway.options.limits, gateway.now_ms());
        Self {
            gateway,
            limits: Mutex::new(limits),
            listens_on_loopback,
        }
    }

    /// Whether the only guard is that nobody else can connect, which a page with a name of its own can get around.
    pub(super) fn serves_local_names_only(&self) -> bool {
        self.listens_on_loopback && self.gateway.auth.is_off()
    }

    /// Publishes `events` as far as the limits are concerned, or says when that may be done.
    pub(super) fn publish(&self, topic: &str, events: u32) -> Result<(), RateLimited> {
        let gateway = &self.gateway;
        let now_ms = gateway.now_ms();
        let taken = self
            .limits()
            .publish(&gateway.topic_limits, topic, events, now_ms);
        taken.inspect_err(|limited| gateway.metrics.rate_limited(limited.limit).increment())
    }

    /// Publishes `events` as far as the limits are concerned, once they allow it.
    pub(super) async fn publish_in_time(&self, topic: &str, events: u32) {
        while let Err(limited) = self.publish(topic, events) {
            tokio::time::sleep(Duration::from_millis(limited.retry.ms)).await;
        }
    }

    /// How many of `events` may be delivered, at least one; waits until that is so. What is told counts as delivered.
    pub(super) async fn deliver_in_time(&self, events: usize) -> usize {
        let wanted = u32::try_from(events).unwrap_or(u32::MAX);
        loop {
            let allowed = self.limits().deliver(wanted, self.gateway.now_ms());
            match allowed {
                Ok(count) => return count as usize,
                Err(RetryAfter { ms }) => {
                    let slowed = self.gateway.metrics.rate_limited(Limit::ConnDelivery);
                    slowed.increment();
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                }
            }
        }
    }

    /// Takes back what was not there to be delivered after all.
    pub(super) fn not_delivered(&self, events: usize) {
        let events = u32::try_from(events).unwrap_or(u32::MAX);
        self.limits().give_back_deliveries(events);
    }

    fn limits(&self) -> MutexGuard<'_, ConnectionLimits> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
