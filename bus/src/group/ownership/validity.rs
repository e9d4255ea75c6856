//! For how long a node may act as an owner: a pure function of its own beats and its own clock.

use super::VALID_MS;

/// How long this node's acknowledged beats reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Validity {
    until_ms: u64,
    /// How often they did not reach to the next one.
    lapses: u64,
}

impl Validity {
    /// A beat that was sent at `sent_ms` is acknowledged now.
    pub(crate) fn acknowledged(&mut self, sent_ms: u64, now_ms: u64) {
        if now_ms >= self.until_ms {
            self.lapses += 1;
        }
        self.until_ms = self.until_ms.max(sent_ms + VALID_MS);
    }

    /// The number of the stretch without a lapse that goes on; `None` where there is none. An owner that confirmed its
    /// ownership in another stretch may have been replaced meanwhile, though this node's beats arrive again.
    pub(crate) fn stretch(&self, now_ms: u64) -> Option<u64> {
        (now_ms < self.until_ms).then_some(self.lapses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_counts_from_the_sending() {
        let mut validity = Validity::default();
        assert_eq!(validity.stretch(0), None);
        validity.acknowledged(100, 300);
        assert_eq!(validity.stretch(1_599), Some(1));
        assert_eq!(validity.stretch(1_600), None);
        validity.acknowledged(1_000, 1_100);
        assert_eq!(validity.stretch(2_499), Some(1));
        // It was acknowledged too late, and the next one begins another stretch.
        validity.acknowledged(1_500, 3_100);
        assert_eq!(validity.stretch(3_100), None);
        validity.acknowledged(3_200, 3_300);
        assert!(validity.stretch(3_300).is_some_and(|stretch| stretch > 1));
    }
}
