//! A store that fails while clients are connected: publishing says so, reading goes on, and it recovers by itself.

use crate::support::{publish, serve_store, settle};
use prombus::error::StoreFailed;
use prombus::{BusOptions, Store, StoredEvent, SystemClock, TopicInfo};
use prombus_gateway::GatewayOptions;
use prombus_gateway::auth::Authenticator;
use prombus_store::memory::MemoryStore;
use prombus_store::{
    Answer, Batch, CommitError, Find, Keyed, Page, Past, ReadError, ReadLimit, Receipt,
    StoreStatus, TailWatch, TimePage, TimeRange, TopicsWatch,
};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A memory store that can be told to refuse writes.
struct FailingStore {
    inner: MemoryStore,
    refuses: AtomicBool,
}

impl Store for FailingStore {
    fn commit(&self, batch: Batch) -> Answer<Receipt, CommitError> {
        if self.refuses.load(Ordering::SeqCst) {
            let cause = "the disk is full".into();
            return Box::pin(async { Err(StoreFailed { cause }.into()) });
        }
        self.inner.commit(batch)
    }

    fn read(&self, topic: &Arc<str>, from_seq: u64, limit: ReadLimit) -> Answer<Page, ReadError> {
        self.inner.read(topic, from_seq, limit)
    }

    fn read_by_time(
        &self,
        topic: &Arc<str>,
        range: TimeRange,
        limit: ReadLimit,
    ) -> Answer<TimePage, ReadError> {
        self.inner.read_by_time(topic, range, limit)
    }

    fn find(&self, topic: &Arc<str>, what: Find<'_>) -> Answer<Option<u64>, ReadError> {
        self.inner.find(topic, what)
    }

    fn latest(&self, topic: &Arc<str>, key: &str) -> Answer<Option<StoredEvent>, ReadError> {
        self.inner.latest(topic, key)
    }

    fn latest_keys(
        &self,
        topic: &Arc<str>,
        after: Option<&str>,
        limit: ReadLimit,
    ) -> Answer<Vec<StoredEvent>, ReadError> {
        self.inner.latest_keys(topic, after, limit)
    }

    fn latest_at(
        &self,
        topic: &Arc<str>,
        keys: Vec<String>,
        at_ts: u64,
    ) -> Answer<Vec<Past>, ReadError> {
        self.inner.latest_at(topic, keys, at_ts)
    }

    fn watch(&self, topic: &Arc<str>) -> TailWatch {
        self.inner.watch(topic)
    }

    fn watch_topics(&self) -> TopicsWatch {
        self.inner.watch_topics()
    }

    fn topic(&self, topic: &str) -> Option<TopicInfo> {
        self.inner.topic(topic)
    }

    fn topics(&self) -> Vec<TopicInfo> {
        self.inner.topics()
    }

    fn get(&self, key: &str) -> Answer<Option<Keyed>, ReadError> {
        self.inner.get(key)
    }

    fn list(&self, prefix: &str) -> Answer<Vec<(Arc<str>, Keyed)>, ReadError> {
        self.inner.list(prefix)
    }

    fn maintain(&self) -> Answer<(), CommitError> {
        self.inner.maintain()
    }

    fn status(&self) -> StoreStatus {
        self.inner.status()
    }

    fn close(&self) -> Answer<(), CommitError> {
        self.inner.close()
    }
}

#[tokio::test]
async fn publishing_fails_and_reading_goes_on() {
    let store = Arc::new(FailingStore {
        inner: MemoryStore::new(Arc::new(SystemClock)),
        refuses: AtomicBool::new(false),
    });
    let options = GatewayOptions::default();
    let off = Authenticator::off();
    let served = serve_store(store.clone(), BusOptions::default(), off, options).await;
    let mut socket = served.connect().await;
    for number in 0..10 {
        socket.publish("t", json!(number)).await;
    }
    socket
        .subscribe("t", "g", json!({"from":"earliest","maxInFlight":2}))
        .await;
    store.refuses.store(true, Ordering::SeqCst);
    let reply = socket.ask(publish("t", json!("lost"))).await;
    assert_eq!(reply["code"], "publish_failed");
    assert!(
        reply["msg"]
            .as_str()
            .is_some_and(|msg| msg.contains("the disk is full")),
        "{reply}"
    );
    for number in 0..10 {
        let event = socket.event().await;
        assert_eq!(event["event"]["payload"], number);
        assert_eq!(socket.ask(settle("ACK", &event)).await["op"], "OK");
    }
    store.refuses.store(false, Ordering::SeqCst);
    assert_eq!(socket.publish("t", json!("kept")).await["seq"], 11);
    assert_eq!(socket.event().await["event"]["payload"], "kept");
}
