//! How long fsyncs took: counts in buckets of which four make a doubling, so that a quantile is known to a quarter.

use std::sync::atomic::{AtomicU64, Ordering};

/// Up to 16 seconds; what took longer is in the last one.
const BUCKETS: usize = 96;
/// Buckets that make a doubling.
const STEPS: usize = 4;

/// Counts that grow while the log is open.
#[derive(Debug)]
pub struct SyncTimes {
    counts: [AtomicU64; BUCKETS],
}

/// The counts at one moment, or those between two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncTimeCounts {
    counts: [u64; BUCKETS],
}

impl Default for SyncTimes {
    fn default() -> Self {
        Self {
            counts: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl Default for SyncTimeCounts {
    fn default() -> Self {
        Self {
            counts: [0; BUCKETS],
        }
    }
}

impl SyncTimes {
    /// Counts one that took this long.
    pub fn record(&self, micros: u64) {
        self.counts[bucket_of(micros)].fetch_add(1, Ordering::Relaxed);
    }

    /// The counts now.
    pub fn counts(&self) -> SyncTimeCounts {
        SyncTimeCounts {
            counts: std::array::from_fn(|at| self.counts[at].load(Ordering::Relaxed)),
        }
    }
}

impl SyncTimeCounts {
    /// The fsyncs that came after an earlier moment. A log that was opened anew since begins at nothing.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            counts: std::array::from_fn(|at| self.counts[at].saturating_sub(earlier.counts[at])),
        }
    }

    /// How many there were.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Microseconds within which this many hundredths of them were done; 0 where there was none.
    pub fn percentile_micros(&self, percent: u64) -> u64 {
        let wanted = (self.total() * percent).div_ceil(100);
        let mut seen = 0;
        for (at, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted && seen > 0 {
                return upper_micros(at);
            }
        }
        0
    }
}

fn bucket_of(micros: u64) -> usize {
    if micros < STEPS as u64 {
        return micros as usize;
    }
    let doubling = micros.ilog2() as usize;
    let step = (micros >> (doubling - 2)) as usize % STEPS;
    ((doubling - 1) * STEPS + step).min(BUCKETS - 1)
}

/// The largest value of a bucket.
fn upper_micros(bucket: usize) -> u64 {
    if bucket < STEPS {
        return bucket as u64;
    }
    let (doubling, step) = (bucket / STEPS + 1, bucket % STEPS);
    (((STEPS + step + 1) as u64) << (doubling - 2)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_in_the_bucket_that_ends_at_or_after_it() {
        for micros in (0..5_000).chain([65_535, 65_536, 1_000_000, 16_000_000]) {
            let at = bucket_of(micros);
            assert!(micros <= upper_micros(at), "{micros}");
            assert!(at == 0 || micros > upper_micros(at - 1), "{micros}");
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_known_to_a_quarter() {
        let times = SyncTimes::default();
        assert_eq!(times.counts().percentile_micros(99), 0);
        for micros in 1..=1_000 {
            times.record(micros);
        }
        let first = times.counts();
        for (percent, exact) in [(50, 500), (99, 990), (100, 1_000)] {
            let found = first.percentile_micros(percent);
            assert!(
                found >= exact && found <= exact * 5 / 4,
                "{percent}: {found}"
            );
        }
        times.record(50_000);
        let later = times.counts().since(&first);
        assert_eq!(later.total(), 1);
        assert!(later.percentile_micros(50) >= 50_000);
    }
}
