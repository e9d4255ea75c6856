//! The server is killed and started again while nodes publish.

use crate::server::Server;
use prombus_replicated::mongo::MongoLog;
use prombus_replicated::{FolderCopy, MemoryCopy, Options, ReplicatedStore, SharedLog};
use prombus_store::{
    Batch, Change, Draft, EventOutcome, Id, IfExists, ReadFrom, ReadLimit, Store, SystemClock,
    TopicOptions,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const TOPIC: &str = "t";
const LIMIT: Duration = Duration::from_secs(90);

async fn node(url: &str) -> Arc<ReplicatedStore> {
    let log = MongoLog::open(url).await.expect("a log");
    let copy = Arc::new(MemoryCopy::new(log.description().log_id));
    let clock = Arc::new(SystemClock);
    let node = ReplicatedStore::open(Arc::new(log), copy, clock, Options::default()).await;
    Arc::new(node.expect("it opens"))
}

async fn make_topic(node: &ReplicatedStore) {
    let mut batch = Batch::new();
    batch.change(Change::PutTopic {
        topic: TOPIC.into(),
        options: TopicOptions::default(),
        if_exists: IfExists::Keep,
    });
    node.commit(batch).await.expect("a topic");
}

fn event(id: &str, payload: &str) -> Batch {
    let mut batch = Batch::new();
    let draft = Draft {
        id: Id::from_client(id),
        payload,
        ..Draft::default()
    };
    batch.publish(&TOPIC.into(), &draft);
    batch
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

/// Publishes one event after the other until it is told to end, and returns what was acknowledged where.
async fn publish_until(
    node: Arc<ReplicatedStore>,
    name: &'static str,
    mut end: tokio::sync::watch::Receiver<bool>,
) -> BTreeMap<String, u64> {
    let mut acknowledged = BTreeMap::new();
    for number in 0.. {
        if *end.borrow_and_update() {
            break;
        }
        let id = format!("{name}-{number}");
        match node.commit(event(&id, "1")).await {
            Ok(receipt) => {
                let EventOutcome::Stored(placed) = receipt.events[0] else {
                    panic!("{id} is new");
                };
                acknowledged.insert(id, placed.seq);
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
    acknowledged
}

async fn eventually(what: &str, is_so: impl AsyncFn() -> bool) {
    let waiting = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let came = tokio::time::timeout(LIMIT, waiting).await;
    assert!(came.is_ok(), "it never came to this: {what}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_the_server_is_killed() {
    let mut server = Server::start_stand_in();
    let url = server.fresh_url();
    let (one, other) = (node(&url).await, node(&url).await);
    make_topic(&one).await;
    let (end, is_ended) = tokio::sync::watch::channel(false);
    let publishers = [("one", &one), ("other", &other)]
        .map(|(name, node)| tokio::spawn(publish_until(node.clone(), name, is_ended.clone())));
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        server.kill();
        tokio::time::sleep(Duration::from_millis(500)).await;
        server.restart();
        for node in [&one, &other] {
            eventually("it takes commits again", async || {
                node.status().failed.is_none() && node.commit(Batch::new()).await.is_ok()
            })
            .await;
        }
    }
    end.send(true).expect("publishers listen");
    let mut acknowledged = BTreeMap::new();
    for publisher in publishers {
        acknowledged.extend(publisher.await.expect("a publisher"));
    }
    assert!(acknowledged.len() > 20, "{}", acknowledged.len());
    for node in [&one, &other] {
        node.barrier().await.expect("caught up");
    }
    let stored = ids(&one).await;
    assert_eq!(stored, ids(&other).await);
    for (id, seq) in &acknowledged {
        assert_eq!(&stored[*seq as usize - 1], id);
    }
    let mut once = stored.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), stored.len(), "no id is there twice");
    assert_eq!(one.replication().digest, other.replication().digest);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_is_noticed_and_passes_by_itself() {
    let mut server = Server::start_stand_in();
    let node = node(&server.fresh_url()).await;
    make_topic(&node).await;
    node.commit(event("a", "1")).await.expect("a commit");
    server.kill();
    node.commit(event("b", "1")).await.expect_err("no server");
    assert!(node.status().failed.is_some());
    assert_eq!(ids(&node).await, ["a"], "reading goes on");
    node.commit(event("c", "1"))
        .await
        .expect_err("refused at once");
    server.restart();
    eventually("it is ready", async || node.status().failed.is_none()).await;
    let receipt = node.commit(event("b", "1")).await.expect("a commit");
    assert!(!matches!(receipt.events[0], EventOutcome::IdConflict(_)));
    assert_eq!(ids(&node).await, ["a", "b"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_beyond_a_document_goes_in_parts_and_survives_a_restart() {
    let server = Server::start();
    let url = server.fresh_url();
    let folder = tempfile::tempdir().expect("a folder");
    let payload = format!("\"{}\"", "x".repeat(9 << 20));
    for round in 0..2 {
        let log = MongoLog::open(&url).await.expect("a log");
        let log_id = log.description().log_id;
        let (copy, rebuilt) = FolderCopy::open(folder.path(), log_id).expect("a copy");
        assert_eq!(rebuilt.is_some(), round == 0);
        let options = Options {
            patience: Duration::from_secs(30),
            ..Options::default()
        };
        let clock = Arc::new(SystemClock);
        let node = ReplicatedStore::open(Arc::new(log), Arc::new(copy), clock, options).await;
        let node = node.expect("it opens");
        make_topic(&node).await;
        let id = format!("round-{round}");
        node.commit(event(&id, &payload)).await.expect("a commit");
        assert_eq!(ids(&node).await.len(), round + 1);
        node.close().await.expect("it closes");
    }
}
