//! Snapshots in MongoDB: a node that starts after the collection was trimmed, and a server that dies while one is made.

use crate::server::Server;
use prombus_replicated::mongo::MongoLog;
use prombus_replicated::{FolderCopy, Options, ReplicatedStore, SharedLog};
use prombus_store::{
    Batch, Change, Draft, IfExists, ReadFrom, ReadLimit, Store, SystemClock, TopicOptions,
};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const TOPIC: &str = "t";
const LIMIT: Duration = Duration::from_secs(90);

async fn start(url: &str, folder: &Path) -> ReplicatedStore {
    let log = MongoLog::open(url).await.expect("a log");
    let (copy, _) = FolderCopy::open(folder, log.description().log_id).expect("a copy");
    let options = Options {
        patience: Duration::from_secs(30),
        snapshot_bytes: 200_000,
        absent_after: Duration::from_secs(1),
        ..Options::default()
    };
    let (log, clock) = (Arc::new(log), Arc::new(SystemClock));
    let node = ReplicatedStore::open(log, Arc::new(copy), clock, options).await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_node_gets_everything_from_a_snapshot_and_the_tail() {
    let server = Server::start();
    let url = server.fresh_url();
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let node = start(&url, folders[0].path()).await;
    fill(&node, 15).await;
    eventually("the log is trimmed", || node.replication().first > 3).await;
    fill(&node, 2).await;
    let other = start(&url, folders[1].path()).await;
    let log = MongoLog::open(&url).await.expect("a log");
    let bounds = log.bounds().await.expect("bounds");
    assert!(bounds.first > 3, "{bounds:?}");
    assert_eq!(ids(&node).await.len(), 17);
    assert_eq!(ids(&other).await, ids(&node).await);
    node.barrier().await.expect("caught up");
    other.barrier().await.expect("caught up");
    assert_eq!(other.replication().digest, node.replication().digest);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshots_are_kept_listed_and_removed() {
    let server = Server::start();
    let log = MongoLog::open(&server.fresh_url()).await.expect("a log");
    let snapshots = log.snapshots().expect("snapshots");
    assert_eq!(snapshots.list().await, Ok(Vec::new()));
    for (snapshot, chunks) in [(7, vec![1, 2, 2, 0]), (30, vec![1, 2, 0]), (31, vec![1])] {
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
