//! Counters, gauges and histograms: relaxed atomics, because no order between them is needed.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The upper bounds of the buckets of the histograms in milliseconds.
pub const HISTOGRAM_BOUNDS_MS: [u64; 8] = [5, 10, 25, 50, 100, 250, 500, 1_000];
/// The upper bounds of the buckets that are counted, which the histograms in seconds show. Those in milliseconds are some
/// of them.
pub const HISTOGRAM_BOUNDS_MICROS: [u64; 16] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000,
];

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

/// A number that goes up and down.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

/// How often a duration fell into which bucket.
#[derive(Debug, Default)]
pub struct Histogram {
    /// One bucket per bound and one for what is above the last. They are added up when they are read, so that one
    /// addition is enough to count, and the total always fits the buckets.
    buckets: [AtomicU64; HISTOGRAM_BOUNDS_MICROS.len() + 1],
    sum_micros: AtomicU64,
}

/// A count and a total duration that are kept elsewhere.
#[derive(Debug, Default)]
pub(super) struct Ratio {
    count: Counter,
    micros: Counter,
}

impl Counter {
    /// Counts one.
    pub fn increment(&self) {
        self.add(1);
    }

    /// Counts several.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Relaxed);
    }

    /// The number.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Samples a count that is kept elsewhere. It never goes back, also where two scrapes cross.
    pub(super) fn raise_to(&self, total: u64) {
        self.0.fetch_max(total, Relaxed);
    }
}

impl Gauge {
    /// So many more.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(signed(count), Relaxed);
    }

    /// So many fewer.
    pub fn sub(&self, count: u64) {
        self.0.fetch_sub(signed(count), Relaxed);
    }

    /// The number.
    pub fn get(&self) -> i64 {
        self.0.load(Relaxed)
    }

    pub(super) fn set(&self, value: u64) {
        self.0.store(signed(value), Relaxed);
    }
}

impl Histogram {
    /// Counts a duration in milliseconds.
    pub fn observe_ms(&self, ms: u64) {
        self.observe_micros(ms.saturating_mul(1_000));
    }

    /// Counts a duration.
    pub fn observe(&self, duration: Duration) {
        self.observe_micros(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX));
    }

    /// How many durations were at most as long as each bound; the last is how many there were.
    pub(super) fn cumulative(&self) -> [u64; HISTOGRAM_BOUNDS_MICROS.len() + 1] {
        let mut total = 0;
        self.buckets.each_ref().map(|bucket| {
            total += bucket.load(Relaxed);
            total
        })
    }

    pub(super) fn sum_micros(&self) -> u64 {
        self.sum_micros.load(Relaxed)
    }

    fn observe_micros(&self, micros: u64) {
        let at = HISTOGRAM_BOUNDS_MICROS.partition_point(|&bound| micros > bound);
        self.buckets[at].fetch_add(1, Relaxed);
        self.sum_micros.fetch_add(micros, Relaxed);
    }
}

impl Ratio {
    pub(super) fn raise_to(&self, count: u64, micros: u64) {
        self.count.raise_to(count);
        self.micros.raise_to(micros);
    }

    pub(super) fn count(&self) -> u64 {
        self.count.get()
    }

    pub(super) fn sum_micros(&self) -> u64 {
        self.micros.get()
    }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
