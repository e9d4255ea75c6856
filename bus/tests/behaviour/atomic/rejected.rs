//! What refuses a step: then nothing is published, nothing is settled, and the lease stays as it was.

use super::*;
use prombus::error::NotPublished;
use std::sync::Arc;

/// The place and the word of what refused a step.
fn refusal(
    answer: Result<Vec<prombus::Published>, AckPublishError>,
) -> (Option<usize>, &'static str) {
    match answer.expect_err("it is refused") {
        AckPublishError::NotPublished(NotPublished { at, error }) => (Some(at), error.kind()),
        error => (None, error.kind()),
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_that_may_not_be_published_refuses_the_step() {
    let bus = strict_bus().await;
    let large = format!("\"{}\"", "x".repeat(2 << 20));
    let long_key = "k".repeat(600);
    let bad: [(&str, &str, PublishOptions<'_>, &str); 5] = [
        ("no topic!", "1", plain(), "InvalidTopic"),
        ("out", "{", plain(), "InvalidJson"),
        ("out", &large, plain(), "TooLarge"),
        ("out", "1", key(&long_key), "TooLarge"),
        ("elsewhere", "1", plain(), "UnknownTopic"),
    ];
    publish(&bus, "in", 1).await;
    let options = SubscribeOptions {
        ack_timeout_ms: Some(1_000),
        max_attempts: Some(100),
        ..earliest()
    };
    let subscription = bus.subscribe("in", "g", options).await.expect("subscribed");
    for (topic, payload, options, code) in bad {
        let delivery = next(&subscription).await;
        let attempt = delivery.context.attempt;
        let mut batch = result(&bus, "out", 1);
        batch.add(topic, payload, &options);
        let refused = delivery.ack_and_publish(batch).await;
        assert_eq!(refusal(refused), (Some(1), code));
        let info = bus.group("in", "g").await.expect("it exists");
        assert_eq!((info.in_flight, info.counts.acked), (1, 0), "{code}");
        nothing(&subscription, 900).await;
        let again = next(&subscription).await;
        assert_eq!(again.context.attempt, attempt + 1, "its lease ran out");
        again.nack_after("next", 0);
    }
    assert!(outputs(&bus).await.is_empty());
    assert!(bus.topic("elsewhere").is_err());
}

#[tokio::test(start_paused = true)]
async fn an_id_that_is_there_is_a_duplicate_or_a_conflict() {
    let bus = bus();
    publish(&bus, "in", 2).await;
    bus.publish_batch(named(&bus, "mine", 7)).await;
    let subscription = group(&bus).await;
    let (first, second) = (next(&subscription).await, next(&subscription).await);
    let mut batch = result(&bus, "out", 1);
    batch.add(
        "out",
        "8",
        &PublishOptions {
            id: Some("mine"),
            ..plain()
        },
    );
    let refused = first.ack_and_publish(batch).await;
    assert_eq!(refusal(refused), (Some(1), "IdConflict"));
    assert_eq!(outputs(&bus).await, ["7"]);
    assert_eq!(cursor(&bus).await, 0);

    let published = second.ack_and_publish(named(&bus, "mine", 7)).await;
    let published = published.expect("the same again counts as stored");
    assert_eq!((published[0].seq, published[0].duplicate), (1, true));
    assert_eq!(outputs(&bus).await, ["7"]);
    let counts = bus.group("in", "g").await.expect("it exists").counts;
    assert_eq!((counts.acked, counts.in_flight), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn two_of_a_batch_that_conflict_blame_the_second() {
    let bus = bus();
    publish(&bus, "in", 1).await;
    bus.publish("out", &0, &plain()).await.expect("stored");
    let subscription = group(&bus).await;
    let mut batch = named(&bus, "mine", 1);
    let mine = PublishOptions {
        id: Some("mine"),
        ..plain()
    };
    batch.add("out", "2", &mine);
    let refused = next(&subscription).await.ack_and_publish(batch).await;
    assert_eq!(refusal(refused), (Some(1), "IdConflict"));
    assert_eq!(outputs(&bus).await, ["0"]);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_another_member_has_refuses_the_step() {
    let bus = bus();
    publish(&bus, "in", 1).await;
    let options = SubscribeOptions {
        ack_timeout_ms: Some(1_000),
        ..earliest()
    };
    let slow = bus
        .subscribe("in", "g", options.clone())
        .await
        .expect("subscribed");
    let late = next(&slow).await;
    let quick = bus.subscribe("in", "g", options).await.expect("subscribed");
    slow.pause();
    let held = next(&quick).await;
    let refused = late.ack_and_publish(result(&bus, "out", 1)).await;
    assert_eq!(refusal(refused), (None, "LeaseLost"));
    assert!(outputs(&bus).await.is_empty());
    held.ack_and_publish(result(&bus, "out", 2))
        .await
        .expect("it holds the lease");
    assert_eq!(outputs(&bus).await, ["2"]);
}

#[tokio::test(start_paused = true)]
async fn a_late_step_counts_where_nobody_else_has_the_event() {
    let bus = bus();
    publish(&bus, "in", 1).await;
    let options = SubscribeOptions {
        ack_timeout_ms: Some(1_000),
        ..earliest()
    };
    let subscription = bus.subscribe("in", "g", options).await.expect("subscribed");
    let late = next(&subscription).await;
    subscription.pause();
    sleep(5_000).await;
    late.ack_and_publish(result(&bus, "out", 1))
        .await
        .expect("nobody else has it");
    subscription.resume();
    nothing(&subscription, 60_000).await;
    assert_eq!(outputs(&bus).await, ["1"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_settled_publishes_nothing_more() {
    let bus = bus();
    publish(&bus, "in", 1).await;
    let subscription = group(&bus).await;
    let delivery = next(&subscription).await;
    let ids = vec![delivery.event.id().into_owned()];
    delivery.ack_confirmed().await.expect("settled");
    for _ in 0..2 {
        let refused = step_by_ids(&subscription, "in", ids.clone(), result(&bus, "out", 1)).await;
        assert_eq!(refusal(refused), (None, "AlreadySettled"));
    }
    let unknown = vec!["never-was".to_owned()];
    let refused = step_by_ids(&subscription, "in", unknown, result(&bus, "out", 1)).await;
    assert_eq!(refusal(refused), (None, "UnknownId"));
    let none = step_by_ids(&subscription, "in", Vec::new(), result(&bus, "out", 1)).await;
    assert_eq!(refusal(none), (None, "NotOneGroup"));
    assert!(outputs(&bus).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_refuses_the_step_and_takes_the_next_one_later() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options).expect("the options are good");
    publish(&bus, "in", 2).await;
    let subscription = group(&bus).await;
    let (first, second) = (next(&subscription).await, next(&subscription).await);
    store.refuse_writes(true);
    for delivery in [first, second] {
        let refused = delivery.ack_and_publish(result(&bus, "out", 1)).await;
        assert_eq!(refusal(refused), (None, "StoreFailed"));
    }
    assert_eq!(bus.group("in", "g").await.expect("there").in_flight, 2);
    store.refuse_writes(false);
    sleep(40_000).await;
    for _ in 0..2 {
        let again = next(&subscription).await;
        assert_eq!(again.context.attempt, 2);
        again
            .ack_and_publish(result(&bus, "out", 2))
            .await
            .expect("the store is back");
    }
    assert_eq!(outputs(&bus).await, ["2", "2"]);
    assert_eq!(cursor(&bus).await, 2);
}

#[tokio::test(start_paused = true)]
async fn another_bus_that_has_the_group_refuses_the_step() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options.clone()).expect("the options are good");
    publish(&bus, "in", 1).await;
    let subscription = group(&bus).await;
    let delivery = next(&subscription).await;
    // The record gets a version that this bus does not know of.
    let other = Bus::open(store.clone() as Arc<dyn prombus::Store>, options).expect("opened");
    let theirs = group(&other).await;
    let taken = next(&theirs).await;
    taken
        .ack_and_publish(result(&other, "out", 2))
        .await
        .expect("the first to write wins");
    let refused = delivery.ack_and_publish(result(&bus, "out", 1)).await;
    assert_eq!(refusal(refused), (None, "TakenOver"));
    assert_eq!(outputs(&bus).await, ["2"]);
    assert_eq!(subscription.ended(), Some(prombus::Ended::TakenOver));
}

#[tokio::test(start_paused = true)]
async fn a_bus_that_is_closed_takes_no_step() {
    let bus = bus();
    publish(&bus, "in", 2).await;
    let subscription = group(&bus).await;
    let (first, second) = (next(&subscription).await, next(&subscription).await);
    let batch = result(&bus, "out", 1);
    bus.close().await.expect("closed");
    let refused = first.ack_and_publish(batch).await;
    assert_eq!(refusal(refused), (None, "Closed"));
    drop((bus, subscription));
    drop(second);
}
