//! The store that keeps everything in memory: the reference model for all others, and what `memory:` opens. Nothing
//! survives the process, nothing runs in the background, and every answer is there at once.

mod maintenance;
mod plan;
mod state;
mod time_order;
mod topic;

use crate::LockExt;
use crate::tails::Tails;
use crate::{
    Answer, Batch, Clock, CommitError, Find, Keyed, LatestEvent, Page, ReadError, ReadFrom,
    ReadLimit, Receipt, Store, StoreStatus, TailAdvances, TailWatch, TopicInfo, TopicsWatch,
};
use state::State;
use std::future::ready;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// How many bytes of events a store takes by default.
pub const DEFAULT_MAX_BYTES: u64 = 1 << 30;

/// Tells the stores of one process apart, so that no two make the same ids.
static STORES_MADE: AtomicU64 = AtomicU64::new(0);

/// A store in memory.
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    /// Taken once per call; it comes before the lock inside `tails`.
    state: Mutex<State>,
    tails: Tails,
}

impl MemoryStore {
    /// An empty store that takes up to [`DEFAULT_MAX_BYTES`] of events.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self::with_limit(clock, DEFAULT_MAX_BYTES)
    }

    /// An empty store that takes up to `max_bytes` of events; what does not fit is refused as `memory_store_bytes`.
    pub fn with_limit(clock: Arc<dyn Clock>, max_bytes: u64) -> Self {
        let made_before = STORES_MADE.fetch_add(1, Ordering::Relaxed);
        let number = clock.now_ms().wrapping_add((made_before + 1) << 48);
        Self::numbered(clock, max_bytes, number)
    }

    /// An empty store whose ids depend on nothing but `store_number`, the clock and what is committed, so that a
    /// simulation gives the same bytes each time.
    pub fn numbered(clock: Arc<dyn Clock>, max_bytes: u64, store_number: u64) -> Self {
        Self {
            clock,
            state: Mutex::new(State::new(max_bytes, store_number)),
            tails: Tails::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.guard()
    }
}

impl Store for MemoryStore {
    fn commit(&self, batch: Batch) -> Answer<Receipt, CommitError> {
        let receipt = self
            .state()
            .commit(&batch, self.clock.now_ms(), &self.tails);
        Box::pin(ready(receipt))
    }

    fn read(
        &self,
        topic: &Arc<str>,
        from: ReadFrom<'_>,
        limit: ReadLimit,
    ) -> Answer<Page, ReadError> {
        let state = self.state();
        let page = state.topic(topic).map(|topic| topic.read(from, limit));
        Box::pin(ready(page))
    }

    fn find(&self, topic: &Arc<str>, what: Find<'_>) -> Answer<Option<u64>, ReadError> {
        let seq = self.state().topic(topic).map(|topic| topic.find(what));
        Box::pin(ready(seq))
    }

    fn latest(
        &self,
        topic: &Arc<str>,
        keys: Vec<String>,
        at_ts: Option<u64>,
    ) -> Answer<Vec<LatestEvent>, ReadError> {
        let state = self.state();
        let latest = state.topic(topic).map(|topic| match at_ts {
            None => topic.latest(&keys),
            Some(at_ts) => topic.latest_at(&keys, at_ts),
        });
        Box::pin(ready(latest))
    }

    fn watch(&self, topic: &Arc<str>) -> TailWatch {
        let state = self.state();
        self.tails.watch(topic, || {
            state.topics.get(topic).map_or(0, |topic| topic.tail_seq)
        })
    }

    fn watch_topics(&self) -> TopicsWatch {
        self.tails.watch_topics()
    }

    fn watch_tails(&self) -> TailAdvances {
        self.tails.watch_tails()
    }

    fn topic(&self, topic: &str) -> Option<TopicInfo> {
        let state = self.state();
        let (name, topic) = state.topics.get_key_value(topic)?;
        Some(topic.info(name))
    }

    fn topics(&self) -> Vec<TopicInfo> {
        let state = self.state();
        let mut topics: Vec<_> = state
            .topics
            .iter()
            .map(|(name, topic)| topic.info(name))
            .collect();
        topics.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        topics
    }

    fn get(&self, key: &str) -> Answer<Option<Keyed>, ReadError> {
        let keyed = self.state().keyed.get(key).cloned();
        Box::pin(ready(Ok(keyed)))
    }

    fn list(&self, prefix: &str) -> Answer<Vec<(Arc<str>, Keyed)>, ReadError> {
        let state = self.state();
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let records = state.keyed.range::<str, _>(from);
        let listed = records
            .take_while(|(key, _)| key.starts_with(prefix))
            .map(|(key, keyed)| (key.clone(), keyed.clone()))
            .collect();
        Box::pin(ready(Ok(listed)))
    }

    fn maintain(&self) -> Answer<(), CommitError> {
        let mut state = self.state();
        if state.closed {
            return Box::pin(ready(Err(CommitError::Closed)));
        }
        state.maintain(self.clock.now_ms());
        Box::pin(ready(Ok(())))
    }

    fn status(&self) -> StoreStatus {
        StoreStatus {
            url: "memory:".into(),
            durability: "in memory only, gone when the process ends".into(),
            bytes: self.state().bytes,
            ..StoreStatus::default()
        }
    }

    fn close(&self) -> Answer<(), CommitError> {
        self.state().closed = true;
        Box::pin(ready(Ok(())))
    }
}
