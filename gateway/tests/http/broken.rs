//! Clients and disks that misbehave: slow bodies, bodies cut off, floods, and a store that stops taking writes.

use super::client::head;
use super::server::Running;
use prombus::error::{CommitError, StoreFailed};
use prombus::{BusOptions, Store, StoreStatus, SystemClock};
use prombus_gateway::GatewayOptions;
use prombus_gateway::auth::Authenticator;
use prombus_store::memory::MemoryStore;
use prombus_store::{Answer, Batch, Receipt, Wrapper};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A store that can be told to take no more writes.
pub(crate) struct Breakable {
    inner: Arc<dyn Store>,
    is_broken: AtomicBool,
}

impl Breakable {
    pub(crate) fn around(inner: Arc<dyn Store>) -> Arc<Self> {
        let is_broken = AtomicBool::new(false);
        Arc::new(Self { inner, is_broken })
    }

    pub(crate) fn break_writes(&self) {
        self.is_broken.store(true, Ordering::SeqCst);
    }

    fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::SeqCst)
    }
}

impl Wrapper for Breakable {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn commit(&self, batch: Batch) -> Answer<Receipt, CommitError> {
        if self.is_broken() {
            let cause = "no space left".into();
            return Box::pin(std::future::ready(Err(StoreFailed { cause }.into())));
        }
        self.inner.commit(batch)
    }

    fn status(&self) -> StoreStatus {
        let failed = self.is_broken().then(|| "no space left".into());
        StoreStatus {
            failed,
            ..self.inner.status()
        }
    }
}

fn impatient() -> GatewayOptions {
    GatewayOptions {
        request_timeout_ms: 200,
        ..GatewayOptions::default()
    }
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let server = Running::with(impatient()).await;
    let mut client = server.client().await;
    client
        .send(head("POST", "/publish/t", &[("content-length", "10")]).as_bytes())
        .await;
    client.send(b"12345").await;
    client.reply(false).await.is_error(408, "timeout");
    assert!(client.is_closed().await);
    assert!(server.bus().topics().is_empty());
}

#[tokio::test]
async fn a_slow_head_is_not_waited_for() {
    let server = Running::with(impatient()).await;
    let mut client = server.client().await;
    client.send(b"GET /topics HTTP/1.1\r\nhost: te").await;
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn lines_that_came_before_a_pause_are_kept() {
    let server = Running::with(impatient()).await;
    let mut client = server.client().await;
    let headers = [
        ("content-type", "application/x-ndjson"),
        ("transfer-encoding", "chunked"),
    ];
    client
        .send(head("POST", "/publish/t", &headers).as_bytes())
        .await;
    client.send(b"8\r\n1\n2\n3\n[4\r\n").await;
    let reply = client.reply(false).await;
    assert_eq!(reply.head.status, 408);
    let body = reply.json();
    assert_eq!(
        (&body["published"], &body["lines"]),
        (&3.into(), &3.into()),
        "{body}"
    );
    assert_eq!(body["stopped"]["code"], "timeout");
    assert_eq!(server.bus().topic("t").expect("a topic").tail_seq, 3);
}

#[tokio::test]
async fn a_body_that_is_cut_off_keeps_what_was_stored() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let headers = [
        ("content-type", "application/x-ndjson"),
        ("content-length", "100"),
    ];
    client
        .send(head("POST", "/publish/t", &headers).as_bytes())
        .await;
    client.send(b"1\n2\n{\"half\":").await;
    client.finish().await;
    assert!(client.is_closed().await);
    let mut waited = 0;
    while server.bus().topic("t").map_or(0, |info| info.tail_seq) < 2 {
        waited += 1;
        assert!(waited < 1_000, "the whole lines are stored");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    // And the half one is not.
    let mut client = server.client().await;
    client.post("/publish/t", "3").await.ok();
    assert_eq!(server.bus().topic("t").expect("a topic").tail_seq, 3);
}

#[tokio::test]
async fn a_flood_of_headers_is_refused() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let names: Vec<String> = (0..1_000).map(|number| format!("x-{number}")).collect();
    let flood: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
    client.send(head("GET", "/topics", &flood).as_bytes()).await;
    assert_eq!(client.head().await.status, 431);
    let mut client = server.client().await;
    let long = "x".repeat(1 << 20);
    client
        .send(head("GET", "/topics", &[("x-long", &long)]).as_bytes())
        .await;
    assert_eq!(client.head().await.status, 431);
    server.client().await.get("/topics").await.ok();
}

#[tokio::test]
async fn garbage_takes_nothing_down() {
    let server = Running::start().await;
    for garbage in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"GET\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
    ] {
        let mut client = server.client().await;
        client.send(garbage).await;
        client.finish().await;
        assert!(client.is_closed().await);
    }
    server.client().await.get("/topics").await.ok();
}

#[tokio::test]
async fn many_lines_stop_where_the_store_does() {
    let store = Breakable::around(Arc::new(MemoryStore::new(Arc::new(SystemClock))));
    let auth = Authenticator::off();
    let options = GatewayOptions::default();
    let server = Running::on(store.clone(), BusOptions::default(), auth, options).await;
    let mut client = server.client().await;
    client.post("/publish/t", "1").await.ok();
    store.break_writes();
    let lines = "1\n".repeat(100_000);
    let ndjson = [("content-type", "application/x-ndjson")];
    let reply = client
        .request("POST", "/publish/t", &ndjson, lines.as_bytes())
        .await;
    assert_eq!(reply.head.status, 503);
    let body = reply.json();
    assert_eq!(body["stopped"]["code"], "publish_failed");
    assert_eq!(body["published"], 0);
    assert!(
        body["lines"].as_u64().is_some_and(|lines| lines < 100_000),
        "{}",
        body["lines"]
    );
}
