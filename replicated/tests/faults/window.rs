//! Several commits of a node under way at a time: whatever becomes of one, they take effect in the order in which they were
//! asked for, once each.

use crate::support::{make_topic, node, payloads, publish};
use prombus_replicated::ReplicatedStore;
use prombus_replicated::simulated::{Fault, SimulatedLog};
use prombus_store::CommitError;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

type Publishing = JoinHandle<Result<(), CommitError>>;

/// A node on a log to which it makes three appends at a time, and which takes its time for each.
async fn node_on(log: &SimulatedLog) -> Arc<ReplicatedStore> {
    let node = Arc::new(node(log).await);
    make_topic(&*node).await;
    log.set_delay(Duration::from_millis(10));
    node
}

fn log() -> SimulatedLog {
    SimulatedLog::new(1).with_max_in_flight(3)
}

/// Publishes 1, 2 and 3, each in a commit of its own that is sent before the one before it is acknowledged.
async fn publish_three(node: &Arc<ReplicatedStore>) -> [Publishing; 3] {
    let mut publishing = Vec::new();
    for payload in ["1", "2", "3"] {
        let node = node.clone();
        publishing.push(tokio::spawn(async move {
            publish(&*node, payload).await.map(|_| ())
        }));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    publishing.try_into().expect("three")
}

#[tokio::test(start_paused = true)]
async fn they_keep_their_order_whatever_overtakes_or_is_lost() {
    use Fault::{Full, Late, LostAnswer, LostMessage, None, Slow, Twice};
    let faults = [Full, Late, LostAnswer, LostMessage, None, Slow, Twice];
    for first in faults {
        for second in faults {
            let log = log();
            let node = node_on(&log).await;
            log.plan([first, second]);
            let mut stored = Vec::new();
            for (at, publishing) in publish_three(&node).await.into_iter().enumerate() {
                match publishing.await.expect("no panic") {
                    Ok(()) => stored.push((at + 1).to_string()),
                    Err(CommitError::Unavailable { .. }) => {}
                    Err(error) => panic!("{first:?} {second:?}: {error}"),
                }
            }
            assert_eq!(payloads(&*node).await, stored, "{first:?} {second:?}");
            assert!(stored.contains(&"3".to_owned()), "{first:?} {second:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn three_are_under_way_at_a_time() {
    let log = log();
    let node = node_on(&log).await;
    let before = tokio::time::Instant::now();
    for publishing in publish_three(&node).await {
        publishing.await.expect("no panic").expect("stored");
    }
    assert!(
        before.elapsed() < Duration::from_millis(20),
        "not one by one"
    );
    assert_eq!(log.entries().len(), 4, "with the topic's");
}

#[tokio::test(start_paused = true)]
async fn one_that_is_overtaken_voids_those_behind_it_and_they_are_sent_again() {
    let log = log();
    let node = node_on(&log).await;
    log.plan([Fault::Slow]);
    for publishing in publish_three(&node).await {
        publishing.await.expect("no panic").expect("stored");
    }
    assert_eq!(payloads(&*node).await, ["1", "2", "3"]);
    assert_eq!(log.entries().len(), 6, "two were stored twice");
    assert_eq!(node.replication().void, 2);
}

#[tokio::test(start_paused = true)]
async fn where_all_are_refused_all_fail_for_certain_and_their_numbers_are_free() {
    let log = log();
    let node = node_on(&log).await;
    log.plan([Fault::Full, Fault::Full, Fault::Full]);
    for publishing in publish_three(&node).await {
        let refused = publishing.await.expect("no panic").expect_err("full");
        assert!(
            matches!(refused, CommitError::Unavailable { .. }),
            "{refused}"
        );
    }
    for publishing in publish_three(&node).await {
        publishing.await.expect("no panic").expect("stored");
    }
    assert_eq!(payloads(&*node).await, ["1", "2", "3"]);
    assert_eq!(node.replication().void, 0);
}
