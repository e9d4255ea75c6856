//! Notifies watchers when a topic's tail moves or the set of topics changes. Shared by all stores.
//!
//! Waiters are woken in the order in which they began to wait, so that a simulation gives the same run each time.

use crate::LockExt;
use std::collections::{BTreeSet, HashMap};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::Notify;

/// A topic's tail as it moves.
#[derive(Debug, Clone)]
pub struct TailWatch(Watch);

/// Changes whenever the set of topics or a topic's options do.
#[derive(Debug, Clone)]
pub struct TopicsWatch(Watch);

/// The topics whose tails have moved, whichever they are.
#[derive(Debug)]
pub struct TailAdvances(Arc<Moved>);

/// The other ends of the watches.
#[derive(Debug)]
pub struct Tails {
    /// Only topics that someone follows; swept when it has doubled.
    by_topic: Mutex<HashMap<Arc<str>, Arc<Cell>>>,
    topics: Arc<Cell>,
    /// Those who follow all topics.
    all: Mutex<Vec<Weak<Moved>>>,
    /// How many there may be, so that a move of a tail need not take the lock where there are none.
    followers_of_all: AtomicUsize,
}

/// A number that changes.
#[derive(Debug, Default)]
struct Cell {
    state: Mutex<CellState>,
    changed: Notify,
    /// How often it was changed, for those who only compare.
    changes: AtomicU64,
}

#[derive(Debug, Default, Clone, Copy)]
struct CellState {
    value: u64,
    /// Grows with each change.
    version: u64,
    is_closed: bool,
}

#[derive(Debug, Clone)]
struct Watch {
    cell: Arc<Cell>,
    seen: u64,
}

#[derive(Debug, Default)]
struct Moved {
    state: Mutex<MovedState>,
    changed: Notify,
}

/// Bounded by the number of topics.
#[derive(Debug, Default)]
struct MovedState {
    topics: BTreeSet<Arc<str>>,
    is_closed: bool,
}

impl TailWatch {
    /// The tail now.
    pub fn current(&self) -> u64 {
        self.0.cell.lock().value
    }

    /// Waits until the tail has moved since the last call; `false` where the store is gone.
    pub async fn moved(&mut self) -> bool {
        self.0.changed().await
    }
}

impl TopicsWatch {
    /// A number that grows whenever something has changed. A reader that finds it unchanged may rely on what it knows of
    /// topics.
    pub fn changes(&self) -> u64 {
        self.0.cell.changes.load(Ordering::Acquire)
    }

    /// Waits until something has changed since the last call; `false` where the store is gone.
    pub async fn changed(&mut self) -> bool {
        self.0.changed().await
    }
}

impl TailAdvances {
    /// Waits until tails have moved since the last call and says whose; `None` where the store is gone.
    pub async fn moved(&mut self) -> Option<BTreeSet<Arc<str>>> {
        loop {
            let mut changed = pin!(self.0.changed.notified());
            changed.as_mut().enable();
            {
                let mut state = self.0.lock();
                if !state.topics.is_empty() {
                    return Some(std::mem::take(&mut state.topics));
                }
                if state.is_closed {
                    return None;
                }
            }
            changed.await;
        }
    }
}

impl Watch {
    async fn changed(&mut self) -> bool {
        loop {
            let mut changed = pin!(self.cell.changed.notified());
            changed.as_mut().enable();
            let state = *self.cell.lock();
            if state.version != self.seen {
                self.seen = state.version;
                return true;
            }
            if state.is_closed {
                return false;
            }
            changed.await;
        }
    }
}

impl Cell {
    /// Sets the value, and notifies the waiters where that changes it.
    fn set(&self, value: u64) {
        let mut state = self.lock();
        if state.value == value {
            return;
        }
        state.value = value;
        state.version += 1;
        drop(state);
        self.changed.notify_waiters();
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, CellState> {
        self.state.guard()
    }
}

impl Moved {
    fn add(&self, topic: &str) {
        let mut state = self.lock();
        if !state.topics.contains(topic) {
            state.topics.insert(topic.into());
        }
        drop(state);
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, MovedState> {
        self.state.guard()
    }
}

impl Default for Tails {
    fn default() -> Self {
        Self::new()
    }
}

impl Tails {
    const SWEEP_AT: usize = 64;

    /// Without followers.
    pub fn new() -> Self {
        Self {
            by_topic: Mutex::default(),
            topics: Arc::default(),
            all: Mutex::default(),
            followers_of_all: AtomicUsize::new(0),
        }
    }

    /// Follows `topic`, whose tail is `tail` now. `tail` is asked for under the lock, so that no move is missed; a
    /// store that calls [`Self::moved`] under a lock of its own must hold that lock here already.
    pub fn watch(&self, topic: &Arc<str>, tail: impl FnOnce() -> u64) -> TailWatch {
        let mut by_topic = self.lock();
        if by_topic.len() >= Self::SWEEP_AT && by_topic.len().is_power_of_two() {
            by_topic.retain(|_, cell| Arc::strong_count(cell) > 1);
        }
        let cell = by_topic.entry(topic.clone()).or_default().clone();
        cell.set(tail());
        let seen = cell.lock().version;
        TailWatch(Watch { cell, seen })
    }

    /// Follows the set of topics from now on.
    pub fn watch_topics(&self) -> TopicsWatch {
        let cell = self.topics.clone();
        let seen = cell.lock().version;
        TopicsWatch(Watch { cell, seen })
    }

    /// Follows the tails of all topics from now on.
    pub fn watch_tails(&self) -> TailAdvances {
        let moved: Arc<Moved> = Arc::default();
        let mut all = self.all.guard();
        all.retain(|one| one.strong_count() > 0);
        all.push(Arc::downgrade(&moved));
        self.followers_of_all.store(all.len(), Ordering::Release);
        TailAdvances(moved)
    }

    /// Tells the followers of `topic` where its tail is.
    pub fn moved(&self, topic: &str, tail: u64) {
        if let Some(cell) = self.lock().get(topic) {
            cell.set(tail);
        }
        if self.followers_of_all.load(Ordering::Acquire) > 0 {
            let mut all = self.all.guard();
            all.retain(|one| match one.upgrade() {
                Some(moved) => {
                    moved.add(topic);
                    true
                }
                None => false,
            });
            self.followers_of_all.store(all.len(), Ordering::Release);
        }
    }

    /// Notifies all followers of where tails are: those of `topics`, and 0 for all others.
    pub fn refresh(&self, topics: &[(Arc<str>, u64)]) {
        let tails: HashMap<&str, u64> =
            topics.iter().map(|(name, tail)| (&**name, *tail)).collect();
        for (topic, cell) in &*self.lock() {
            cell.set(tails.get(&**topic).copied().unwrap_or(0));
        }
        for (topic, tail) in topics {
            self.moved(topic, *tail);
        }
    }

    /// Whether there may be somebody who follows a topic.
    pub fn is_followed(&self) -> bool {
        self.followers_of_all.load(Ordering::Acquire) > 0 || !self.lock().is_empty()
    }

    /// Tells that topics were made, changed or deleted.
    pub fn topics_changed(&self) {
        self.topics.lock().version += 1;
        self.topics.changes.fetch_add(1, Ordering::AcqRel);
        self.topics.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Cell>>> {
        self.by_topic.guard()
    }
}

impl Drop for Tails {
    fn drop(&mut self) {
        self.lock().values().for_each(|cell| cell.close());
        self.topics.close();
        let all = self.all.get_mut().unwrap_or_else(PoisonError::into_inner);
        for moved in all.iter().filter_map(Weak::upgrade) {
            moved.lock().is_closed = true;
            moved.changed.notify_waiters();
        }
    }
}
