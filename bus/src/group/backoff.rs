//! How long a failed event waits. The jitter follows from the event and the attempt, so the same run gives the same
//! waits, and still spreads events that failed together.

use crate::options::Backoff;

impl Backoff {
    /// The wait after `failures` failures: the first one, doubling with each up to the longest.
    pub fn wait_ms(&self, failures: u32) -> u64 {
        let doublings = failures.saturating_sub(1).min(63);
        let wait_ms = self.first_ms.saturating_mul(1 << doublings);
        wait_ms.min(self.longest_ms)
    }

    /// The wait before the next delivery after `failures` failed ones: between three quarters of [`Self::wait_ms`] and
    /// all of it.
    pub(crate) fn delay_ms(&self, seq: u64, failures: u32) -> u64 {
        spread(self.wait_ms(failures), seq, failures)
    }

    /// The longest wait, spread in the same way.
    pub(crate) fn longest_delay_ms(&self, seq: u64, failures: u32) -> u64 {
        spread(self.longest_ms, seq, failures)
    }
}

fn spread(full_ms: u64, seq: u64, failures: u32) -> u64 {
    full_ms - mix(seq ^ u64::from(failures) << 48) % (full_ms / 4 + 1)
}

/// The finalizer of splitmix64: every bit of the input reaches every bit of the output.
fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let backoff = Backoff {
            first_ms: 20,
            longest_ms: 100,
        };
        let waits = [1, 2, 3, 4, 100].map(|failures| backoff.wait_ms(failures));
        assert_eq!(waits, [20, 40, 80, 100, 100]);
    }

    #[test]
    fn waits_are_spread_below_the_full_one() {
        let backoff = Backoff::default();
        for (failures, full) in [
            (1, 20),
            (2, 40),
            (3, 80),
            (11, 20_480),
            (12, 30_000),
            (900, 30_000),
        ] {
            for seq in 1..200 {
                let delay = backoff.delay_ms(seq, failures);
                assert!(
                    (full * 3 / 4..=full).contains(&delay),
                    "{failures}: {delay}"
                );
            }
        }
    }

    #[test]
    fn events_that_failed_together_come_back_apart() {
        let backoff = Backoff::default();
        let waits: std::collections::HashSet<u64> =
            (1..100).map(|seq| backoff.delay_ms(seq, 12)).collect();
        assert!(waits.len() > 80);
        assert_eq!(backoff.delay_ms(7, 3), backoff.delay_ms(7, 3));
    }
}
