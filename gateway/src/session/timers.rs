//! The timers of a session: pings, pong timeouts, token expiry and throttled deliveries.

use crate::gateway::Gateway;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// The longest that the timer is set to; then one looks again.
const MAX_SLEEP_MS: u64 = 3_600_000;

/// The clock of a session. The timer is set anew only when it has run out or something is due earlier, so that a
/// message costs no more than a note of the time.
#[derive(Debug)]
pub(super) struct Timers {
    timer: Pin<Box<Sleep>>,
    /// The moment that the timer is set for; it may run out a little later.
    set_to_ms: u64,
    /// When data was last received.
    received_ms: u64,
    ping: Ping,
}

/// A ping and its pong. The pong is due only after the ping was written, so a client that reads slowly is not closed for
/// a ping that waits in our send buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ping {
    Idle,
    /// In the send buffer.
    Queued,
    /// Written to the socket.
    Sent {
        pong_due_ms: u64,
    },
}

/// What it is time for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// The client was silent for long.
    Ping,
    /// The client did not answer.
    Unanswered,
    /// Something that the session itself set.
    Other,
}

impl Timers {
    pub(super) fn new(now_ms: u64) -> Self {
        Self {
            timer: Box::pin(sleep(Duration::ZERO)),
            set_to_ms: now_ms,
            received_ms: now_ms,
            ping: Ping::Idle,
        }
    }

    /// Data was received.
    pub(super) fn note_received(&mut self, now_ms: u64) {
        self.received_ms = now_ms;
        self.ping = Ping::Idle;
    }

    /// Data was sent. A client that takes data is alive, so each time the pong gets its full time again.
    pub(super) fn note_sent(&mut self, gateway: &Gateway, now_ms: u64, is_ping_sent: bool) {
        if self.ping != Ping::Idle && is_ping_sent {
            let pong_due_ms = now_ms + gateway.options.pong_timeout_ms;
            self.ping = Ping::Sent { pong_due_ms };
        }
    }

    /// Whether something is due, the session's own `moment_ms` too. Otherwise the task is woken when it is.
    pub(super) fn poll_due(
        &mut self,
        context: &mut Context<'_>,
        gateway: &Gateway,
        moment_ms: Option<u64>,
    ) -> Poll<Due> {
        let next_ms = self.next_ms(gateway).min(moment_ms.unwrap_or(u64::MAX));
        if next_ms < self.set_to_ms {
            self.set(gateway.monotonic_ms(), next_ms);
        }
        while self.timer.as_mut().poll(context).is_ready() {
            let now_ms = gateway.monotonic_ms();
            if let Some(due) = self.due(gateway, now_ms, moment_ms) {
                return Poll::Ready(due);
            }
            self.set(now_ms, next_ms);
        }
        Poll::Pending
    }

    fn due(&mut self, gateway: &Gateway, now_ms: u64, moment_ms: Option<u64>) -> Option<Due> {
        match self.ping {
            Ping::Sent { pong_due_ms } if pong_due_ms <= now_ms => return Some(Due::Unanswered),
            Ping::Idle if self.next_ms(gateway) <= now_ms => {
                self.ping = Ping::Queued;
                return Some(Due::Ping);
            }
            Ping::Idle | Ping::Queued | Ping::Sent { .. } => {}
        }
        moment_ms
            .is_some_and(|moment_ms| moment_ms <= now_ms)
            .then_some(Due::Other)
    }

    /// When a ping or a pong is due.
    fn next_ms(&self, gateway: &Gateway) -> u64 {
        match self.ping {
            Ping::Idle => self.received_ms + gateway.options.ping_interval_ms,
            Ping::Queued => u64::MAX,
            Ping::Sent { pong_due_ms } => pong_due_ms,
        }
    }

    fn set(&mut self, now_ms: u64, moment_ms: u64) {
        // A moment that has come lets a millisecond pass all the same, so that nothing can turn without end. It is the
        // moment itself that is remembered: if it were the end of that wait, a moment in the past would look earlier
        // than what the timer is set to at every poll, and the timer would be reset before it was ever seen to run out.
        let wait_ms = moment_ms.saturating_sub(now_ms).clamp(1, MAX_SLEEP_MS);
        self.set_to_ms = moment_ms.min(now_ms + MAX_SLEEP_MS);
        let deadline = Instant::now() + Duration::from_millis(wait_ms);
        self.timer.as_mut().reset(deadline);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Authenticator;
    use crate::gateway::GatewayOptions;
    use prombus::{Bus, BusOptions};
    use prombus_store::ManualClock;
    use prombus_store::memory::MemoryStore;
    use std::future::poll_fn;
    use std::sync::Arc;

    #[tokio::test(start_paused = true)]
    async fn a_moment_that_has_passed_before_the_timer_was_set_comes() {
        let clock = Arc::new(ManualClock::at(1_000));
        let store = Arc::new(MemoryStore::new(clock.clone()));
        let bus = Bus::open(store, BusOptions::default()).expect("good options");
        let options = GatewayOptions {
            clock: clock.clone(),
            ..GatewayOptions::default()
        };
        let gateway = Gateway::new(bus, Authenticator::off(), options).expect("good patterns");
        let mut timers = Timers::new(1_000);
        let waits_for_ping = poll_fn(|context| {
            let due = timers.poll_due(context, &gateway, None);
            Poll::Ready(due.is_pending())
        });
        assert!(waits_for_ping.await);
        // The thread was held up between finding the moment and setting the timer.
        let moment_ms = Some(1_005);
        clock.set(1_030);
        let due = poll_fn(|context| timers.poll_due(context, &gateway, moment_ms));
        let due = tokio::time::timeout(Duration::from_secs(1), due).await;
        assert_eq!(due.expect("the timer is not reset for ever"), Due::Other);
    }
}
