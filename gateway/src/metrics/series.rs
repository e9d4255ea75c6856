//! What is counted of a topic and of a group, with the names it goes by.

use super::values::{Counter, Gauge, Histogram};

/// What is counted of a topic.
#[derive(Debug, Default)]
pub struct TopicSeries {
    /// Events stored; not those that were there already.
    pub published: Counter,
}

/// What is counted of a group of a topic.
#[derive(Debug, Default)]
pub struct GroupSeries {
    /// Events given to members.
    pub delivered: Counter,
    /// Events acknowledged.
    pub acked: Counter,
    /// Deliveries rejected.
    pub nacked: Counter,
    /// Events that members hold, as of the last sample.
    pub(super) inflight: Gauge,
    /// Of these, the ones that members on sockets hold.
    pub ws_inflight: Gauge,
    /// From publish to acknowledgement.
    pub latency: Histogram,
    /// From delivery to acknowledgement.
    pub handler: Histogram,
    /// How long it took to get the next events.
    pub poll: Histogram,
    redelivered: Counter,
    dead_lettered: Counter,
    lag: Gauge,
    oldest_unacked_ms: Gauge,
    partitions_held: Gauge,
    partitions_unassigned: Gauge,
}

/// What the bus knows of a group.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct GroupSample {
    /// Deliveries that were not the event's first.
    pub redelivered: u64,
    /// Events written to the dead letters.
    pub dead_lettered: u64,
    /// Events that are not settled.
    pub lag: u64,
    /// How old the oldest of them is.
    pub oldest_unacked_ms: u64,
    /// Events that members hold, on sockets or not.
    pub inflight: u64,
    /// Partitions that members hold, where the group is partitioned.
    pub partitions_held: u64,
    /// Partitions that no member holds.
    pub partitions_unassigned: u64,
}

/// What the store knows of itself.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct StoreSample {
    /// Bytes that it holds.
    pub bytes: u64,
    /// How often it made writes durable.
    pub syncs: u64,
    /// How long that took together.
    pub sync_micros: u64,
    /// How many findings of damage it has.
    pub damage: u64,
}

/// A metric's name, its help, and where it is counted.
type Family<T> = (&'static str, &'static str, fn(&GroupSeries) -> &T);

pub(super) const GROUP_COUNTERS: [Family<Counter>; 5] = [
    (
        "events_delivered_total",
        "Events given to members, again too.",
        |series| &series.delivered,
    ),
    ("events_acked_total", "Events acknowledged.", |series| {
        &series.acked
    }),
    ("events_nacked_total", "Deliveries refused.", |series| {
        &series.nacked
    }),
    (
        "events_redelivered_total",
        "Deliveries that were not the first of their event.",
        |series| &series.redelivered,
    ),
    (
        "events_dead_lettered_total",
        "Events written to the dead letters.",
        |series| &series.dead_lettered,
    ),
];

pub(super) const GROUP_GAUGES: [Family<Gauge>; 4] = [
    (
        "events_inflight",
        "Events delivered and not yet settled.",
        |series| &series.inflight,
    ),
    (
        "ws_inflight",
        "Events delivered over sockets and not yet settled.",
        |series| &series.ws_inflight,
    ),
    ("group_lag_events", "Events not yet settled.", |series| {
        &series.lag
    }),
    (
        "group_oldest_unacked_age_ms",
        "Age of the oldest event that is not yet settled.",
        |series| &series.oldest_unacked_ms,
    ),
];

/// Only of groups that are partitioned.
pub(super) const PARTITION_GAUGES: [Family<Gauge>; 2] = [
    (
        "group_partitions_held",
        "Partitions that members of the group hold.",
        |series| &series.partitions_held,
    ),
    (
        "group_partitions_unassigned",
        "Partitions that no member of the group holds.",
        |series| &series.partitions_unassigned,
    ),
];

pub(super) const GROUP_HISTOGRAMS: [Family<Histogram>; 3] = [
    (
        "delivery_latency_ms",
        "From publish to acknowledgement.",
        |series| &series.latency,
    ),
    (
        "delivery_handler_duration_ms",
        "From delivery to acknowledgement.",
        |series| &series.handler,
    ),
    (
        "subscribe_poll_duration_ms",
        "How long it took to get the next events.",
        |series| &series.poll,
    ),
];

impl GroupSeries {
    /// Whether its members share partitions, as of the last sample.
    pub(super) fn is_partitioned(&self) -> bool {
        self.partitions_held.get() + self.partitions_unassigned.get() > 0
    }

    pub(super) fn take_over(&self, sample: GroupSample) {
        self.redelivered.raise_to(sample.redelivered);
        self.dead_lettered.raise_to(sample.dead_lettered);
        self.lag.set(sample.lag);
        self.oldest_unacked_ms.set(sample.oldest_unacked_ms);
        self.inflight.set(sample.inflight);
        self.partitions_held.set(sample.partitions_held);
        self.partitions_unassigned.set(sample.partitions_unassigned);
    }
}

impl GroupSample {
    pub(super) fn with(self, other: Self) -> Self {
        Self {
            redelivered: self.redelivered.saturating_add(other.redelivered),
            dead_lettered: self.dead_lettered.saturating_add(other.dead_lettered),
            lag: self.lag.saturating_add(other.lag),
            oldest_unacked_ms: self.oldest_unacked_ms.max(other.oldest_unacked_ms),
            inflight: self.inflight.saturating_add(other.inflight),
            partitions_held: self.partitions_held.saturating_add(other.partitions_held),
            partitions_unassigned: self
                .partitions_unassigned
                .saturating_add(other.partitions_unassigned),
        }
    }
}
