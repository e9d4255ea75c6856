//! Groups whose deliveries were recently throttled by a connection limit, for `/explain`. The bus does not know of these
//! limits and counts such events as delivered.

use prombus::LockExt;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// The most groups that are remembered.
const MAX_GROUPS: usize = 4_096;
/// How long a group counts as throttled after it last was.
const WINDOW_MS: u64 = 1_000;

/// The throttled groups.
#[derive(Debug, Default)]
pub(crate) struct Throttled(Mutex<Groups>);

/// When each group was last throttled, by topic and group.
type Groups = HashMap<(Arc<str>, Arc<str>), u64>;

impl Throttled {
    /// Records that the group is throttled now.
    pub(crate) fn record(&self, topic: Arc<str>, group: Arc<str>, now_ms: u64) {
        let mut groups = self.lock();
        if groups.len() >= MAX_GROUPS {
            groups.retain(|_, throttled_ms| is_recent(*throttled_ms, now_ms));
        }
        if groups.len() < MAX_GROUPS {
            groups.insert((topic, group), now_ms);
        }
    }

    /// Whether the group was recently throttled.
    pub(crate) fn contains(&self, topic: &str, group: &str, now_ms: u64) -> bool {
        let throttled_ms = self.lock().get(&(topic.into(), group.into())).copied();
        throttled_ms.is_some_and(|throttled_ms| is_recent(throttled_ms, now_ms))
    }

    fn lock(&self) -> MutexGuard<'_, Groups> {
        self.0.guard()
    }
}

fn is_recent(throttled_ms: u64, now_ms: u64) -> bool {
    now_ms <= throttled_ms.saturating_add(WINDOW_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_held_back_for_a_moment_and_memory_is_bounded() {
        let throttled = Throttled::default();
        throttled.record("t".into(), "g".into(), 5_000);
        assert!(throttled.contains("t", "g", 6_000));
        assert!(!throttled.contains("t", "g", 6_001));
        assert!(!throttled.contains("t", "other", 5_000));
        for number in 0..MAX_GROUPS * 2 {
            throttled.record("t".into(), number.to_string().into(), 5_500);
        }
        assert_eq!(throttled.lock().len(), MAX_GROUPS);
        throttled.record("t".into(), "late".into(), 9_000);
        assert!(throttled.contains("t", "late", 9_000));
    }
}
