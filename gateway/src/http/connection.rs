//! One client's connection as its requests see it.

use crate::api_error::ApiError;
use crate::error_log::ErrorSource;
use crate::gateway::Gateway;
use crate::limits::{ConnectionLimits, RateLimited};
use crate::limits::{Limit, RetryAfter};
use crate::peer::Peer;
use crate::session::NextSession;
use prombus::LockExt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// What the requests of one connection share. Over HTTP too a connection is one TCP connection: a client that opens a
/// new one for each request has a full bucket each time, and is held by the limits of topics.
pub(crate) struct Connection {
    pub(super) gateway: Arc<Gateway>,
    limits: Mutex<ConnectionLimits>,
    /// It came in by a listener that only this machine can reach.
    listens_on_loopback: bool,
    pub(super) peer: Peer,
    /// Where a request for an upgrade leaves what is to follow it.
    pub(super) next_session: NextSession,
    /// Whose token the current request has; requests of a connection come one after the other.
    subject: Mutex<Option<Arc<str>>>,
}

impl Connection {
    pub(crate) fn new(
        gateway: Arc<Gateway>,
        listens_on_loopback: bool,
        peer: Peer,
        next_session: NextSession,
    ) -> Self {
        let limits = ConnectionLimits::new(&gateway.options.limits, gateway.monotonic_ms());
        Self {
            gateway,
            limits: Mutex::new(limits),
            listens_on_loopback,
            peer,
            next_session,
            subject: Mutex::new(None),
        }
    }

    /// The request that is being served is of this subject.
    pub(super) fn set_subject(&self, subject: Option<Arc<str>>) {
        *self.subject.guard() = subject;
    }

    /// Logs an error of the request that is being served.
    pub(super) fn log_error(&self, error: &ApiError, path: &str) {
        let subject = self.subject.guard();
        let source = ErrorSource {
            peer: &self.peer,
            path,
            subject: subject.as_deref(),
        };
        self.gateway.log_error(error, &source);
    }

    /// Whether loopback is the only protection, which DNS rebinding gets around.
    pub(super) fn serves_local_names_only(&self) -> bool {
        self.listens_on_loopback && self.gateway.auth.is_off()
    }

    /// Publishes `events` as far as the limits are concerned, or says when that may be done.
    pub(super) fn publish(&self, topic: &str, events: u32) -> Result<(), RateLimited> {
        let gateway = &self.gateway;
        let now_ms = gateway.monotonic_ms();
        let taken = self
            .limits()
            .publish(&gateway.topic_limits, topic, events, now_ms);
        taken.inspect_err(|limited| gateway.metrics.rate_limited(limited.limit).increment())
    }

    /// Publishes `events` as far as the limits are concerned, once they allow it.
    pub(super) async fn wait_to_publish(&self, topic: &str, events: u32) {
        // One by one, so that the buckets are never overdrawn for others.
        for _ in 0..events {
            while let Err(limited) = self.publish(topic, 1) {
                tokio::time::sleep(Duration::from_millis(limited.retry.ms)).await;
            }
        }
    }

    /// How many of `events` may be delivered, at least one; waits for that. They count as delivered.
    pub(super) async fn wait_to_deliver(&self, events: usize) -> usize {
        let wanted = u32::try_from(events).unwrap_or(u32::MAX);
        loop {
            let allowed = self.limits().deliver(wanted, self.gateway.monotonic_ms());
            match allowed {
                Ok(count) => return count as usize,
                Err(RetryAfter { ms }) => {
                    let throttled = self.gateway.metrics.rate_limited(Limit::ConnDelivery);
                    throttled.increment();
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                }
            }
        }
    }

    /// Takes back what was not there to be delivered after all.
    pub(super) fn return_deliveries(&self, events: usize) {
        let events = u32::try_from(events).unwrap_or(u32::MAX);
        self.limits().give_back_deliveries(events);
    }

    fn limits(&self) -> MutexGuard<'_, ConnectionLimits> {
        self.limits.guard()
    }
}
