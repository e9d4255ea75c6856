//! What an event expects of what is stored before it, and how a store checks it.

use super::EncodedEvent;
use crate::error::{PositionMismatch, PositionOf};
use crate::record::StoredEvent;
use crate::topic::TOMBSTONE_MS;

/// For how long a tombstone is its key's last event; then the key has none. That is half of the time for which compaction
/// keeps it at least, so that what is expected of a key does not depend on when a store compacts, nor on small differences
/// between the clocks of nodes that share one.
const TOMBSTONE_COUNTS_MS: u64 = TOMBSTONE_MS / 2;

/// What must be stored before an event for it to be stored. A duplicate is one whatever it expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExpectedPosition {
    /// The last position of the topic; 0 where it has never had an event.
    pub seq: Option<u64>,
    /// The position of the last event of the key that the topic holds; 0 where it holds none.
    pub key_seq: Option<u64>,
}

/// The last event of a key, as far as expectations need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyPosition {
    /// Its position.
    pub seq: u64,
    /// When it was stored, where it is a tombstone.
    pub tombstone_ms: Option<u64>,
}

impl ExpectedPosition {
    /// Whether nothing is expected.
    pub fn is_anything(&self) -> bool {
        self.seq.is_none() && self.key_seq.is_none()
    }

    /// Compares with the last position of the topic, and with that of the key, which is asked for only where it matters.
    pub fn check(
        &self,
        tail_seq: u64,
        key_seq: impl FnOnce() -> u64,
    ) -> Result<(), PositionMismatch> {
        let compare = |of, expected: Option<u64>, actual: u64| match expected {
            Some(expected) if expected != actual => Err(PositionMismatch {
                of,
                expected,
                actual,
            }),
            _ => Ok(()),
        };
        compare(PositionOf::Topic, self.seq, tail_seq)?;
        match self.key_seq {
            None => Ok(()),
            Some(_) => compare(PositionOf::Key, self.key_seq, key_seq()),
        }
    }
}

impl KeyPosition {
    /// Of an event that is stored.
    pub fn of_stored(event: &StoredEvent) -> Self {
        let stored_ms = || event.stored_ms().unwrap_or(event.ts());
        Self {
            seq: event.seq(),
            tombstone_ms: event.is_tombstone().then(stored_ms),
        }
    }

    /// Of an event that gets a position now.
    pub fn of_new(event: &EncodedEvent<'_>, seq: u64, stored_ms: u64) -> Self {
        Self {
            seq,
            tombstone_ms: event.is_tombstone().then_some(stored_ms),
        }
    }

    /// The position that counts at a time: 0 where the key was deleted long before.
    pub fn seq_at(self, now_ms: u64) -> u64 {
        match self.tombstone_ms {
            Some(deleted_ms) if now_ms.saturating_sub(deleted_ms) > TOMBSTONE_COUNTS_MS => 0,
            _ => self.seq,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tombstone_counts_for_half_the_time_that_it_is_kept() {
        let live = KeyPosition {
            seq: 7,
            tombstone_ms: None,
        };
        assert_eq!(live.seq_at(u64::MAX), 7);
        let gone = KeyPosition {
            tombstone_ms: Some(1_000),
            ..live
        };
        assert_eq!(gone.seq_at(0), 7, "a clock that went back");
        assert_eq!(gone.seq_at(1_000 + TOMBSTONE_COUNTS_MS), 7);
        assert_eq!(gone.seq_at(1_001 + TOMBSTONE_COUNTS_MS), 0);
    }

    #[test]
    fn the_topic_is_compared_before_the_key_and_the_key_only_where_it_matters() {
        let both = ExpectedPosition {
            seq: Some(3),
            key_seq: Some(2),
        };
        assert_eq!(both.check(3, || 2), Ok(()));
        let of = |checked: Result<(), PositionMismatch>| {
            checked.map_err(|wrong| (wrong.of, wrong.actual))
        };
        assert_eq!(of(both.check(4, || 1)), Err((PositionOf::Topic, 4)));
        assert_eq!(of(both.check(3, || 0)), Err((PositionOf::Key, 0)));
        let topic = ExpectedPosition {
            key_seq: None,
            ..both
        };
        assert_eq!(
            topic.check(3, || unreachable!("no key is expected")),
            Ok(())
        );
    }
}
