//! A server, a database in it, and a bus in memory.

use crate::mongo_server::Server;
use mongodb::Database;
use mongodb::bson::{Document, doc};
use prombus::{Bus, BusOptions, PublishOptions, ReadFrom, ReadLimit, StoredEvent};
use prombus_store::memory::MemoryStore;
use prombus_store::{ManualClock, SystemClock};
use std::sync::Arc;
use std::time::Duration;

/// Far more than anything needs on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

pub(crate) struct Lab {
    /// Stopped with the test.
    pub(crate) server: Server,
    pub(crate) database: Database,
    pub(crate) bus: Bus,
}

impl Lab {
    pub(crate) async fn start() -> Self {
        Self::on(Server::start()).await
    }

    pub(crate) async fn on(server: Server) -> Self {
        let url = server.fresh_url();
        Self {
            database: prombus_mongo::open(&url).await.expect("a database"),
            server,
            bus: bus(),
        }
    }

    /// All documents of a collection, in the order of `_id`.
    pub(crate) async fn documents(&self, collection: &str) -> Vec<Document> {
        let collection = self.database.collection::<Document>(collection);
        let mut cursor = collection
            .find(doc! {})
            .sort(doc! { "_id": 1 })
            .await
            .expect("documents");
        let mut found = Vec::new();
        while cursor.advance().await.expect("a document") {
            found.push(cursor.deserialize_current().expect("a document"));
        }
        found
    }

    /// Publishes events with keys.
    pub(crate) async fn publish(&self, topic: &str, events: &[(&str, &str)]) {
        for (key, payload) in events {
            let options = PublishOptions {
                key: Some(key),
                ..PublishOptions::default()
            };
            let published = self.bus.publish_text(topic, payload, &options).await;
            published.expect("published");
        }
    }

    /// All events of a topic.
    pub(crate) async fn events(&self, topic: &str) -> Vec<StoredEvent> {
        let limit = ReadLimit {
            events: 100_000,
            bytes: 1 << 30,
        };
        let read = self
            .bus
            .store()
            .read(&topic.into(), ReadFrom::Seq(1), limit);
        read.await.expect("a page").events
    }

    pub(crate) async fn payloads(&self, topic: &str) -> Vec<String> {
        let events = self.events(topic).await;
        events
            .iter()
            .map(|event| event.payload().to_owned())
            .collect()
    }
}

pub(crate) fn bus() -> Bus {
    let store = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
    Bus::open(store, BusOptions::default()).expect("a bus")
}

pub(crate) fn clock(ms: u64) -> Arc<ManualClock> {
    Arc::new(ManualClock::at(ms))
}

/// Waits until something is so.
pub(crate) async fn eventually(what: &str, is_so: impl AsyncFn() -> bool) {
    let waiting = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let came = tokio::time::timeout(LIMIT, waiting).await;
    assert!(came.is_ok(), "it never came to this: {what}");
}
