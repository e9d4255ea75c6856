//! The moments at which a session acts by itself: pings, the end of a token, and deliveries that were slowed.

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
pub(super) struct Timing {
    timer: Pin<Box<Sleep>>,
    /// The moment that the timer is set for; it may run out a little later.
    set_to_ms: u64,
    /// When the client was heard last.
    heard_ms: u64,
    /// When the ping has to be answered, where one was sent.
    pong_due_ms: Option<u64>,
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

impl Timing {
    pub(super) fn new(now_ms: u64) -> Self {
        Self {
            timer: Box::pin(sleep(Duration::ZERO)),
            set_to_ms: now_ms,
            heard_ms: now_ms,
            pong_due_ms: None,
        }
    }

    /// The client is there.
    pub(super) fn hear(&mut self, now_ms: u64) {
        self.heard_ms = now_ms;
        self.pong_due_ms = None;
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
            self.set(gateway.now_ms(), next_ms);
        }
        while self.timer.as_mut().poll(context).is_ready() {
            let now_ms = gateway.now_ms();
            if let Some(due) = self.due(gateway, now_ms, moment_ms) {
                return Poll::Ready(due);
            }
            self.set(now_ms, next_ms);
        }
        Poll::Pending
    }

    fn due(&mut self, gateway: &Gateway, now_ms: u64, moment_ms: Option<u64>) -> Option<Due> {
        if self.pong_due_ms.is_some_and(|due_ms| due_ms <= now_ms) {
            return Some(Due::Unanswered);
        }
        if self.pong_due_ms.is_none() && self.next_ms(gateway) <= now_ms {
            self.pong_due_ms = Some(now_ms + gateway.options.pong_timeout_ms);
            return Some(Due::Ping);
        }
        moment_ms
            .is_some_and(|moment_ms| moment_ms <= now_ms)
            .then_some(Due::Other)
    }

    /// When a ping or its answer is due.
    fn next_ms(&self, gateway: &Gateway) -> u64 {
        let ping_ms = self.heard_ms + gateway.options.ping_interval_ms;
        self.pong_due_ms.unwrap_or(ping_ms)
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
        let mut timing = Timing::new(1_000);
        let waits_for_ping = poll_fn(|context| {
            let due = timing.poll_due(context, &gateway, None);
            Poll::Ready(due.is_pending())
        });
        assert!(waits_for_ping.await);
        // The thread was held up between finding the moment and setting the timer.
        let moment_ms = Some(1_005);
        clock.set(1_030);
        let due = poll_fn(|context| timing.poll_due(context, &gateway, moment_ms));
        let due = tokio::time::timeout(Duration::from_secs(1), due).await;
        assert_eq!(due.expect("the timer is not reset for ever"), Due::Other);
    }
}
