//! What is tested on every engine alike: nodes that publish while its servers fail, outages, commits in parts, snapshots.

use prombus_replicated::{FolderCopy, MemoryCopy, Options, ReplicatedStore, SharedLog};
use prombus_store::{
    Batch, Change, CommitError, Draft, EventOutcome, Id, IfExists, ReadFrom, ReadLimit, Store,
    SystemClock, TopicOptions,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const TOPIC: &str = "t";
/// Far more than anything here needs.
const LIMIT: Duration = Duration::from_secs(90);

/// A node with an empty copy in memory.
pub(crate) async fn node(log: impl SharedLog) -> Arc<ReplicatedStore> {
    let copy = Arc::new(MemoryCopy::new(log.description().log_id));
    let clock = Arc::new(SystemClock);
    let node = ReplicatedStore::open(Arc::new(log), copy, clock, Options::default()).await;
    Arc::new(node.expect("it opens"))
}

/// A node with a copy in a folder.
pub(crate) async fn node_on(
    log: impl SharedLog,
    copy: FolderCopy,
    options: Options,
) -> ReplicatedStore {
    let (log, clock) = (Arc::new(log), Arc::new(SystemClock));
    let node = ReplicatedStore::open(log, Arc::new(copy), clock, options).await;
    node.expect("it opens")
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

fn event(id: Option<&str>, payload: &str) -> Batch {
    let mut batch = Batch::new();
    let draft = Draft {
        id: id.and_then(Id::from_client),
        payload,
        ..Draft::default()
    };
    batch.publish(&TOPIC.into(), &draft);
    batch
}

/// Publishes events of 50,000 bytes.
pub(crate) async fn fill(node: &ReplicatedStore, count: usize) {
    make_topic(node).await;
    let payload = format!("\"{}\"", "x".repeat(50_000));
    for _ in 0..count {
        node.commit(event(None, &payload)).await.expect("a commit");
    }
}

/// The ids of all events, in their order.
pub(crate) async fn ids(node: &ReplicatedStore) -> Vec<String> {
    let limit = ReadLimit {
        events: 1_000_000,
        bytes: 1 << 30,
    };
    let page = node.read(&TOPIC.into(), ReadFrom::Seq(1), limit).await;
    let events = page.expect("a page").events;
    events.iter().map(|event| event.id().to_string()).collect()
}

/// Waits for something that comes before [`LIMIT`].
pub(crate) async fn eventually(what: &str, is_so: impl AsyncFn() -> bool) {
    let waiting = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let came = tokio::time::timeout(LIMIT, waiting).await;
    assert!(came.is_ok(), "it never came to this: {what}");
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
        match node.commit(event(Some(&id), "1")).await {
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

/// Two nodes publish while `disturb` is called so often; what was acknowledged is there once, on both.
pub(crate) async fn nothing_acknowledged_is_lost(
    [one, other]: [Arc<ReplicatedStore>; 2],
    times: usize,
    mut disturb: impl AsyncFnMut(usize),
) {
    make_topic(&one).await;
    let (end, is_ended) = tokio::sync::watch::channel(false);
    let publishers = [("one", &one), ("other", &other)]
        .map(|(name, node)| tokio::spawn(publish_until(node.clone(), name, is_ended.clone())));
    for at in 0..times {
        disturb(at).await;
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

/// While the server is down commits fail and reading goes on; it passes by itself. The answer is the first failure.
pub(crate) async fn an_outage_is_noticed_and_passes<S>(
    node: Arc<ReplicatedStore>,
    server: &mut S,
    kill: impl FnOnce(&mut S),
    restart: impl FnOnce(&mut S),
) -> CommitError {
    let commit = async |id| node.commit(event(Some(id), "1")).await;
    make_topic(&node).await;
    commit("a").await.expect("a commit");
    kill(server);
    let failed = commit("b").await.expect_err("no server");
    assert!(node.status().failed.is_some());
    assert_eq!(ids(&node).await, ["a"], "reading goes on");
    commit("c").await.expect_err("refused at once");
    restart(server);
    eventually("it is ready", async || node.status().failed.is_none()).await;
    let receipt = commit("b").await.expect("a commit");
    assert!(!matches!(receipt.events[0], EventOutcome::IdConflict(_)));
    assert_eq!(ids(&node).await, ["a", "b"]);
    failed
}

/// A commit that is larger than what the engine takes at a time, on a copy that stays from round to round.
pub(crate) async fn a_commit_goes_in_parts(
    log: impl SharedLog,
    folder: &Path,
    options: Options,
    bytes: usize,
    round: usize,
) {
    let (copy, rebuilt) = FolderCopy::open(folder, log.description().log_id).expect("a copy");
    assert_eq!(rebuilt.is_some(), round == 0);
    let node = node_on(log, copy, options).await;
    make_topic(&node).await;
    let payload = format!("\"{}\"", "x".repeat(bytes));
    let large = event(Some(&format!("round-{round}")), &payload);
    node.commit(large).await.expect("a commit");
    assert_eq!(ids(&node).await.len(), round + 1);
    node.close().await.expect("it closes");
}

/// Both nodes have all that was published, and are equal.
pub(crate) async fn assert_equal(node: &ReplicatedStore, other: &ReplicatedStore, events: usize) {
    assert_eq!(ids(node).await.len(), events);
    assert_eq!(ids(other).await, ids(node).await);
    other.barrier().await.expect("caught up");
    node.barrier().await.expect("caught up");
    assert_eq!(other.replication().digest, node.replication().digest);
}

/// Keeps snapshots in chunks, the first one's as they are given, and removes one.
pub(crate) async fn snapshots_are_kept_listed_and_removed(log: impl SharedLog, first: &[u32]) {
    let snapshots = log.snapshots().expect("snapshots");
    assert_eq!(snapshots.list().await, Ok(Vec::new()));
    for (snapshot, chunks) in [(7, first), (30, &[1, 2, 0]), (31, &[1])] {
        for chunk in chunks {
            let bytes = format!("{snapshot}/{chunk}").into();
            let put = snapshots.put(snapshot, *chunk, bytes).await;
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
