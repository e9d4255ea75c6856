//! Which groups the delivery limit of a socket held back lately, so that `/explain` can say so: the bus does not know
//! of limits, and to it such events look delivered.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most groups that are remembered.
const MAX_GROUPS: usize = 4_096;
/// A limit lets some through every moment, so what was held back this long ago still counts.
const LATELY_MS: u64 = 1_000;

/// What is known of all groups.
#[derive(Debug, Default)]
pub(crate) struct Slowed(Mutex<Groups>);

/// By topic and group, when it was held back last.
type Groups = HashMap<(Arc<str>, Arc<str>), u64>;

impl Slowed {
    /// The group is held back now.
    pub(crate) fn note(&self, topic: Arc<str>, group: Arc<str>, now_ms: u64) {
        let mut groups = self.lock();
        if groups.len() >= MAX_GROUPS {
            groups.retain(|_, slowed_ms| is_lately(*slowed_ms, now_ms));
        }
        if groups.len() < MAX_GROUPS {
            groups.insert((topic, group), now_ms);
        }
    }

    /// Whether the group was held back lately.
    pub(crate) fn holds(&self, topic: &str, group: &str, now_ms: u64) -> bool {
        let slowed_ms = self.lock().get(&(topic.into(), group.into())).copied();
        slowed_ms.is_some_and(|slowed_ms| is_lately(slowed_ms, now_ms))
    }

    fn lock(&self) -> MutexGuard<'_, Groups> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_lately(slowed_ms: u64, now_ms: u64) -> bool {
    now_ms <= slowed_ms.saturating_add(LATELY_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_held_back_for_a_moment_and_memory_is_bounded() {
        let slowed = Slowed::default();
        slowed.note("t".into(), "g".into(), 5_000);
        assert!(slowed.holds("t", "g", 6_000));
        assert!(!slowed.holds("t", "g", 6_001));
        assert!(!slowed.holds("t", "other", 5_000));
        for number in 0..MAX_GROUPS * 2 {
            slowed.note("t".into(), number.to_string().into(), 5_500);
        }
        assert_eq!(slowed.lock().len(), MAX_GROUPS);
        slowed.note("t".into(), "late".into(), 9_000);
        assert!(slowed.holds("t", "late", 9_000));
    }
}
