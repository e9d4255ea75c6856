//! What a subscription has delivered and not seen settled: it tells how long that took, and from which topic of many
//! an event came.

use crate::gateway::Gateway;
use crate::metrics::GroupSeries;
use prombus::Delivery;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// How many deadlines of settled events may lie about.
const SETTLED_KEPT: usize = 64;

/// The deliveries of one subscription. What is not settled in time is forgotten, so it has no more entries than
/// there are leases.
#[derive(Debug)]
pub(super) struct Flight {
    group: Arc<str>,
    /// The topics that something came from, with what is counted of the group there.
    origins: Vec<Origin>,
    /// Where they stand, by name.
    places: HashMap<Arc<str>, usize>,
    /// The one that something came from last.
    latest: usize,
    /// By the hash of the id.
    held: HashMap<u64, Held>,
    /// In the order of delivery, with the moments at which leases end if nobody extends them.
    deadlines: VecDeque<(u64, u64)>,
    hashes: RandomState,
}

#[derive(Debug)]
struct Origin {
    topic: Arc<str>,
    series: Arc<GroupSeries>,
}

#[derive(Debug)]
struct Held {
    origin: usize,
    published_ms: u64,
    delivered_ms: u64,
    lease_ms: u64,
    deadline_ms: u64,
}

/// How a delivery ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Acked,
    Nacked,
    /// Without a time, by as much as the lease was long.
    Extended {
        extend_ms: Option<u64>,
    },
}

impl Flight {
    pub(super) fn new(group: Arc<str>) -> Self {
        Self {
            group,
            origins: Vec::new(),
            places: HashMap::new(),
            latest: 0,
            held: HashMap::new(),
            deadlines: VecDeque::new(),
            hashes: RandomState::new(),
        }
    }

    /// Whether nothing is under way.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Notes a delivery.
    pub(super) fn deliver(&mut self, gateway: &Gateway, delivery: &Delivery, now_ms: u64) {
        let event = &delivery.event;
        let origin = self.origin(gateway, event.topic());
        self.origins[origin].series.delivered.increment();
        let deadline_ms = now_ms.saturating_add(delivery.context.ack_deadline_ms);
        let held = Held {
            origin,
            published_ms: event.ts(),
            delivered_ms: now_ms,
            lease_ms: delivery.context.ack_deadline_ms,
            deadline_ms,
        };
        let hash = self.hash(&event.id());
        self.deadlines.push_back((deadline_ms, hash));
        if self.held.insert(hash, held).is_none() {
            self.origins[origin].series.ws_inflight.add(1);
        }
    }

    /// Notes how long it took until events came.
    pub(super) fn polled(&mut self, gateway: &Gateway, delivery: &Delivery, waited_ms: u64) {
        let origin = self.origin(gateway, delivery.event.topic());
        self.origins[origin].series.poll.observe_ms(waited_ms);
    }

    /// Notes what a client said about an event and the bus took.
    pub(super) fn settle(&mut self, hash: u64, outcome: Outcome, now_ms: u64) {
        if let Outcome::Extended { extend_ms } = outcome {
            if let Some(held) = self.held.get_mut(&hash) {
                let extend_ms = extend_ms.unwrap_or(held.lease_ms);
                held.deadline_ms = now_ms.saturating_add(extend_ms);
                self.deadlines.push_back((held.deadline_ms, hash));
            }
            return;
        }
        let Some(held) = self.held.remove(&hash) else {
            return;
        };
        let series = &self.origins[held.origin].series;
        series.ws_inflight.sub(1);
        if outcome == Outcome::Nacked {
            return series.nacked.increment();
        }
        series.acked.increment();
        series
            .latency
            .observe_ms(now_ms.saturating_sub(held.published_ms));
        series
            .handler
            .observe_ms(now_ms.saturating_sub(held.delivered_ms));
    }

    /// Notes that an event of a topic was acknowledged in one step with publishing. The bus says yes to that only once,
    /// so that it counts also where the delivery has been forgotten.
    pub(super) fn stepped(&mut self, gateway: &Gateway, topic: &str, hash: u64, now_ms: u64) {
        if self.held.contains_key(&hash) {
            return self.settle(hash, Outcome::Acked, now_ms);
        }
        let origin = self.origin(gateway, topic);
        self.origins[origin].series.acked.increment();
    }

    /// Forgets deliveries whose leases have run out. Others may hold their events now.
    pub(super) fn expire(&mut self, now_ms: u64) {
        while let Some(&(deadline_ms, hash)) = self.deadlines.front() {
            let held = self.held.get(&hash).map(|held| held.deadline_ms);
            match held {
                // One that was extended has a second, later place in the queue.
                Some(held_ms) if held_ms == deadline_ms && deadline_ms > now_ms => break,
                Some(held_ms) if held_ms <= now_ms => self.forget(hash),
                _ => {}
            }
            self.deadlines.pop_front();
        }
        // What was settled behind one that is not must not pile up there.
        if self.deadlines.len() > 2 * self.held.len() + SETTLED_KEPT {
            let held = &self.held;
            self.deadlines.retain(|(deadline_ms, hash)| {
                held.get(hash)
                    .is_some_and(|held| held.deadline_ms == *deadline_ms)
            });
        }
    }

    /// The topic that the event with this id came from.
    pub(super) fn topic_of(&self, hash: u64) -> Option<&Arc<str>> {
        let held = self.held.get(&hash)?;
        Some(&self.origins[held.origin].topic)
    }

    pub(super) fn hash(&self, id: &str) -> u64 {
        self.hashes.hash_one(id)
    }

    /// The end of the subscription; an ephemeral group is forgotten with it.
    pub(super) fn end(&mut self, gateway: &Gateway, is_ephemeral: bool) {
        for (_, held) in self.held.drain() {
            self.origins[held.origin].series.ws_inflight.sub(1);
        }
        if is_ephemeral {
            for origin in &self.origins {
                gateway.metrics.forget_group(&origin.topic, &self.group);
            }
        }
    }

    fn forget(&mut self, hash: u64) {
        if let Some(held) = self.held.remove(&hash) {
            self.origins[held.origin].series.ws_inflight.sub(1);
        }
    }

    fn origin(&mut self, gateway: &Gateway, topic: &str) -> usize {
        let is_latest = |origin: &Origin| *origin.topic == *topic;
        if !self.origins.get(self.latest).is_some_and(is_latest) {
            self.latest = match self.places.get(topic) {
                Some(&at) => at,
                None => self.add_origin(gateway, topic.into()),
            };
        }
        self.latest
    }

    fn add_origin(&mut self, gateway: &Gateway, topic: Arc<str>) -> usize {
        let series = gateway.metrics.group(&topic, &self.group);
        self.places.insert(topic.clone(), self.origins.len());
        self.origins.push(Origin { topic, series });
        self.origins.len() - 1
    }
}
