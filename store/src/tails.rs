//! Who is told when a topic's tail moves or the set of topics changes. Shared by the stores of this crate.

#![cfg_attr(
    not(any(feature = "memory", feature = "file")),
    allow(
        dead_code,
        reason = "without a store of this crate only the types are used"
    )
)]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// A topic's tail as it moves.
#[derive(Debug, Clone)]
pub struct TailWatch(watch::Receiver<u64>);

/// Changes whenever the set of topics or a topic's options do.
#[derive(Debug, Clone)]
pub struct TopicsWatch(watch::Receiver<u64>);

/// The senders behind the watches.
#[derive(Debug)]
pub(crate) struct Tails {
    /// Only topics that someone follows; swept when it has doubled.
    by_topic: Mutex<HashMap<Arc<str>, watch::Sender<u64>>>,
    topics: watch::Sender<u64>,
}

impl TailWatch {
    /// The tail now.
    pub fn current(&self) -> u64 {
        *self.0.borrow()
    }

    /// Waits until the tail has moved since the last call; `false` where the store is gone.
    pub async fn moved(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

impl TopicsWatch {
    /// Waits until something has changed since the last call; `false` where the store is gone.
    pub async fn changed(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

impl Tails {
    const SWEEP_AT: usize = 64;

    pub(crate) fn new() -> Self {
        Self {
            by_topic: Mutex::default(),
            topics: watch::Sender::new(0),
        }
    }

    /// Follows `topic`, whose tail is `tail` now. `tail` is asked for under the lock, so that no move is missed; a
    /// store that calls [`Self::moved`] under a lock of its own must hold that lock here already.
    pub(crate) fn watch(&self, topic: &Arc<str>, tail: impl FnOnce() -> u64) -> TailWatch {
        let mut by_topic = self.lock();
        if by_topic.len() >= Self::SWEEP_AT && by_topic.len().is_power_of_two() {
            by_topic.retain(|_, sender| sender.receiver_count() > 0);
        }
        let sender = by_topic
            .entry(topic.clone())
            .or_insert_with(|| watch::Sender::new(0));
        let tail = tail();
        sender.send_if_modified(|known| std::mem::replace(known, tail) != tail);
        TailWatch(sender.subscribe())
    }

    pub(crate) fn watch_topics(&self) -> TopicsWatch {
        TopicsWatch(self.topics.subscribe())
    }

    /// Tells the followers of `topic` where its tail is.
    pub(crate) fn moved(&self, topic: &str, tail: u64) {
        if let Some(sender) = self.lock().get(topic) {
            sender.send_if_modified(|known| std::mem::replace(known, tail) != tail);
        }
    }

    /// Tells all followers where their topics' tails are, which `tail` says.
    pub(crate) fn refresh(&self, tail: impl Fn(&str) -> u64) {
        for (topic, sender) in &*self.lock() {
            let tail = tail(topic);
            sender.send_if_modified(|known| std::mem::replace(known, tail) != tail);
        }
    }

    /// Whether there may be somebody who follows a topic.
    pub(crate) fn is_followed(&self) -> bool {
        !self.lock().is_empty()
    }

    /// Tells that topics were made, changed or deleted.
    pub(crate) fn topics_changed(&self) {
        self.topics
            .send_modify(|generation| *generation = generation.wrapping_add(1));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Arc<str>, watch::Sender<u64>>> {
        self.by_topic.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
