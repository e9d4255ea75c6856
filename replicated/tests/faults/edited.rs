//! Somebody purged or edited the log, wrote to it, or runs another version on it; or the log lost something.

use crate::support::{event, eventually, make_topic, node, payloads, publish, try_node};
use bytes::Bytes;
use prombus_replicated::message::{DecodeError, Head, Kind, Message, Progress, RULES};
use prombus_replicated::simulated::SimulatedLog;
use prombus_replicated::{
    FollowError, LocalCopy, MemoryCopy, OpenError, Options, ReplicatedStore, SharedLog,
};
use prombus_store::{Store, SystemClock};
use std::sync::Arc;

async fn filled() -> (SimulatedLog, ReplicatedStore) {
    let log = SimulatedLog::new(1);
    let node = node(&log).await;
    make_topic(&node).await;
    for payload in ["1", "2", "3"] {
        publish(&node, payload).await.expect("a commit");
    }
    (log, node)
}

#[tokio::test(start_paused = true)]
async fn a_new_node_says_that_the_log_was_purged() {
    let (log, node) = filled().await;
    log.trim(2).await.expect("purged");
    let error = try_node(&log).await.err().expect("nothing to begin with");
    let (wanted, first) = (1, 3);
    assert!(
        matches!(error, OpenError::Follow(FollowError::Trimmed { wanted: w, first: f }) if (w, f) == (wanted, first)),
        "{error}"
    );
    publish(&node, "4")
        .await
        .expect("a node that has everything goes on");
}

#[tokio::test(start_paused = true)]
async fn a_log_that_lost_what_it_had_acknowledged_is_noticed() {
    let (log, node) = filled().await;
    log.lose_behind(2);
    eventually("it is not ready", || node.status().failed.is_some()).await;
    let failed = node.status().failed.expect("a cause");
    assert!(failed.contains("ends at 2, but 4 was read"), "{failed}");
    publish(&node, "4").await.expect_err("nothing is taken in");
    assert_eq!(payloads(&node).await, ["1", "2", "3"]);
}

#[tokio::test(start_paused = true)]
async fn what_strangers_write_is_void() {
    let (log, node) = filled().await;
    log.inject(Bytes::from_static(b"hello"));
    log.inject(Bytes::new());
    let mut changed = log.entries()[1].message.to_vec();
    changed[60] ^= 1;
    log.inject(changed.into());
    log.inject(log.entries()[2].message.clone());
    publish(&node, "4").await.expect("a commit");
    assert_eq!(payloads(&node).await, ["1", "2", "3", "4"]);
    assert_eq!(node.replication().void, 4);
    let another = crate::support::node(&log).await;
    assert_eq!(another.replication().digest, node.replication().digest);
}

#[tokio::test(start_paused = true)]
async fn a_message_of_a_newer_version_ends_a_node_with_a_sentence() {
    let (log, node) = filled().await;
    let head = Head {
        kind: Kind::Batches,
        rules: RULES + 1,
        boot: 9,
        number: 1,
        now_ms: 1,
        part: 1,
        parts: 1,
        progress: Progress::default(),
    };
    let message = Message::encode(&head, b"");
    assert_eq!(
        Message::decode(&message),
        Err(DecodeError::NewerRules { rules: RULES + 1 })
    );
    log.inject(message);
    eventually("it is not ready", || node.status().failed.is_some()).await;
    let failed = node.status().failed.expect("a cause");
    assert!(
        failed.contains("message 5") && failed.contains("upgrade this node"),
        "{failed}"
    );
    assert_eq!(payloads(&node).await, ["1", "2", "3"]);
    let error = try_node(&log).await.err().expect("it cannot catch up");
    assert!(error.to_string().contains("upgrade this node"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_edited_message_makes_another_copy_which_takes_no_commits() {
    let (log, node) = filled().await;
    log.edit(2, Bytes::from_static(b"nothing"));
    // The messages behind it say what their sender had, and that is something else.
    let another = crate::support::node(&log).await;
    let failed = another.status().failed.expect("a cause");
    assert!(failed.contains("differs"), "{failed}");
    publish(&another, "4")
        .await
        .expect_err("nothing is taken in");
    publish(&node, "4").await.expect("the first one goes on");
    assert_eq!(node.status().failed, None);
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_differs_is_outvoted_by_two_that_do_not() {
    let (log, one) = filled().await;
    let two = node(&log).await;
    let copy = Arc::new(MemoryCopy::new(7));
    let opened = ReplicatedStore::open(
        Arc::new(log.clone()),
        copy.clone(),
        Arc::new(SystemClock),
        Options::default(),
    );
    let wrong = opened.await.expect("it opens");
    let stray = copy
        .apply(vec![event(None, "stray")], 1, 1)
        .await
        .expect("applied");
    assert!(stray[0].is_ok());
    // It knows what it has only of topics that are touched.
    publish(&one, "4").await.expect("a commit");
    wrong.barrier().await.expect("caught up");
    publish(&two, "5").await.expect("a commit");
    publish(&one, "6").await.expect("a commit");
    eventually("it is not ready", || wrong.status().failed.is_some()).await;
    publish(&wrong, "7").await.expect_err("nothing is taken in");
    publish(&two, "8").await.expect("the others go on");
    assert_eq!(one.status().failed, None);
    assert_eq!(two.status().failed, None);
}
