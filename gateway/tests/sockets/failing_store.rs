//! A store that fails while clients are connected: publishing says so, reading goes on, and it recovers by itself.

use crate::support::{publish, serve_store, settle};
use prombus::error::StoreFailed;
use prombus::{BusOptions, Store, SystemClock};
use prombus_gateway::GatewayOptions;
use prombus_gateway::auth::Authenticator;
use prombus_store::memory::MemoryStore;
use prombus_store::{Answer, Batch, CommitError, Receipt, Wrapper};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A memory store that can be told to refuse writes.
struct FailingStore {
    inner: MemoryStore,
    refuses: AtomicBool,
}

impl Wrapper for FailingStore {
    fn inner(&self) -> &dyn Store {
        &self.inner
    }

    fn commit(&self, batch: Batch) -> Answer<Receipt, CommitError> {
        if self.refuses.load(Ordering::SeqCst) {
            let cause = "the disk is full".into();
            return Box::pin(async { Err(StoreFailed { cause }.into()) });
        }
        self.inner.commit(batch)
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
