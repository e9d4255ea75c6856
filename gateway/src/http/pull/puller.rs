//! The member of a group that pulls over HTTP go through.

use crate::gateway::Gateway;
use crate::metrics::GroupSeries;
use prombus::{Clock, Delivery, Subscription, SubscriptionControl};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One group as it is pulled.
pub(in crate::http) struct Puller {
    subscription: Subscription,
    series: Arc<GroupSeries>,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

struct State {
    /// How many requests use it, those included that wait until they may be delivered to. It is not let go under them:
    /// their leases would end with it.
    users: usize,
    /// How many pulls are waiting or taking.
    pulls: usize,
    /// How many events they want together.
    wanted: usize,
    /// Until then there may be leases that somebody acknowledges.
    keep_until_ms: u64,
    /// What leases the last pull that said so asked for.
    ack_timeout_ms: Option<u64>,
    /// Events that were pulled and are not settled; bounded by what pulls ask for within one lease.
    held: HashMap<String, Held>,
}

struct Held {
    published_ms: u64,
    delivered_ms: u64,
    lease_ms: u64,
    until_ms: u64,
}

/// A request that uses a puller.
pub(in crate::http) struct Using(Arc<Puller>);

impl Using {
    /// Must be called where no sweep can come between finding the puller and using it.
    pub(super) fn new(puller: Arc<Puller>) -> Self {
        puller.state().users += 1;
        Self(puller)
    }
}

impl std::ops::Deref for Using {
    type Target = Puller;

    fn deref(&self) -> &Puller {
        &self.0
    }
}

impl Drop for Using {
    fn drop(&mut self) {
        self.0.state().users -= 1;
    }
}

/// A pull that wants events. Letting go of it is how it stops wanting.
pub(super) struct Asking<'a> {
    puller: &'a Puller,
    count: usize,
}

/// What became of an event that was pulled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Became {
    Acked,
    /// In one step with publishing, to which the bus says yes only once.
    AckedOnce,
    Nacked,
    Extended {
        /// Without a time, by as much as the lease was long.
        extend_ms: Option<u64>,
    },
}

impl Puller {
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
            held: HashMap::new(),
        };
        Self {
            subscription,
            series,
            clock: gateway.options.clock.clone(),
            state: Mutex::new(state),
        }
    }

    /// Wants `count` events more.
    pub(super) fn ask(&self, count: usize) -> Asking<'_> {
        let mut state = self.state();
        state.pulls += 1;
        state.wanted += count;
        // Under the lock, so that a pull that ends at the same moment does not pause this one.
        self.control().ask_for(state.wanted);
        self.subscription.resume();
        drop(state);
        Asking {
            puller: self,
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

    /// Whether nobody pulls and no lease can be left.
    pub(super) fn is_idle(&self) -> bool {
        let mut state = self.state();
        let now_ms = self.clock.monotonic_ms();
        forget_expired(&mut state, now_ms);
        state.users == 0 && state.held.is_empty() && state.keep_until_ms <= now_ms
    }

    /// Gives the leases to come the length that a pull wants, where that is another than the last one wanted.
    pub(super) fn set_ack_timeout(&self, wanted_ms: Option<u64>) {
        let mut state = self.state();
        let before_ms = std::mem::replace(&mut state.ack_timeout_ms, wanted_ms);
        if before_ms != wanted_ms {
            self.control().set_ack_timeout(wanted_ms);
        }
    }

    /// Remembers and counts what a pull got.
    pub(super) fn delivered(&self, deliveries: &[Delivery], began_ms: u64) {
        let now_ms = self.clock.monotonic_ms();
        let mut state = self.state();
        forget_expired(&mut state, now_ms);
        for delivery in deliveries {
            let until_ms = now_ms.saturating_add(delivery.context.ack_deadline_ms);
            state.keep_until_ms = state.keep_until_ms.max(until_ms);
            let held = Held {
                published_ms: delivery.event.ts(),
                delivered_ms: now_ms,
                lease_ms: delivery.context.ack_deadline_ms,
                until_ms,
            };
            let id = delivery.event.id().into_owned();
            state.held.insert(id, held);
        }
        drop(state);
        self.series.delivered.add(deliveries.len() as u64);
        let waited_ms = now_ms.saturating_sub(began_ms);
        self.series.poll.observe_ms(waited_ms);
    }

    /// Remembers and counts what became of an event.
    pub(in crate::http) fn became(&self, id: &str, what: Became) {
        let now_ms = self.clock.monotonic_ms();
        let mut state = self.state();
        if let Became::Extended { extend_ms } = what {
            let lease_ms = state.held.get(id).map_or(0, |held| held.lease_ms);
            let extend_ms = extend_ms.unwrap_or(lease_ms).max(1_000);
            let until_ms = now_ms.saturating_add(extend_ms);
            state.keep_until_ms = state.keep_until_ms.max(until_ms);
            if let Some(held) = state.held.get_mut(id) {
                held.until_ms = until_ms;
            }
            return;
        }
        let Some(held) = state.held.remove(id) else {
            if what == Became::AckedOnce {
                self.series.acked.increment();
            }
            return;
        };
        drop(state);
        if what == Became::Nacked {
            self.series.nacked.increment();
            return;
        }
        self.series.acked.increment();
        let wall_ms = self.clock.now_ms();
        self.series
            .latency
            .observe_ms(wall_ms.saturating_sub(held.published_ms));
        self.series
            .handler
            .observe_ms(now_ms.saturating_sub(held.delivered_ms));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let mut state = self.puller.state();
        state.pulls -= 1;
        state.wanted -= self.count;
        let left = state.wanted;
        self.puller.control().ask_for(left);
        if state.pulls == 0 {
            // What was not taken goes to other members, or waits for the next pull.
            self.puller.subscription.pause();
        }
    }
}

fn forget_expired(state: &mut State, now_ms: u64) {
    state.held.retain(|_, held| held.until_ms > now_ms);
}
