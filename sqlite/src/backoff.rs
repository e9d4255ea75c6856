//! How long something that failed waits for its next attempt.

use prombus::Backoff;

/// The wait after so many failures: the first one, doubling with each up to the longest.
pub(crate) fn wait_ms(backoff: &Backoff, failures: u32) -> u64 {
    let doublings = failures.saturating_sub(1).min(63);
    let wait_ms = backoff.first_ms.saturating_mul(1 << doublings);
    wait_ms.min(backoff.longest_ms)
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
        let waits = [1, 2, 3, 4, 100].map(|failures| wait_ms(&backoff, failures));
        assert_eq!(waits, [20, 40, 80, 100, 100]);
    }
}
