//! Nodes on a simulated log, and what tests do with them.

use prombus_replicated::simulated::SimulatedLog;
use prombus_replicated::{MemoryCopy, OpenError, Options, ReplicatedStore};
use prombus_store::{
    Batch, Change, Clock, CommitError, Draft, EventOutcome, Id, IfExists, ReadFrom, ReadLimit,
    Receipt, Store, SystemClock, TopicOptions,
};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const TOPIC: &str = "t";

/// Opens a node with an empty copy.
pub(crate) async fn node(log: &SimulatedLog) -> ReplicatedStore {
    try_node(log).await.expect("it opens")
}

pub(crate) async fn try_node(log: &SimulatedLog) -> Result<ReplicatedStore, OpenError> {
    try_node_at(log, Arc::new(SystemClock)).await
}

/// Opens a node with a clock of its own.
pub(crate) async fn node_at(log: &SimulatedLog, clock: Arc<dyn Clock>) -> ReplicatedStore {
    try_node_at(log, clock).await.expect("it opens")
}

async fn try_node_at(
    log: &SimulatedLog,
    clock: Arc<dyn Clock>,
) -> Result<ReplicatedStore, OpenError> {
    let copy = Arc::new(MemoryCopy::new(7));
    ReplicatedStore::open(Arc::new(log.clone()), copy, clock, Options::default()).await
}

/// Makes the topic of these tests.
pub(crate) async fn make_topic(node: &dyn Store) {
    let mut batch = Batch::new();
    batch.change(Change::PutTopic {
        topic: TOPIC.into(),
        options: TopicOptions::default(),
        if_exists: IfExists::Replace,
    });
    node.commit(batch).await.expect("a topic");
}

/// An event with an id or without.
pub(crate) fn event(id: Option<&str>, payload: &str) -> Batch {
    let mut batch = Batch::new();
    let draft = Draft {
        id: id.and_then(Id::from_client),
        payload,
        ..Draft::default()
    };
    batch.publish(&TOPIC.into(), &draft);
    batch
}

pub(crate) async fn publish(node: &dyn Store, payload: &str) -> Result<Receipt, CommitError> {
    node.commit(event(None, payload)).await
}

/// Payloads of all events, in their order.
pub(crate) async fn payloads(node: &dyn Store) -> Vec<String> {
    let limit = ReadLimit {
        events: 100_000,
        bytes: 1 << 30,
    };
    let page = node
        .read(&TOPIC.into(), ReadFrom::Seq(1), limit)
        .await
        .expect("a page");
    let payload = |event: &prombus_store::StoredEvent| event.payload().to_string();
    page.events.iter().map(payload).collect()
}

/// The JSON of all events, ids and times included.
pub(crate) async fn records(node: &dyn Store) -> Vec<String> {
    let limit = ReadLimit {
        events: 100_000,
        bytes: 1 << 30,
    };
    let page = node
        .read(&TOPIC.into(), ReadFrom::Seq(1), limit)
        .await
        .expect("a page");
    page.events
        .iter()
        .map(|event| format!("{event:?}"))
        .collect()
}

/// The position of the only event of a receipt.
pub(crate) fn seq(receipt: &Receipt) -> u64 {
    match receipt.events[..] {
        [EventOutcome::Stored(placed)] => placed.seq,
        ref other => panic!("not stored: {other:?}"),
    }
}

/// Waits for something that comes within a minute of the runtime's time.
pub(crate) async fn eventually(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..6000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came to this: {what}");
}
