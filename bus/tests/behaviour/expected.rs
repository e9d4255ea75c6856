//! Publishing only behind the position that is expected, one event or a whole batch.

use crate::support::*;
use prombus::error::{NotPublished, PositionOf, PublishError};
use prombus::{Bus, PublishOptions};

fn behind(seq: u64) -> PublishOptions<'static> {
    PublishOptions {
        expect_seq: Some(seq),
        ..plain()
    }
}

fn behind_key(key: &str, seq: u64) -> PublishOptions<'_> {
    PublishOptions {
        key: Some(key),
        expect_key_seq: Some(seq),
        ..plain()
    }
}

/// Whose position was another one, and which it is.
fn mismatch(error: PublishError) -> (PositionOf, u64) {
    match error {
        PublishError::SeqMismatch(error) => (error.mismatch.of, error.mismatch.actual),
        other => panic!("{other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_does_not_exist_is_empty() {
    let bus = bus();
    let wrong = bus.publish("new", &1, &behind(1)).await.unwrap_err();
    assert_eq!(mismatch(wrong.clone()), (PositionOf::Topic, 0));
    assert!(!wrong.is_retryable());
    let first = bus.publish("new", &1, &behind(0)).await.expect("stored");
    assert_eq!(first.seq, 1);
    let wrong = bus.publish("new", &1, &behind(0)).await.unwrap_err();
    assert_eq!(mismatch(wrong), (PositionOf::Topic, 1));
}

#[tokio::test(start_paused = true)]
async fn a_key_is_expected_only_of_an_event_that_has_one() {
    let bus = bus();
    let keyless = PublishOptions {
        expect_key_seq: Some(0),
        ..plain()
    };
    let wrong = bus.publish("t", &1, &keyless).await.unwrap_err();
    assert!(matches!(wrong, PublishError::InvalidField(_)), "{wrong}");
    assert!(bus.store().topic("t").is_none(), "nothing is made for it");
}

#[tokio::test(start_paused = true)]
async fn each_event_of_a_batch_is_on_its_own() {
    let bus = bus();
    let mut batch = bus.batch();
    batch
        .add("t", "1", &behind_key("a", 0))
        .add("t", "2", &behind_key("a", 0))
        .add("t", "3", &behind_key("a", 1));
    let mut results = bus.publish_batch(batch).await.into_iter();
    let mut next = || results.next().expect("a result");
    assert_eq!(next().expect("stored").seq, 1);
    assert_eq!(mismatch(next().unwrap_err()), (PositionOf::Key, 1));
    assert_eq!(next().expect("stored").seq, 2);
}

#[tokio::test(start_paused = true)]
async fn an_atomic_batch_is_published_as_a_whole_or_not_at_all() {
    let bus = bus();
    publish(&bus, "t", 2).await;
    let transfer = |seq: u64| {
        let mut batch = bus.batch();
        batch
            .add("ledger", "1", &plain())
            .add("t", "3", &behind(seq))
            .add("t", "4", &behind(seq + 1));
        batch
    };
    let refused: NotPublished = bus.publish_atomic(transfer(1)).await.unwrap_err();
    assert_eq!(refused.at, 1);
    assert_eq!(mismatch(refused.error), (PositionOf::Topic, 2));
    assert!(bus.store().topic("ledger").is_none(), "not even its topic");
    let published = bus.publish_atomic(transfer(2)).await.expect("stored");
    let seqs: Vec<u64> = published.iter().map(|published| published.seq).collect();
    assert_eq!(seqs, [1, 3, 4]);

    let mut invalid = bus.batch();
    invalid.add("t", "5", &plain()).add("t", "{", &plain());
    let refused = bus.publish_atomic(invalid).await.unwrap_err();
    assert_eq!(refused.at, 1);
    assert_eq!(tail_seq(&bus, "t"), 4);
    let nothing = bus.publish_atomic(bus.batch()).await.expect("fine");
    assert!(nothing.is_empty());
    bus.close().await.expect("closed");
    let closed = bus.publish_atomic(transfer(4)).await.unwrap_err();
    assert_eq!(closed.error, PublishError::Closed);
}

#[tokio::test(start_paused = true)]
async fn an_acknowledgement_happens_only_behind_what_its_results_expect() {
    let bus = bus();
    publish(&bus, "in", 1).await;
    publish(&bus, "out", 1).await;
    let subscription = bus.subscribe("in", "g", earliest()).await.expect("joined");
    let delivery = next(&subscription).await;
    let mut batch = bus.batch();
    batch.add("out", "1", &behind(0));
    let refused = delivery.ack_and_publish(batch).await.unwrap_err();
    assert!(refused.to_string().contains("last seq is 1"), "{refused}");
    assert_eq!(tail_seq(&bus, "out"), 1);
    let counts = bus.group("in", "g").await.expect("a group").counts;
    assert_eq!(counts.acked, 0);
}

fn tail_seq(bus: &Bus, topic: &str) -> u64 {
    bus.store().topic(topic).expect("a topic").tail_seq
}
