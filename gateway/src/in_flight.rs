//! The events of a subscription that are delivered and not settled: when they were delivered, and from which of many
//! topics.

use crate::gateway::Gateway;
use crate::metrics::GroupSeries;
#[cfg(feature = "otlp")]
use crate::spans::OpenSpan;
use prombus::{Delivery, SettleOp};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// The shortest extension of a lease.
pub(crate) const MIN_EXTEND_MS: u64 = 1_000;
/// How many deadlines of settled events may remain in the queue.
const STALE_DEADLINES_KEPT: usize = 64;
/// How many source topics are remembered before those without events in flight are forgotten.
const MAX_IDLE_ORIGINS: usize = 1_024;

/// The events in flight of one subscription, of a socket or of pulls. Expired leases are removed, so it has no more entries than there are
/// leases.
#[derive(Debug)]
pub(crate) struct InFlight {
    group: Arc<str>,
    /// The source topics, with the metrics of the group there.
    origins: HashMap<Arc<str>, Arc<Origin>>,
    /// With so many of them, the idle ones are forgotten before another is added.
    max_origins: usize,
    /// The source of the last event.
    latest: Option<Arc<Origin>>,
    /// By the hash of the id.
    held: HashMap<u64, Lease>,
    /// Deadlines in the order of delivery, with the hashes of their ids.
    deadlines: VecDeque<(u64, u64)>,
    hashes: RandomState,
    transport: Transport,
}

/// How the events reach their consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    WebSocket,
    Pull,
}

/// The time: leases are monotonic, what people read is wall time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    pub(crate) wall_ms: u64,
    pub(crate) monotonic_ms: u64,
}

#[derive(Debug)]
struct Origin {
    topic: Arc<str>,
    series: Arc<GroupSeries>,
}

#[derive(Debug)]
struct Lease {
    origin: Arc<Origin>,
    published_ms: u64,
    delivered_ms: u64,
    lease_ms: u64,
    deadline_ms: u64,
    /// Ends when the event is settled, where it is part of a trace.
    #[cfg(feature = "otlp")]
    span: Option<OpenSpan>,
}

impl InFlight {
    pub(crate) fn new(group: Arc<str>, transport: Transport) -> Self {
        Self {
            transport,
            group,
            origins: HashMap::new(),
            max_origins: MAX_IDLE_ORIGINS,
            latest: None,
            held: HashMap::new(),
            deadlines: VecDeque::new(),
            hashes: RandomState::new(),
        }
    }

    /// Whether no event is in flight.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Adds a delivery.
    pub(crate) fn deliver(&mut self, gateway: &Gateway, delivery: &Delivery, now: Now) {
        let event = &delivery.event;
        let origin = self.origin(gateway, event.topic());
        origin.series.delivered.increment();
        let series = origin.series.clone();
        let deadline_ms = now
            .monotonic_ms
            .saturating_add(delivery.context.ack_deadline_ms);
        let held = Lease {
            origin,
            published_ms: event.ts(),
            delivered_ms: now.monotonic_ms,
            lease_ms: delivery.context.ack_deadline_ms,
            deadline_ms,
            #[cfg(feature = "otlp")]
            span: gateway
                .options
                .spans
                .as_ref()
                .and_then(|spans| spans.delivered(delivery, &self.group, now.wall_ms)),
        };
        let hash = self.hash(&event.id());
        self.deadlines.push_back((deadline_ms, hash));
        if self.held.insert(hash, held).is_none() && self.transport == Transport::WebSocket {
            series.ws_inflight.add(1);
        }
    }

    /// Records how long the subscription waited for events.
    pub(crate) fn polled(&mut self, gateway: &Gateway, delivery: &Delivery, waited_ms: u64) {
        let origin = self.origin(gateway, delivery.event.topic());
        origin.series.poll.observe_ms(waited_ms);
    }

    /// Records that an event was settled or its lease extended.
    pub(crate) fn settle(&mut self, hash: u64, op: &SettleOp, now: Now) {
        if let SettleOp::Extend { extend_ms } = op {
            if let Some(held) = self.held.get_mut(&hash) {
                let extend_ms = extend_ms.unwrap_or(held.lease_ms).max(MIN_EXTEND_MS);
                held.deadline_ms = now.monotonic_ms.saturating_add(extend_ms);
                self.deadlines.push_back((held.deadline_ms, hash));
            }
            return;
        }
        #[cfg_attr(
            not(feature = "otlp"),
            allow(unused_mut, reason = "the span is taken out")
        )]
        let Some(mut held) = self.remove(hash) else {
            return;
        };
        #[cfg(feature = "otlp")]
        if let Some(span) = held.span.take() {
            span.settled(*op == SettleOp::Ack, now.wall_ms);
        }
        let series = &held.origin.series;
        if matches!(op, SettleOp::Nack(_)) {
            return series.nacked.increment();
        }
        series.acked.increment();
        series
            .latency
            .observe_ms(now.wall_ms.saturating_sub(held.published_ms));
        series
            .handler
            .observe_ms(now.monotonic_ms.saturating_sub(held.delivered_ms));
    }

    /// Records that an event was acknowledged atomically with publishing. The bus accepts that only once, so it counts
    /// also where the lease has been removed.
    pub(crate) fn ack_published(&mut self, gateway: &Gateway, topic: &str, hash: u64, now: Now) {
        if self.held.contains_key(&hash) {
            return self.settle(hash, &SettleOp::Ack, now);
        }
        let origin = self.origin(gateway, topic);
        origin.series.acked.increment();
    }

    /// Removes expired leases; other members may hold the events now.
    pub(crate) fn expire(&mut self, now_ms: u64) {
        while let Some(&(deadline_ms, hash)) = self.deadlines.front() {
            let held = self.held.get(&hash).map(|held| held.deadline_ms);
            match held {
                // An extended lease has a second, later entry in the queue.
                Some(held_ms) if held_ms == deadline_ms && deadline_ms > now_ms => break,
                Some(held_ms) if held_ms <= now_ms => drop(self.remove(hash)),
                _ => {}
            }
            self.deadlines.pop_front();
        }
        // Bounds the entries of settled events behind one that is not.
        if self.deadlines.len() > 2 * self.held.len() + STALE_DEADLINES_KEPT {
            let held = &self.held;
            self.deadlines.retain(|(deadline_ms, hash)| {
                held.get(hash)
                    .is_some_and(|held| held.deadline_ms == *deadline_ms)
            });
        }
    }

    /// The topic that the event with this id came from.
    pub(crate) fn topic_of(&self, hash: u64) -> Option<&Arc<str>> {
        let held = self.held.get(&hash)?;
        Some(&held.origin.topic)
    }

    pub(crate) fn hash(&self, id: &str) -> u64 {
        self.hashes.hash_one(id)
    }

    /// Ends the subscription; the metrics of an ephemeral group are dropped.
    pub(crate) fn end(&mut self, gateway: &Gateway, is_ephemeral: bool) {
        let hashes: Vec<u64> = self.held.keys().copied().collect();
        for hash in hashes {
            self.remove(hash);
        }
        if is_ephemeral {
            gateway.metrics.forget_ephemeral_group(&self.group);
        }
    }

    fn remove(&mut self, hash: u64) -> Option<Lease> {
        let held = self.held.remove(&hash)?;
        if self.transport == Transport::WebSocket {
            held.origin.series.ws_inflight.sub(1);
        }
        Some(held)
    }

    fn origin(&mut self, gateway: &Gateway, topic: &str) -> Arc<Origin> {
        if let Some(latest) = self.latest.as_ref().filter(|one| *one.topic == *topic) {
            return latest.clone();
        }
        let origin = match self.origins.get(topic) {
            Some(origin) => origin.clone(),
            None => self.add_origin(topic, gateway.metrics.group(topic, &self.group)),
        };
        self.latest.insert(origin).clone()
    }

    fn add_origin(&mut self, topic: &str, series: Arc<GroupSeries>) -> Arc<Origin> {
        if self.origins.len() >= self.max_origins {
            // The others are named by leases.
            self.origins
                .retain(|_, origin| Arc::strong_count(origin) > 1);
            self.max_origins = MAX_IDLE_ORIGINS.max(2 * self.origins.len());
        }
        let topic: Arc<str> = topic.into();
        let origin = Arc::new(Origin {
            topic: topic.clone(),
            series,
        });
        self.origins.insert(topic, origin.clone());
        origin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_without_events_in_flight_are_forgotten() {
        let mut in_flight = InFlight::new("g".into(), Transport::WebSocket);
        let held = in_flight.add_origin("held", Arc::default());
        for at in 0..10 * MAX_IDLE_ORIGINS {
            in_flight.add_origin(&format!("t{at}"), Arc::default());
            assert!(in_flight.origins.len() <= MAX_IDLE_ORIGINS);
        }
        assert!(in_flight.origins.contains_key("held"));
        drop(held);
    }

    #[test]
    fn topics_with_events_in_flight_are_all_kept() {
        let mut in_flight = InFlight::new("g".into(), Transport::WebSocket);
        let held = |at| in_flight.add_origin(&format!("t{at}"), Arc::default());
        let held: Vec<Arc<Origin>> = (0..5 * MAX_IDLE_ORIGINS).map(held).collect();
        assert_eq!(in_flight.origins.len(), held.len());
    }
}
