//! Snapshots in JetStream: a node that starts after the stream was trimmed, and one that is killed.

use crate::servers::Servers;
use prombus_replicated::nats::{JetStreamLog, NatsUrl};
use prombus_replicated::{FolderCopy, OpenCopyError, Options, ReplicatedStore, SharedLog};
use prombus_store::{
    Batch, Change, Draft, IfExists, ReadFrom, ReadLimit, Store, SystemClock, TopicOptions,
};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const TOPIC: &str = "t";
const LIMIT: Duration = Duration::from_secs(60);

async fn log(servers: &Servers, options: &str) -> JetStreamLog {
    let url = format!("nats://{}/orders?{options}", servers.hosts());
    let url = NatsUrl::parse(&url).expect("a URL");
    JetStreamLog::open(&url, 5).await.expect("a stream")
}

async fn start(servers: &Servers, options: &str, folder: &Path) -> ReplicatedStore {
    let log = Arc::new(log(servers, options).await);
    // What a start that was given up has under way on other threads may take a moment to end.
    let (copy, _) = loop {
        match FolderCopy::open(folder, 5) {
            Err(OpenCopyError::InUse(_)) => tokio::time::sleep(Duration::from_millis(5)).await,
            opened => break opened.expect("a copy"),
        }
    };
    let options = Options {
        snapshot_bytes: 300_000,
        absent_after: Duration::from_secs(1),
        ..Options::default()
    };
    let node = ReplicatedStore::open(log, Arc::new(copy), Arc::new(SystemClock), options).await;
    node.expect("it opens")
}

async fn fill(node: &ReplicatedStore, count: usize) {
    let mut batch = Batch::new();
    batch.change(Change::PutTopic {
        topic: TOPIC.into(),
        options: TopicOptions::default(),
        if_exists: IfExists::Keep,
    });
    node.commit(batch).await.expect("a topic");
    let payload = format!("\"{}\"", "x".repeat(50_000));
    for _ in 0..count {
        let mut batch = Batch::new();
        let draft = Draft {
            payload: &payload,
            ..Draft::default()
        };
        batch.publish(&TOPIC.into(), &draft);
        node.commit(batch).await.expect("a commit");
    }
}

async fn ids(node: &ReplicatedStore) -> Vec<String> {
    let limit = ReadLimit {
        events: 1_000_000,
        bytes: 1 << 30,
    };
    let page = node.read(&TOPIC.into(), ReadFrom::Seq(1), limit).await;
    let events = page.expect("a page").events;
    events.iter().map(|event| event.id().to_string()).collect()
}

async fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let came = tokio::time::timeout(LIMIT, waiting).await;
    assert!(came.is_ok(), "it never came to this: {what}");
}

async fn trimmed_and_joined(servers: &Servers, options: &str) {
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let node = start(servers, options, folders[0].path()).await;
    fill(&node, 30).await;
    eventually("the stream is trimmed", || node.replication().first > 5).await;
    fill(&node, 3).await;
    // Killed while it loads the snapshot, it begins again.
    for ms in [1, 20, 60, 120] {
        let starting = start(servers, options, folders[1].path());
        let _ = tokio::time::timeout(Duration::from_millis(ms), starting).await;
    }
    let other = start(servers, options, folders[1].path()).await;
    let bounds = log(servers, options).await.bounds().await.expect("bounds");
    assert!(bounds.first > 5, "{bounds:?}");
    assert_eq!(ids(&node).await.len(), 33);
    assert_eq!(ids(&other).await, ids(&node).await);
    other.barrier().await.expect("caught up");
    node.barrier().await.expect("caught up");
    assert_eq!(other.replication().digest, node.replication().digest);
    let snapshots = log(servers, options).await.snapshots().expect("snapshots");
    let listed = snapshots.list().await.expect("a list");
    assert!(listed.contains(&node.replication().snapshot), "{listed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_node_gets_everything_from_a_snapshot_and_the_tail() {
    trimmed_and_joined(&Servers::start(1, ""), "").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_on_three_servers() {
    trimmed_and_joined(&Servers::start(3, ""), "replicas=3").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshots_are_kept_listed_and_removed() {
    let servers = Servers::start(1, "");
    let log = log(&servers, "").await;
    let snapshots = log.snapshots().expect("snapshots");
    assert_eq!(snapshots.list().await, Ok(Vec::new()));
    for (snapshot, chunks) in [(7, vec![1, 2, 0]), (30, vec![1, 2, 0]), (31, vec![1])] {
        for chunk in chunks {
            let bytes = format!("{snapshot}/{chunk}").into();
            let put = snapshots.put(snapshot, chunk, bytes).await;
            put.expect("kept");
        }
    }
    assert_eq!(snapshots.list().await, Ok(vec![7, 30]));
    let chunk = snapshots.get(30, 2).await.expect("an answer");
    assert_eq!(chunk.as_deref(), Some(&b"30/2"[..]));
    assert_eq!(snapshots.get(30, 3).await, Ok(None));
    snapshots.remove_below(30).await.expect("removed");
    assert_eq!(snapshots.list().await, Ok(vec![30]));
    assert_eq!(snapshots.get(7, 1).await, Ok(None));
    assert!(snapshots.get(30, 1).await.expect("an answer").is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_not_closed_goes_on_where_it_was() {
    let servers = Servers::start(1, "");
    let folder = tempfile::tempdir().expect("a folder");
    let node = start(&servers, "", folder.path()).await;
    fill(&node, 10).await;
    let (before, applied) = (ids(&node).await, node.replication().applied);
    node.abort();
    drop(node);
    // What the copy has is not needed from the stream any more.
    let log = log(&servers, "").await;
    log.trim(applied).await.expect("purged");
    let node = start(&servers, "", folder.path()).await;
    assert_eq!(ids(&node).await, before);
    fill(&node, 1).await;
}
