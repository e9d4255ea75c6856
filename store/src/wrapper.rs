//! Stores around other stores, which differ from them in little: tests that make one fail, for instance.

use crate::{
    Answer, Batch, CommitError, Find, Keyed, MovedTopics, Page, Past, ReadError, ReadLimit,
    Receipt, Store, StoreStatus, StoredEvent, TailWatch, TimePage, TimeRange, TopicInfo,
    TopicsWatch,
};
use std::sync::Arc;

/// A store that passes everything on to another one, but for what it does itself. Whoever is a wrapper is a store.
pub trait Wrapper: Send + Sync + 'static {
    /// The store that it is around.
    fn inner(&self) -> &dyn Store;

    /// See [`Store::commit`].
    fn commit(&self, batch: Batch) -> Answer<Receipt, CommitError> {
        self.inner().commit(batch)
    }

    /// See [`Store::read`].
    fn read(&self, topic: &Arc<str>, from_seq: u64, limit: ReadLimit) -> Answer<Page, ReadError> {
        self.inner().read(topic, from_seq, limit)
    }

    /// See [`Store::get`].
    fn get(&self, key: &str) -> Answer<Option<Keyed>, ReadError> {
        self.inner().get(key)
    }

    /// See [`Store::find`].
    fn find(&self, topic: &Arc<str>, what: Find<'_>) -> Answer<Option<u64>, ReadError> {
        self.inner().find(topic, what)
    }

    /// See [`Store::list`].
    fn list(&self, prefix: &str) -> Answer<Vec<(Arc<str>, Keyed)>, ReadError> {
        self.inner().list(prefix)
    }

    /// See [`Store::maintain`].
    fn maintain(&self) -> Answer<(), CommitError> {
        self.inner().maintain()
    }

    /// See [`Store::status`].
    fn status(&self) -> StoreStatus {
        self.inner().status()
    }

    /// See [`Store::close`].
    fn close(&self) -> Answer<(), CommitError> {
        self.inner().close()
    }
}

impl<W: Wrapper> Store for W {
    fn commit(&self, batch: Batch) -> Answer<Receipt, CommitError> {
        Wrapper::commit(self, batch)
    }

    fn read(&self, topic: &Arc<str>, from_seq: u64, limit: ReadLimit) -> Answer<Page, ReadError> {
        Wrapper::read(self, topic, from_seq, limit)
    }

    fn read_by_time(
        &self,
        topic: &Arc<str>,
        range: TimeRange,
        limit: ReadLimit,
    ) -> Answer<TimePage, ReadError> {
        self.inner().read_by_time(topic, range, limit)
    }

    fn find(&self, topic: &Arc<str>, what: Find<'_>) -> Answer<Option<u64>, ReadError> {
        Wrapper::find(self, topic, what)
    }

    fn latest(&self, topic: &Arc<str>, key: &str) -> Answer<Option<StoredEvent>, ReadError> {
        self.inner().latest(topic, key)
    }

    fn latest_keys(
        &self,
        topic: &Arc<str>,
        after: Option<&str>,
        limit: ReadLimit,
    ) -> Answer<Vec<StoredEvent>, ReadError> {
        self.inner().latest_keys(topic, after, limit)
    }

    fn latest_at(
        &self,
        topic: &Arc<str>,
        keys: Vec<String>,
        at_ts: u64,
    ) -> Answer<Vec<Past>, ReadError> {
        self.inner().latest_at(topic, keys, at_ts)
    }

    fn watch(&self, topic: &Arc<str>) -> TailWatch {
        self.inner().watch(topic)
    }

    fn watch_topics(&self) -> TopicsWatch {
        self.inner().watch_topics()
    }

    fn watch_moved(&self) -> MovedTopics {
        self.inner().watch_moved()
    }

    fn topic(&self, topic: &str) -> Option<TopicInfo> {
        self.inner().topic(topic)
    }

    fn incarnation(&self, topic: &str) -> Option<u64> {
        self.inner().incarnation(topic)
    }

    fn topics(&self) -> Vec<TopicInfo> {
        self.inner().topics()
    }

    fn get(&self, key: &str) -> Answer<Option<Keyed>, ReadError> {
        Wrapper::get(self, key)
    }

    fn list(&self, prefix: &str) -> Answer<Vec<(Arc<str>, Keyed)>, ReadError> {
        Wrapper::list(self, prefix)
    }

    fn maintain(&self) -> Answer<(), CommitError> {
        Wrapper::maintain(self)
    }

    fn status(&self) -> StoreStatus {
        Wrapper::status(self)
    }

    fn close(&self) -> Answer<(), CommitError> {
        Wrapper::close(self)
    }
}
