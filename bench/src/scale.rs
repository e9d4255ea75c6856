//! How much is measured: enough to mean something, or just enough to see that every row works.

use std::time::Duration;

/// The sizes of all measurements.
#[derive(Debug, Clone)]
pub(crate) struct Scale {
    /// How often each thing is measured.
    pub(crate) repeats: usize,
    /// Free disk space that the run needs.
    pub(crate) disk_bytes: u64,
    /// A segment of every log that is made is sealed at this size.
    pub(crate) segment_bytes: u64,
    /// Events of one sample of publishing, appending or delivering.
    pub(crate) events: u64,
    /// Events of one sample where each group of them waits for the disk.
    pub(crate) synced_events: u64,
    /// Events of the logs that are read.
    pub(crate) read_events: u64,
    /// Topics that lie interleaved in one log.
    pub(crate) interleaved_topics: usize,
    /// Numbers of stored events at which costs are compared; the last is the size of the large log.
    pub(crate) stored: Vec<u64>,
    /// Events published at each of them: whole segments' worth, so that each sample pays for sealing.
    pub(crate) stored_publish_events: u64,
    /// How often some events of the stored ones are delivered.
    pub(crate) stored_rounds: u64,
    /// Numbers of topics at which costs are compared.
    pub(crate) topics: Vec<usize>,
    /// Numbers of groups at which costs are compared.
    pub(crate) groups: Vec<usize>,
    /// Events that a group takes when its memory is measured.
    pub(crate) behind_events: u64,
    /// Connections to the server that are subscribed and wait.
    pub(crate) idle_connections: usize,
    /// Connections to the server that publish and consume at once.
    pub(crate) busy_connections: usize,
    /// Events that are published to the server and consumed as fast as it goes.
    pub(crate) busy_events: u64,
    /// Events that the server exports.
    pub(crate) export_events: u64,
    /// Events that go through the server at a steady rate.
    pub(crate) paced_events: u64,
    /// Groups of one server, and events that are published to it while its metrics are read.
    pub(crate) many_groups: usize,
    pub(crate) scraped_publishes: usize,
    /// Topics that a pattern matches.
    pub(crate) pattern_topics: usize,
    /// Schedules that wait, of which some come due at a steady rate, and more that came due before the server starts.
    pub(crate) schedules: u64,
    pub(crate) steady_schedules: u64,
    pub(crate) overdue_schedules: u64,
    /// Subscribers that read nothing, and the large events that wait for them.
    pub(crate) stalled_subscribers: usize,
    pub(crate) stalled_events: usize,
    /// Longer than their leases last, so that what ran out would be delivered once more.
    pub(crate) stalled_for: Duration,
    /// Events that are consumed with a result published for each.
    pub(crate) ack_publish_events: u64,
    /// Events that become rows of a table, and how many keys they have.
    pub(crate) row_events: u64,
    pub(crate) row_keys: u64,
    /// States of keys that are read over HTTP.
    pub(crate) snap_reads: u64,
    /// Payload sizes at which costs are compared.
    pub(crate) payload_bytes: Vec<usize>,
    /// Numbers of stored events with random ids at which costs are compared, and events published at each of them.
    pub(crate) id_events: Vec<u64>,
    pub(crate) id_publish_events: u64,
    /// Events that the nodes of a cluster publish and consume, those that a new node starts with, and those whose lag is
    /// taken.
    pub(crate) cluster_events: u64,
    pub(crate) cold_events: u64,
    pub(crate) lag_events: u64,
    /// Events that go into MongoDB as commits, and those that are inserted one by one.
    pub(crate) mongo_events: u64,
    pub(crate) mongo_inserts: u64,
    /// The log with many topics.
    pub(crate) wide: Wide,
}

/// A log with many topics, groups and segments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wide {
    pub(crate) topics: usize,
    pub(crate) groups: usize,
    pub(crate) segments: usize,
    pub(crate) segment_bytes: u64,
    /// About how many topics have events in each segment.
    pub(crate) topics_in_segment: usize,
}

impl Scale {
    /// The real thing: some minutes, and data that does not fit into any cache but the page cache.
    pub(crate) fn full() -> Self {
        Self {
            repeats: 5,
            disk_bytes: 10 << 30,
            segment_bytes: 64 << 20,
            events: 1_000_000,
            synced_events: 400_000,
            read_events: 2_000_000,
            interleaved_topics: 100,
            stored: vec![1_000, 100_000, 1_000_000, 10_000_000],
            stored_publish_events: 330_000,
            stored_rounds: 100,
            topics: vec![1, 10, 100, 1_000],
            groups: vec![1, 10, 100, 1_000],
            behind_events: 200_000,
            schedules: 1_000_000,
            steady_schedules: 10_000,
            overdue_schedules: 200_000,
            idle_connections: 2_000,
            busy_connections: 200,
            busy_events: 400_000,
            export_events: 1_000_000,
            paced_events: 25_000,
            many_groups: 40_000,
            scraped_publishes: 5_000,
            pattern_topics: 100_000,
            stalled_subscribers: 1_000,
            stalled_events: 20_000,
            stalled_for: Duration::from_secs(12),
            ack_publish_events: 400_000,
            row_events: 500_000,
            row_keys: 100_000,
            snap_reads: 100_000,
            payload_bytes: vec![64, 256, 1_024, 4_096, 16_384, 65_536],
            id_events: vec![1_000_000, 4_000_000],
            id_publish_events: 200_000,
            cluster_events: 400_000,
            cold_events: 1_000_000,
            lag_events: 2_000,
            mongo_events: 20_000,
            mongo_inserts: 1_000,
            wide: Wide {
                topics: 100_000,
                groups: 100_000,
                segments: 1_000,
                segment_bytes: 1 << 20,
                topics_in_segment: 2_500,
            },
        }
    }

    /// Some seconds, also without optimisation.
    pub(crate) fn quick() -> Self {
        Self {
            repeats: 2,
            disk_bytes: 64 << 20,
            segment_bytes: 1 << 20,
            events: 4_000,
            synced_events: 1_600,
            read_events: 8_000,
            interleaved_topics: 4,
            stored: vec![1_000, 10_000],
            stored_publish_events: 3_000,
            stored_rounds: 3,
            topics: vec![1, 4],
            groups: vec![1, 4],
            behind_events: 2_000,
            schedules: 3_000,
            steady_schedules: 300,
            overdue_schedules: 1_000,
            idle_connections: 20,
            busy_connections: 5,
            busy_events: 2_000,
            export_events: 3_000,
            paced_events: 500,
            many_groups: 150,
            scraped_publishes: 200,
            pattern_topics: 100,
            stalled_subscribers: 3,
            stalled_events: 20,
            stalled_for: Duration::from_millis(100),
            ack_publish_events: 2_000,
            row_events: 2_000,
            row_keys: 200,
            snap_reads: 320,
            payload_bytes: vec![64, 4_096],
            id_events: vec![4_000, 8_000],
            id_publish_events: 2_000,
            cluster_events: 4_000,
            cold_events: 4_000,
            lag_events: 20,
            mongo_events: 400,
            mongo_inserts: 20,
            wide: Wide {
                topics: 500,
                groups: 100,
                segments: 10,
                segment_bytes: 100_000,
                topics_in_segment: 250,
            },
        }
    }

    /// The size of the large log.
    pub(crate) fn large_log_events(&self) -> u64 {
        self.stored.last().copied().unwrap_or_default()
    }
}
