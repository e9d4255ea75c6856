//! One token bucket. It counts in thousandths of a token, of which a whole number comes in each millisecond, so that
//! nothing is rounded, however often it is polled.

use super::config::Rate;

const THOUSANDTHS: i64 = 1_000;

/// Tokens that fill up with time.
#[derive(Debug, Clone)]
pub struct Bucket {
    rate: Rate,
    /// Thousandths of a token. Below zero while a request that was larger than the bucket is paid off.
    level: i64,
    filled_at_ms: u64,
}

/// There are not enough tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryAfter {
    /// After this many milliseconds there are, unless others take them.
    pub ms: u64,
}

impl Bucket {
    /// A full bucket. One whose rate has a zero is treated as if it were a one.
    pub fn full(rate: Rate, now_ms: u64) -> Self {
        let rate = Rate {
            capacity: rate.capacity.max(1),
            refill_per_sec: rate.refill_per_sec.max(1),
        };
        Self {
            rate,
            level: thousandths(rate.capacity),
            filled_at_ms: now_ms,
        }
    }

    /// Takes `tokens`, all or none. More than the bucket holds can be taken when it is full, and is paid off
    /// afterwards: else a large batch would be rejected for ever.
    pub fn take(&mut self, tokens: u32, now_ms: u64) -> Result<(), RetryAfter> {
        self.has(tokens, now_ms)?;
        self.level -= thousandths(tokens);
        Ok(())
    }

    /// Takes as many of `tokens` as there are, at least one where one is wanted.
    pub fn take_up_to(&mut self, tokens: u32, now_ms: u64) -> Result<u32, RetryAfter> {
        self.has(tokens.min(1), now_ms)?;
        let available = u32::try_from(self.level.max(0) / THOUSANDTHS).unwrap_or(u32::MAX);
        let taken = tokens.min(available);
        self.level -= thousandths(taken);
        Ok(taken)
    }

    /// Puts tokens back that were taken and not used.
    pub fn give_back(&mut self, tokens: u32) {
        let level = self.level.saturating_add(thousandths(tokens));
        self.level = level.min(thousandths(self.rate.capacity));
    }

    /// Whether [`Bucket::take`] would succeed.
    pub fn has(&mut self, tokens: u32, now_ms: u64) -> Result<(), RetryAfter> {
        self.fill(now_ms);
        let needed = thousandths(tokens.min(self.rate.capacity));
        let missing = needed.saturating_sub(self.level).max(0).unsigned_abs();
        if tokens == 0 || missing == 0 {
            return Ok(());
        }
        Err(RetryAfter {
            ms: missing.div_ceil(u64::from(self.rate.refill_per_sec)),
        })
    }

    /// Whether it is full, and so no different from a new one.
    pub fn is_full(&mut self, now_ms: u64) -> bool {
        self.fill(now_ms);
        self.level == thousandths(self.rate.capacity)
    }

    fn fill(&mut self, now_ms: u64) {
        // Time is monotonic, but callers that share a bucket may come in another order than they looked at the clock.
        let passed_ms = now_ms.saturating_sub(self.filled_at_ms);
        let added = passed_ms.saturating_mul(u64::from(self.rate.refill_per_sec));
        let added = i64::try_from(added).unwrap_or(i64::MAX);
        let capacity = thousandths(self.rate.capacity);
        self.level = self.level.saturating_add(added).min(capacity);
        self.filled_at_ms = self.filled_at_ms.max(now_ms);
    }
}

fn thousandths(tokens: u32) -> i64 {
    i64::from(tokens) * THOUSANDTHS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bucket(capacity: u32, refill_per_sec: u32) -> Bucket {
        let rate = Rate {
            capacity,
            refill_per_sec,
        };
        Bucket::full(rate, 0)
    }

    #[test]
    fn a_bucket_empties_and_fills() {
        let mut bucket = bucket(2, 4);
        assert!(bucket.is_full(0));
        assert_eq!(bucket.take(2, 0), Ok(()));
        assert_eq!(bucket.take(0, 0), Ok(()));
        assert_eq!(bucket.take(1, 0), Err(RetryAfter { ms: 250 }));
        assert_eq!(bucket.take(1, 249), Err(RetryAfter { ms: 1 }));
        assert_eq!(bucket.take(1, 250), Ok(()));
        assert!(!bucket.is_full(700));
        assert!(bucket.is_full(750));
        assert_eq!(
            bucket.take_up_to(9, 1_000_000),
            Ok(2),
            "it holds no more than its capacity"
        );
    }

    #[test]
    fn more_than_it_holds_is_paid_off() {
        let mut bucket = bucket(10, 10);
        assert_eq!(bucket.take(1, 0), Ok(()));
        assert_eq!(bucket.take(50, 0), Err(RetryAfter { ms: 100 }));
        assert_eq!(bucket.take(50, 100), Ok(()));
        assert_eq!(bucket.take(1, 100), Err(RetryAfter { ms: 4_100 }));
        assert_eq!(bucket.take_up_to(5, 100), Err(RetryAfter { ms: 4_100 }));
        assert_eq!(bucket.take(0, 100), Ok(()), "nothing can always be had");
        assert_eq!(bucket.take_up_to(0, 100), Ok(0));
        assert_eq!(bucket.take(1, 4_200), Ok(()));
    }

    #[test]
    fn the_ends_of_the_numbers_are_no_trouble() {
        for (capacity, refill_per_sec) in
            [(u32::MAX, u32::MAX), (1, u32::MAX), (u32::MAX, 1), (0, 0)]
        {
            let mut bucket = bucket(capacity, refill_per_sec);
            assert_eq!(bucket.take(u32::MAX, 0), Ok(()));
            let late_ms = u64::MAX / 2;
            assert_eq!(bucket.take_up_to(u32::MAX, late_ms), Ok(capacity.max(1)));
            assert!(bucket.take(u32::MAX, 0).is_err());
            assert!(bucket.take(1, u64::MAX).is_ok());
        }
    }

    #[test]
    fn callers_that_come_out_of_order_fill_it_no_faster() {
        let mut bucket = bucket(1, 10);
        assert_eq!(bucket.take(1, 1_000), Ok(()));
        for _ in 0..1_000 {
            assert!(bucket.take(1, 1_090).is_err());
            assert!(bucket.take(1, 1_000).is_err());
        }
        assert_eq!(bucket.take(1, 1_100), Ok(()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// However often it is polled, it gives what its rate allows and not a thousandth more or less.
        #[test]
        fn it_never_drifts(
            capacity in 1_u32..50,
            refill_per_sec in 1_u32..5_000,
            steps in prop::collection::vec((0_u64..300, 0_u32..60), 1..200),
        ) {
            let mut bucket = bucket(capacity, refill_per_sec);
            let capacity = i128::from(capacity) * 1_000;
            let mut level = capacity;
            let mut now_ms = 0;
            for (passed_ms, tokens) in steps {
                now_ms += passed_ms;
                level = (level + i128::from(passed_ms) * i128::from(refill_per_sec)).min(capacity);
                let wanted = i128::from(tokens) * 1_000;
                let missing = wanted.min(capacity) - level;
                match bucket.take(tokens, now_ms) {
                    Ok(()) => {
                        prop_assert!(missing <= 0 || tokens == 0);
                        level -= wanted;
                    }
                    Err(retry) => {
                        prop_assert!(missing > 0);
                        let mut later = bucket.clone();
                        prop_assert!(later.take(tokens, now_ms + retry.ms - 1).is_err());
                        prop_assert_eq!(later.take(tokens, now_ms + retry.ms), Ok(()));
                    }
                }
            }
        }
    }
}
