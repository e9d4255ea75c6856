//! Stores around other stores, which differ from them in little: tests that make one fail, for instance.

use crate::{
    Answer, Batch, CommitError, Find, Keyed, LatestEvent, NodeBoot, Page, ReadError, ReadFrom,
    ReadLimit, Receipt, Store, StoreStatus, SyncTimeCounts, TailAdvances, TailWatch, TopicInfo,
    TopicsWatch,
};
use std::sync::Arc;

/// A store that passes everything on to another one, but for what it does itself. The caller that is a wrapper is a store.
pub trait Wrapper: Send + Sync + 'static {
    /// The store that it is around.
    fn inner(&self) -> &dyn Store;

    /// See [`Store::commit`].
    fn commit(&self, batch: Batch) -> Answer<Receipt, CommitError> {
        self.inner().commit(batch)
    }

    /// See [`Store::read`].
    fn read(
        &self,
        topic: &Arc<str>,
        from: ReadFrom<'_>,
        limit: ReadLimit,
    ) -> Answer<Page, ReadError> {
        self.inner().read(topic, from, limit)
    }

    /// See [`Store::barrier`].
    fn barrier(&self) -> Answer<(), ReadError> {
        self.inner().barrier()
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

    /// See [`Store::shared_as`].
    fn shared_as(&self) -> Option<NodeBoot> {
        self.inner().shared_as()
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

    fn read(
        &self,
        topic: &Arc<str>,
        from: ReadFrom<'_>,
        limit: ReadLimit,
    ) -> Answer<Page, ReadError> {
        Wrapper::read(self, topic, from, limit)
    }

    fn barrier(&self) -> Answer<(), ReadError> {
        Wrapper::barrier(self)
    }

    fn find(&self, topic: &Arc<str>, what: Find<'_>) -> Answer<Option<u64>, ReadError> {
        Wrapper::find(self, topic, what)
    }

    fn latest(
        &self,
        topic: &Arc<str>,
        keys: Vec<String>,
        at_ts: Option<u64>,
    ) -> Answer<Vec<LatestEvent>, ReadError> {
        self.inner().latest(topic, keys, at_ts)
    }

    fn watch(&self, topic: &Arc<str>) -> TailWatch {
        self.inner().watch(topic)
    }

    fn watch_topics(&self) -> TopicsWatch {
        self.inner().watch_topics()
    }

    fn watch_tails(&self) -> TailAdvances {
        self.inner().watch_tails()
    }

    fn sync_times(&self) -> SyncTimeCounts {
        self.inner().sync_times()
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

    fn shared_as(&self) -> Option<NodeBoot> {
        Wrapper::shared_as(self)
    }

    fn close(&self) -> Answer<(), CommitError> {
        Wrapper::close(self)
    }
}
