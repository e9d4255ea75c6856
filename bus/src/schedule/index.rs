//! Which schedules wait and when they are due, in a few bytes each: payloads stay in the store.

use foldhash::fast::RandomState;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::BuildHasher;

/// The heap may have this many entries of schedules that were changed or removed beyond those that wait.
const MAX_STALE: usize = 4_096;

/// All schedules that wait.
pub(super) struct Index {
    /// By the hash of their id.
    waiting: HashMap<u64, Waiting, RandomState>,
    /// Due times with the hash of the id, the earliest first. One whose schedule was changed is passed over.
    by_due: BinaryHeap<Reverse<(u64, u64)>>,
    hasher: RandomState,
}

/// A schedule that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) due: u64,
    /// The position of its record.
    pub(super) seq: u64,
}

/// A schedule that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Due {
    hash: u64,
    pub(super) waiting: Waiting,
}

impl Index {
    pub(super) fn new() -> Self {
        Self {
            waiting: HashMap::default(),
            by_due: BinaryHeap::new(),
            hasher: RandomState::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// A schedule was made or changed.
    pub(super) fn insert(&mut self, id: &str, waiting: Waiting) {
        let hash = self.hasher.hash_one(id);
        self.waiting.insert(hash, waiting);
        self.by_due.push(Reverse((waiting.due, hash)));
        self.drop_stale();
    }

    /// A schedule was published or removed.
    pub(super) fn remove(&mut self, id: &str) {
        let hash = self.hasher.hash_one(id);
        self.waiting.remove(&hash);
        self.drop_stale();
    }

    /// When the next one is due.
    pub(super) fn next_due(&mut self) -> Option<u64> {
        self.skip_stale();
        self.by_due.peek().map(|Reverse((due, _))| *due)
    }

    /// Takes those that are due, the earliest first. They count as waiting until they are removed.
    pub(super) fn take_due(&mut self, now_ms: u64, limit: usize) -> Vec<Due> {
        let mut due = Vec::new();
        while due.len() < limit && self.next_due().is_some_and(|due| due <= now_ms) {
            let Some(Reverse((_, hash))) = self.by_due.pop() else {
                break;
            };
            // One that was changed without another due time is in the heap twice, one entry behind the other.
            let is_taken = due.last().is_some_and(|last: &Due| last.hash == hash);
            let waiting = self.waiting.get(&hash).filter(|_| !is_taken);
            due.extend(waiting.map(|&waiting| Due { hash, waiting }));
        }
        due
    }

    /// Puts one that was taken back, unless it was changed or removed meanwhile.
    pub(super) fn put_back(&mut self, due: &Due) {
        if self.is_waiting(due) {
            self.by_due.push(Reverse((due.waiting.due, due.hash)));
        }
    }

    /// Whether one that was taken waits as it did.
    pub(super) fn is_waiting(&self, due: &Due) -> bool {
        self.waiting.get(&due.hash) == Some(&due.waiting)
    }

    fn skip_stale(&mut self) {
        while let Some(Reverse((due, hash))) = self.by_due.peek() {
            let waiting = self.waiting.get(hash);
            if waiting.is_some_and(|waiting| waiting.due == *due) {
                break;
            }
            self.by_due.pop();
        }
    }

    /// Makes the heap anew where much of it is of no use any more.
    fn drop_stale(&mut self) {
        if self.by_due.len() > 2 * self.waiting.len() + MAX_STALE {
            let waiting = self.waiting.iter();
            self.by_due = waiting
                .map(|(hash, waiting)| Reverse((waiting.due, *hash)))
                .collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(due: u64, seq: u64) -> Waiting {
        Waiting { due, seq }
    }

    fn seqs(due: &[Due]) -> Vec<u64> {
        due.iter().map(|due| due.waiting.seq).collect()
    }

    #[test]
    fn the_earliest_come_first_and_each_once() {
        let mut index = Index::new();
        for (seq, due) in [30, 10, 20, 10].into_iter().enumerate() {
            index.insert(&format!("id-{seq}"), at(due, seq as u64));
        }
        assert_eq!(index.next_due(), Some(10));
        assert!(index.take_due(9, 10).is_empty());
        let mut first = seqs(&index.take_due(10, 10));
        first.sort_unstable();
        assert_eq!(first, [1, 3]);
        assert_eq!(seqs(&index.take_due(30, 1)), [2]);
        assert_eq!(seqs(&index.take_due(30, 10)), [0]);
        assert!(index.take_due(u64::MAX, 10).is_empty());
        assert_eq!(index.len(), 4, "they wait until they are removed");
    }

    #[test]
    fn what_was_changed_or_removed_is_passed_over() {
        let mut index = Index::new();
        index.insert("a", at(10, 1));
        index.insert("b", at(10, 2));
        index.insert("a", at(20, 3));
        index.remove("b");
        assert_eq!(index.next_due(), Some(20));
        let due = index.take_due(20, 10);
        assert_eq!(seqs(&due), [3]);
        index.put_back(&due[0]);
        assert_eq!(index.next_due(), Some(20));
        let due = index.take_due(20, 10);
        index.insert("a", at(40, 4));
        assert!(!index.is_waiting(&due[0]));
        index.put_back(&due[0]);
        assert_eq!(index.next_due(), Some(40));
    }

    #[test]
    fn one_that_was_changed_without_another_due_time_is_due_once() {
        let mut index = Index::new();
        index.insert("a", at(10, 1));
        index.insert("a", at(10, 2));
        assert_eq!(seqs(&index.take_due(10, 10)), [2]);
        assert_eq!(index.next_due(), None);
    }

    #[test]
    fn the_heap_does_not_grow_with_changes() {
        let mut index = Index::new();
        for round in 0..100_000 {
            index.insert("a", at(round, round));
        }
        assert!(index.by_due.len() <= 2 + MAX_STALE);
        assert_eq!(index.next_due(), Some(99_999));
    }
}
