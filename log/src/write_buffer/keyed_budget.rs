//! The memory that a batch leaves the keyed records with. What a batch replaces or deletes does not count, and records
//! that are there keep a reserve: a group that exists must be able to write its position when new ones are refused.

use super::KeyedRecords;
use super::keyed::memory_of;
use std::collections::HashMap;

/// The share of the limit that only records that are there may take beyond it.
const RESERVE_SHARE: usize = 8;

/// Counts the changes of one batch.
pub(super) struct KeyedBudget<'a> {
    records: &'a KeyedRecords,
    /// Memory of the records that the batch has changed so far, 0 for those it deleted.
    changed: HashMap<&'a str, usize>,
    before: usize,
    after: usize,
    /// The batch makes a record that was not there.
    adds: bool,
}

impl<'a> KeyedBudget<'a> {
    pub(super) fn new(records: &'a KeyedRecords) -> Self {
        Self {
            records,
            changed: HashMap::new(),
            before: records.bytes(),
            after: records.bytes(),
            adds: false,
        }
    }

    /// Takes in a put, or a deletion where there is no value.
    pub(super) fn change(&mut self, key: &'a str, value: Option<&[u8]>) {
        let known = self.records.latest().get(key);
        let stored = known.map_or(0, |keyed| memory_of(key, &keyed.value));
        let now = value.map_or(0, |value| memory_of(key, value));
        let replaced = self.changed.insert(key, now).unwrap_or(stored);
        self.after = self.after - replaced + now;
        self.adds |= known.is_none() && value.is_some();
    }

    /// Whether the batch may be taken in. One that frees memory always may.
    pub(super) fn fits(&self, limit: usize) -> bool {
        let reserve = if self.adds { 0 } else { limit / RESERVE_SHARE };
        self.after <= self.before || self.after <= limit.saturating_add(reserve)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn records(count: usize, value_bytes: usize) -> KeyedRecords {
        let mut records = KeyedRecords::default();
        for at in 0..count {
            let key: Arc<str> = format!("group/t/{at}").into();
            records.put(&key, &vec![0; value_bytes].into());
        }
        records
    }

    #[test]
    fn what_is_replaced_does_not_count() {
        let records = records(10, 100);
        let mut budget = KeyedBudget::new(&records);
        budget.change("group/t/3", Some(&[1; 100]));
        budget.change("group/t/3", Some(&[2; 90]));
        assert!(budget.fits(records.bytes()));
        assert_eq!(budget.after, records.bytes() - 10);
    }

    #[test]
    fn new_records_stop_at_the_limit_and_those_that_are_there_have_a_reserve() {
        let records = records(10, 100);
        let limit = records.bytes();
        let after = |changes: &[(&'static str, Option<usize>)]| {
            let mut budget = KeyedBudget::new(&records);
            for (key, bytes) in changes {
                let value = bytes.map(|bytes| vec![0; bytes]);
                budget.change(key, value.as_deref());
            }
            budget.fits(limit)
        };
        assert!(!after(&[("new", Some(1))]));
        assert!(after(&[("group/t/1", None), ("new", Some(1))]));
        assert!(after(&[("group/t/1", Some(100 + limit / 8))]));
        assert!(!after(&[("group/t/1", Some(101 + limit / 8))]));
        assert!(!after(&[("group/t/1", Some(110)), ("new", Some(1))]));
        assert!(after(&[("group/t/1", None), ("absent", None)]));
    }
}
