//! Snapshots: made when the log has grown, loaded by nodes that lack what was trimmed, and told apart from what only looks
//! like one.

use crate::support::{eventually, make_topic, payloads, publish};
use bytes::Bytes;
use prombus_replicated::simulated::{SimulatedDisk, SimulatedLog};
use prombus_replicated::{FollowError, LocalCopy, OpenError, Options, ReplicatedStore, SharedLog};
use prombus_store::{Store, SystemClock};
use std::sync::Arc;
use std::time::Duration;

const LOG_ID: u64 = 7;
const ABSENT_AFTER: Duration = Duration::from_secs(5);

async fn try_start(log: &SimulatedLog, disk: &SimulatedDisk) -> Result<ReplicatedStore, OpenError> {
    let copy = disk.open(LOG_ID, 1_000).expect("a copy");
    let options = Options {
        snapshot_bytes: 2_000,
        absent_after: ABSENT_AFTER,
        ..Options::default()
    };
    let log = Arc::new(log.clone());
    ReplicatedStore::open(log, Arc::new(copy), Arc::new(SystemClock), options).await
}

async fn start(log: &SimulatedLog, disk: &SimulatedDisk) -> ReplicatedStore {
    try_start(log, disk).await.expect("it opens")
}

async fn fill(node: &ReplicatedStore, count: usize) {
    for number in 0..count {
        publish(node, &format!("\"{number:0200}\""))
            .await
            .expect("a commit");
    }
}

/// A node whose log was trimmed behind a snapshot.
async fn trimmed() -> (SimulatedLog, ReplicatedStore) {
    let log = SimulatedLog::new(LOG_ID);
    let node = start(&log, &SimulatedDisk::default()).await;
    make_topic(&node).await;
    fill(&node, 20).await;
    eventually("the log is trimmed", || node.replication().first > 5).await;
    (log, node)
}

#[tokio::test(start_paused = true)]
async fn a_new_node_starts_from_a_snapshot_and_the_tail() {
    let (log, node) = trimmed().await;
    let replication = node.replication();
    assert!(replication.snapshot > 0 && replication.first == replication.snapshot + 1);
    assert!(replication.log_bytes.is_some());
    fill(&node, 3).await;
    let other = start(&log, &SimulatedDisk::default()).await;
    assert_eq!(payloads(&other).await, payloads(&node).await);
    assert_eq!(other.replication().digest, node.replication().digest);
    assert_eq!(other.replication().snapshot, node.replication().snapshot);
    publish(&other, "1").await.expect("a commit");
    node.barrier().await.expect("caught up");
    assert_eq!(payloads(&node).await.len(), 24);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_away_for_long_loads_a_snapshot_when_it_is_back() {
    let log = SimulatedLog::new(LOG_ID);
    let node = start(&log, &SimulatedDisk::default()).await;
    make_topic(&node).await;
    let (handle, connection) = log.cuttable();
    let paused = start(&handle, &SimulatedDisk::default()).await;
    fill(&node, 2).await;
    publish(&paused, "1").await.expect("a commit");
    connection.send(false).expect("it listens");
    fill(&node, 20).await;
    let applied = paused.replication().applied;
    eventually("the log is trimmed", || {
        node.replication().first > applied + 1
    })
    .await;
    connection.send(true).expect("it listens");
    eventually("it takes commits", || paused.status().failed.is_none()).await;
    publish(&paused, "2").await.expect("a commit");
    node.barrier().await.expect("caught up");
    assert_eq!(payloads(&paused).await, payloads(&node).await);
    assert_eq!(paused.replication().digest, node.replication().digest);
}

#[tokio::test(start_paused = true)]
async fn a_live_node_that_is_behind_keeps_the_log_from_being_trimmed() {
    let log = SimulatedLog::new(LOG_ID);
    let node = start(&log, &SimulatedDisk::default()).await;
    make_topic(&node).await;
    let (handle, connection) = log.cuttable();
    let slow = start(&handle, &SimulatedDisk::default()).await;
    publish(&slow, "1").await.expect("a commit");
    let applied = slow.replication().applied;
    connection.send(false).expect("it listens");
    fill(&node, 20).await;
    eventually("there is a snapshot", || node.replication().snapshot > 0).await;
    assert!(node.replication().first <= applied + 1);
    tokio::time::sleep(2 * ABSENT_AFTER).await;
    assert!(node.replication().first > applied + 1, "it is given up");
}

#[tokio::test(start_paused = true)]
async fn without_a_snapshot_nothing_is_trimmed_and_a_purged_log_stops_a_node() {
    let log = SimulatedLog::new(LOG_ID);
    log.set_chunks_left(Some(1));
    let node = start(&log, &SimulatedDisk::default()).await;
    make_topic(&node).await;
    fill(&node, 20).await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(
        (node.replication().first, node.replication().snapshot),
        (1, 0)
    );
    assert_eq!(node.status().failed, None, "it goes on without");
    log.trim(5).await.expect("purged");
    let error = try_start(&log, &SimulatedDisk::default()).await;
    let error = error.err().expect("it cannot start");
    let expected = FollowError::Trimmed {
        wanted: 1,
        first: 6,
    };
    assert!(
        matches!(&error, OpenError::Follow(found) if *found == expected),
        "{error}"
    );
    log.set_chunks_left(None);
    eventually("a snapshot is made after all", || {
        node.replication().snapshot > 0
    })
    .await;
    let other = start(&log, &SimulatedDisk::default()).await;
    assert_eq!(payloads(&other).await, payloads(&node).await);
}

#[tokio::test(start_paused = true)]
async fn a_damaged_snapshot_is_not_loaded() {
    let (log, _node) = trimmed().await;
    let mut kept = Vec::new();
    log.edit_chunks(|chunks| {
        for (at, chunk) in chunks.iter() {
            kept.push((*at, chunk.clone()));
        }
    });
    for (at, chunk) in &kept {
        let mut bytes = chunk.to_vec();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        log.edit_chunks(|chunks| drop(chunks.insert(*at, Bytes::from(bytes))));
        let error = try_start(&log, &SimulatedDisk::default()).await;
        assert!(error.is_err(), "chunk {at:?} is damaged");
        log.edit_chunks(|chunks| drop(chunks.remove(at)));
        let error = try_start(&log, &SimulatedDisk::default()).await;
        assert!(error.is_err(), "chunk {at:?} is gone");
        log.edit_chunks(|chunks| drop(chunks.insert(*at, chunk.clone())));
    }
    start(&log, &SimulatedDisk::default()).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_dies_while_it_makes_a_snapshot_is_replaced() {
    let log = SimulatedLog::new(LOG_ID);
    let (handle, connection) = log.cuttable();
    let maker = start(&handle, &SimulatedDisk::default()).await;
    make_topic(&maker).await;
    let other = start(&log, &SimulatedDisk::default()).await;
    log.set_delay(Duration::from_millis(20));
    log.set_chunks_left(Some(1));
    fill(&maker, 20).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    connection.send(false).expect("it listens");
    maker.abort();
    log.set_chunks_left(None);
    publish(&other, "1").await.expect("a commit");
    eventually("another one is made", || other.replication().snapshot > 0).await;
    let new = start(&log, &SimulatedDisk::default()).await;
    assert_eq!(payloads(&new).await, payloads(&other).await);
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_differs_is_made_anew_by_itself() {
    let (log, one) = trimmed().await;
    let two = start(&log, &SimulatedDisk::default()).await;
    let disk = SimulatedDisk::default();
    let copy = Arc::new(disk.open(LOG_ID, 1_000).expect("a copy"));
    let opened = ReplicatedStore::open(
        Arc::new(log.clone()),
        copy.clone(),
        Arc::new(SystemClock),
        Options::default(),
    );
    let wrong = opened.await.expect("it opens");
    let at = wrong.replication().applied;
    let stray = crate::support::event(None, "\"stray\"");
    let stray = copy.apply(vec![stray], 1, at).await.expect("applied");
    assert!(stray[0].is_ok());
    publish(&one, "4").await.expect("a commit");
    wrong.barrier().await.expect("caught up");
    assert!(payloads(&wrong).await.contains(&"\"stray\"".to_owned()));
    for payload in ["5", "6", "7"] {
        publish(&two, payload).await.expect("a commit");
        publish(&one, payload).await.expect("a commit");
    }
    eventually("it is right again", || {
        wrong.status().failed.is_none() && wrong.replication().digest == one.replication().digest
    })
    .await;
    assert_eq!(payloads(&wrong).await, payloads(&one).await);
    publish(&wrong, "8").await.expect("it takes commits");
}
