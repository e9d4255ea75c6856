//! Keyed records: as the last batch left them, which is what the next one is checked against, and as readers see them,
//! which is what is synced.

use crate::copy::{POSITION_KEY, PositionRecord};
use prombus_store::Keyed;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// All keyed records.
#[derive(Default)]
pub(crate) struct KeyedRecords {
    latest: BTreeMap<Arc<str>, Keyed>,
    /// Memory of all records, see [`memory_of`].
    bytes: usize,
    /// The highest version that a record had when it was deleted. One that is made again goes on behind it, so that
    /// no one takes it for the old one.
    deleted_version: u64,
    /// What readers still see of records whose last changes are not synced.
    outdated: BTreeMap<Arc<str>, Outdated>,
}

/// A record as readers see it.
struct Outdated {
    seen: Option<Keyed>,
    /// How many changes of it are not synced.
    changes: usize,
}

/// A change on its way to the readers.
pub(crate) struct KeyedChange {
    key: Arc<str>,
    becomes: Option<Keyed>,
}

impl KeyedRecords {
    /// Records that are synced. Those of a copy say which versions were given to records that are gone.
    pub(crate) fn new(records: BTreeMap<Arc<str>, Keyed>) -> Self {
        let ended = records.get(POSITION_KEY);
        let ended = ended.and_then(|ended| PositionRecord::decode(&ended.value));
        Self {
            deleted_version: ended.map_or(0, |ended| ended.deleted_version),
            bytes: records
                .iter()
                .map(|(key, one)| memory_of(key, &one.value))
                .sum(),
            latest: records,
            ..Self::default()
        }
    }

    /// As the last batch left them.
    pub(crate) fn latest(&self) -> &BTreeMap<Arc<str>, Keyed> {
        &self.latest
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The version before the one that a record gets which is not there.
    pub(crate) fn deleted_version(&self) -> u64 {
        self.deleted_version
    }

    /// Lets records that are not there go on behind this version too.
    pub(crate) fn raise_deleted_version(&mut self, version: u64) {
        self.deleted_version = self.deleted_version.max(version);
    }

    /// Writes a record and says what readers are to see of that.
    pub(crate) fn put(&mut self, key: &Arc<str>, value: &Arc<[u8]>) -> (u64, KeyedChange) {
        let old = self.latest.get(key).map(|old| old.version);
        let version = old.unwrap_or(self.deleted_version) + 1;
        let value = value.clone();
        let keyed = Keyed { version, value };
        self.bytes += memory_of(key, &keyed.value);
        let old = self.latest.insert(key.clone(), keyed.clone());
        (version, self.changed(key, old, Some(keyed)))
    }

    /// Removes a record and says what readers are to see of that; `None` where there is none.
    pub(crate) fn delete(&mut self, key: &Arc<str>) -> Option<KeyedChange> {
        let old = self.latest.remove(key)?;
        self.deleted_version = self.deleted_version.max(old.version);
        Some(self.changed(key, Some(old), None))
    }

    fn changed(
        &mut self,
        key: &Arc<str>,
        old: Option<Keyed>,
        becomes: Option<Keyed>,
    ) -> KeyedChange {
        self.bytes -= old.as_ref().map_or(0, |old| memory_of(key, &old.value));
        let outdated = self.outdated.entry(key.clone());
        let outdated = outdated.or_insert(Outdated {
            seen: old,
            changes: 0,
        });
        outdated.changes += 1;
        let key = key.clone();
        KeyedChange { key, becomes }
    }

    /// Shows synced changes to the readers, in the order in which they were made.
    pub(crate) fn show(&mut self, changes: Vec<KeyedChange>) {
        for KeyedChange { key, becomes } in changes {
            let Some(outdated) = self.outdated.get_mut(&key) else {
                continue;
            };
            outdated.seen = becomes;
            outdated.changes -= 1;
            if outdated.changes == 0 {
                self.outdated.remove(&key);
            }
        }
    }

    /// A record as readers see it.
    pub(crate) fn seen(&self, key: &str) -> Option<&Keyed> {
        match self.outdated.get(key) {
            Some(outdated) => outdated.seen.as_ref(),
            None => self.latest.get(key),
        }
    }

    /// Records as readers see them, in the order of keys.
    pub(crate) fn all_seen(&self, prefix: &str) -> Vec<(Arc<str>, Keyed)> {
        let current = with_prefix(&self.latest, prefix);
        if !self.is_any_changing(prefix) {
            // The caller holds the lock that appends need.
            return current
                .map(|(key, one)| (key.clone(), one.clone()))
                .collect();
        }
        let current = current.filter(|(key, _)| !self.outdated.contains_key(*key));
        let outdated = with_prefix(&self.outdated, prefix);
        let outdated = outdated.filter_map(|(key, one)| Some((key, one.seen.as_ref()?)));
        let all = current.chain(outdated);
        let mut all: Vec<_> = all.map(|(key, one)| (key.clone(), one.clone())).collect();
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        all
    }

    /// Whether a change of the record is not synced.
    pub(crate) fn is_changing(&self, key: &str) -> bool {
        self.outdated.contains_key(key)
    }

    /// Whether a change of any such record is not synced.
    pub(crate) fn is_any_changing(&self, prefix: &str) -> bool {
        with_prefix(&self.outdated, prefix).next().is_some()
    }
}

fn with_prefix<'a, T>(
    records: &'a BTreeMap<Arc<str>, T>,
    prefix: &'a str,
) -> impl Iterator<Item = (&'a Arc<str>, &'a T)> {
    let from = records.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
    from.take_while(move |(key, _)| key.starts_with(prefix))
}

/// Two reference counts of 16 bytes each, the entry of 40 bytes in the tree, whose nodes are about two thirds full, and
/// what an allocator rounds up.
const OVERHEAD_BYTES: usize = 128;

/// About the memory that a record takes.
pub(super) fn memory_of(key: &str, value: &[u8]) -> usize {
    key.len() + value.len() + OVERHEAD_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// Readers see the state some changes ago, whatever was changed since.
        #[test]
        fn readers_see_what_was_shown(steps in prop::collection::vec((0..4u8, 0..3u8), 1..60)) {
            let mut records = KeyedRecords::default();
            let mut latest: BTreeMap<Arc<str>, Keyed> = BTreeMap::new();
            let mut seen = latest.clone();
            let mut hidden = VecDeque::new();
            let mut versions = BTreeMap::new();
            for (number, (key, what)) in steps.into_iter().enumerate() {
                let key: Arc<str> = format!("k/{key}").into();
                match what {
                    0 => {
                        let value: Arc<[u8]> = vec![7; number].into();
                        let (version, change) = records.put(&key, &value);
                        let last = versions.insert(key.clone(), version);
                        prop_assert!(last < Some(version), "versions grow, also over deletions");
                        latest.insert(key, Keyed { version, value });
                        hidden.push_back((change, latest.clone()));
                    }
                    1 => {
                        let change = records.delete(&key);
                        prop_assert_eq!(change.is_some(), latest.remove(&key).is_some());
                        hidden.extend(change.map(|change| (change, latest.clone())));
                    }
                    _ => {
                        if let Some((change, after)) = hidden.pop_front() {
                            records.show(vec![change]);
                            seen = after;
                        }
                    }
                }
                prop_assert_eq!(records.latest(), &latest);
                let bytes: usize = latest.iter().map(|(key, one)| memory_of(key, &one.value)).sum();
                prop_assert_eq!(records.bytes(), bytes);
                let all: Vec<_> = seen.clone().into_iter().collect();
                prop_assert_eq!(records.all_seen("k/"), all);
                for key in ["k/0", "k/1", "k/2", "k/3"] {
                    prop_assert_eq!(records.seen(key), seen.get(key));
                    if !records.is_changing(key) {
                        prop_assert_eq!(seen.get(key), latest.get(key));
                    }
                }
                prop_assert_eq!(records.is_any_changing(""), !hidden.is_empty());
            }
        }
    }
}
