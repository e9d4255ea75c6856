//! Key lanes: of each key at most one event is under way, the next ones wait behind it in log order.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroU64;

/// A key's lane. Two keys that share one by accident only wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Lane(NonZeroU64);

/// The lanes that have an event under way.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lanes {
    /// Who waits, in log order, behind the event under way.
    waiting: HashMap<Lane, VecDeque<u64>>,
}

impl Lane {
    pub(crate) fn of(key: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        Self::from_hash(hasher.finish())
    }

    /// The lane of a partition, one of so many.
    pub(crate) fn of_partition(number: u32, of: u32) -> Self {
        let mut hasher = DefaultHasher::new();
        ("partition", number, of).hash(&mut hasher);
        Self::from_hash(hasher.finish())
    }

    fn from_hash(hash: u64) -> Self {
        Self(NonZeroU64::new(hash).unwrap_or(NonZeroU64::MIN))
    }
}

impl Lanes {
    /// Enters a lane; `true` where it was free and the event may go ahead.
    pub(crate) fn enter(&mut self, lane: Lane, seq: u64) -> bool {
        match self.waiting.get_mut(&lane) {
            Some(waiting) => {
                waiting.push_back(seq);
                false
            }
            None => {
                self.waiting.insert(lane, VecDeque::new());
                true
            }
        }
    }

    /// Whether a lane has an event under way.
    pub(crate) fn is_busy(&self, lane: Lane) -> bool {
        self.waiting.contains_key(&lane)
    }

    /// The event under way is done: who goes next.
    pub(crate) fn advance(&mut self, lane: Lane) -> Option<u64> {
        let next = self.waiting.get_mut(&lane)?.pop_front();
        if next.is_none() {
            self.waiting.remove(&lane);
        }
        next
    }

    /// One that waited goes away.
    pub(crate) fn leave(&mut self, lane: Lane, seq: u64) {
        if let Some(waiting) = self.waiting.get_mut(&lane) {
            waiting.retain(|&other| other != seq);
        }
    }

    /// How many wait in a lane.
    pub(crate) fn waiting(&self, lane: Lane) -> usize {
        self.waiting.get(&lane).map_or(0, VecDeque::len)
    }

    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
    }
}
