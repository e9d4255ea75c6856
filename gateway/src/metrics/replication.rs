//! What is known of a node's copy and of the shared log that it follows. There are no such series on other stores.

use super::text::{Labels, Text};
use prombus::LockExt;
use std::sync::Mutex;

/// How far a node's copy is, and what it follows.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct CopySample {
    /// The last position that is in the copy.
    pub applied: u64,
    /// Where the shared log begins.
    pub first: u64,
    /// Where it ends, as far as the node has heard.
    pub last: u64,
    /// Bytes that it takes, where that is known.
    pub log_bytes: Option<u64>,
    /// The position of the newest durable snapshot.
    pub snapshot: u64,
    /// When it became durable.
    pub snapshot_at_ms: u64,
    /// Bytes of commits since the last one was begun.
    pub bytes_since_snapshot: u64,
    /// How long the last commit took to be acknowledged.
    pub round_trip_micros: u64,
}

/// The last sample.
#[derive(Debug, Default)]
pub(super) struct Replication(Mutex<Option<CopySample>>);

impl Replication {
    pub(super) fn set(&self, sample: Option<CopySample>) {
        *self.0.guard() = sample;
    }

    pub(super) fn render(&self, text: &mut Text) {
        let sample = *self.0.guard();
        let Some(copy) = sample else {
            return;
        };
        let mut gauge = |name, help, value: u64| {
            text.head(name, "gauge", help);
            text.sample(&Labels::default(), value);
        };
        let help = "The last position of the shared log that this node has applied.";
        gauge("copy_applied_position", help, copy.applied);
        let help = "Positions that this node's copy is behind what it has heard of.";
        gauge(
            "copy_lag_positions",
            help,
            copy.last.saturating_sub(copy.applied),
        );
        let help = "The first position that the shared log holds.";
        gauge("shared_log_first_position", help, copy.first);
        let help = "The last position of the shared log that this node has heard of.";
        gauge("shared_log_last_position", help, copy.last);
        if let Some(bytes) = copy.log_bytes {
            let help = "Bytes that the shared log takes.";
            gauge("shared_log_bytes", help, bytes);
        }
        let help = "The position of the newest durable snapshot; 0 where there is none.";
        gauge("snapshot_position", help, copy.snapshot);
        let help = "When it became durable, in seconds since 1970; 0 where there is none.";
        gauge(
            "snapshot_timestamp_seconds",
            help,
            copy.snapshot_at_ms / 1_000,
        );
        let help = "Bytes of commits since the last snapshot was begun.";
        gauge("bytes_since_snapshot", help, copy.bytes_since_snapshot);
        let help = "How long the shared log took to acknowledge this node's last commit.";
        text.head("shared_log_round_trip_ms", "gauge", help);
        text.micros_gauge(&Labels::default(), copy.round_trip_micros);
    }
}
