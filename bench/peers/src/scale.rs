//! How much the rows measure.

use std::time::Duration;

/// The sizes of all rows.
#[derive(Debug, Clone)]
pub(crate) struct PeerScale {
    /// How often each row is measured.
    pub(crate) repeats: usize,
    /// Free disk space that the run needs.
    pub(crate) disk_bytes: u64,
    /// How long publishing goes on, in rows that count what was published.
    pub(crate) publish_time: Duration,
    /// Connections that publish at once.
    pub(crate) publishers: usize,
    /// Events that are consumed through a group.
    pub(crate) consume_events: u64,
    /// Events a second of the row about latency, and how many.
    pub(crate) paced_per_second: u64,
    pub(crate) paced_events: u64,
    /// Groups that each get all events of one topic, and how many those are.
    pub(crate) fan_out_groups: usize,
    pub(crate) fan_out_events: u64,
    /// Events that are replayed, and that memory and disk are measured with.
    pub(crate) stored_events: u64,
    /// Numbers of stored events to start with.
    pub(crate) start_events: [u64; 2],
    /// Subscribers that wait for nothing.
    pub(crate) idle_subscribers: usize,
    /// Events a second that are published while segments are sealed, for how long, and to how many topics.
    pub(crate) sustained_per_second: u64,
    pub(crate) sustained_time: Duration,
    pub(crate) sustained_topics: usize,
}

impl PeerScale {
    /// What the figures are made with.
    pub(crate) fn full() -> Self {
        Self {
            repeats: 5,
            disk_bytes: 30 << 30,
            publish_time: Duration::from_secs(2),
            publishers: 16,
            consume_events: 500_000,
            paced_per_second: 5_000,
            paced_events: 25_000,
            fan_out_groups: 20,
            fan_out_events: 20_000,
            stored_events: 1_000_000,
            start_events: [1_000_000, 10_000_000],
            idle_subscribers: 5_000,
            sustained_per_second: 20_000,
            sustained_time: Duration::from_secs(60),
            sustained_topics: 100,
        }
    }

    /// Enough to see that every row works.
    pub(crate) fn quick() -> Self {
        Self {
            repeats: 2,
            disk_bytes: 1 << 30,
            publish_time: Duration::from_millis(300),
            publishers: 4,
            consume_events: 20_000,
            paced_per_second: 5_000,
            paced_events: 2_500,
            fan_out_groups: 4,
            fan_out_events: 2_000,
            stored_events: 20_000,
            start_events: [10_000, 20_000],
            idle_subscribers: 50,
            sustained_per_second: 2_000,
            sustained_time: Duration::from_secs(1),
            sustained_topics: 10,
        }
    }
}
