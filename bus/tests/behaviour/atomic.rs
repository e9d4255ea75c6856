//! Acknowledging and publishing in one step: both happen or neither, once.

mod crash;
mod group_commit;
mod in_progress;
mod rejected;

use crate::support::*;
use prombus::error::AckPublishError;
use prombus::{
    AckPublish, Bus, BusOptions, PublishBatch, PublishOptions, Published, SubscribeOptions,
    Subscription,
};

/// A batch with one event for a topic.
fn result(bus: &Bus, topic: &str, value: u64) -> PublishBatch {
    let mut batch = bus.batch();
    batch.add_value(topic, &value, &plain());
    batch
}

/// A batch with one event that has an id of its own.
fn named(bus: &Bus, id: &str, value: u64) -> PublishBatch {
    let options = PublishOptions {
        id: Some(id),
        ..plain()
    };
    let mut batch = bus.batch();
    batch.add_value("out", &value, &options);
    batch
}

/// Makes one step that names its events by their ids.
async fn step_by_ids(
    subscription: &Subscription,
    topic: &str,
    ids: Vec<String>,
    batch: PublishBatch,
) -> Result<Vec<Published>, AckPublishError> {
    let steps = vec![AckPublish { ids, batch }];
    let mut answers = subscription
        .control()
        .ack_ids_and_publish(topic, steps)
        .await;
    answers.pop().expect("one answer for one step")
}

async fn group(bus: &Bus) -> Subscription {
    bus.subscribe("in", "g", earliest())
        .await
        .expect("subscribed")
}

/// The payloads of what was published to `out`.
async fn outputs(bus: &Bus) -> Vec<String> {
    match bus.topic("out") {
        Ok(_) => {
            let events = read_all(bus, "out").await;
            events
                .iter()
                .map(|event| event.payload().to_owned())
                .collect()
        }
        Err(_) => Vec::new(),
    }
}

async fn cursor(bus: &Bus) -> u64 {
    bus.cursor("in", "g").await.expect("it exists").last_seq
}

#[tokio::test(start_paused = true)]
async fn both_happen_in_one_commit_and_for_good() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options.clone()).expect("the options are good");
    publish(&bus, "in", 2).await;
    bus.publish("out", &0, &plain()).await.expect("stored");
    let subscription = group(&bus).await;
    let first = next(&subscription).await;
    let mut batch = result(&bus, "out", 10);
    batch.add("side", "\"note\"", &key("k"));
    let commits = || store.commits.load(std::sync::atomic::Ordering::SeqCst);
    bus.publish("side", &0, &plain()).await.expect("stored");
    let before = commits();
    let published = first
        .ack_and_publish(batch)
        .await
        .expect("the step is made");
    assert_eq!(commits() - before, 1, "one commit for everything");
    let places: Vec<_> = published
        .iter()
        .map(|published| (published.seq, published.duplicate))
        .collect();
    assert_eq!(places, [(2, false), (2, false)]);
    assert_eq!(outputs(&bus).await, ["0", "10"]);
    assert_eq!(cursor(&bus).await, 1);
    // A crash: nothing is flushed, and what is in the store has to do.
    store.refuse_writes(true);
    drop((subscription, bus));
    sleep(1).await;
    store.refuse_writes(false);

    let bus = Bus::open(store, options).expect("the options are good");
    let subscription = group(&bus).await;
    assert_eq!(next(&subscription).await.event.seq(), 2, "1 is settled");
    assert_eq!(outputs(&bus).await.len(), 2);
    let counts = bus.group("in", "g").await.expect("it exists").counts;
    assert_eq!(counts.acked, 0, "a new bus counts from zero");
}

#[tokio::test(start_paused = true)]
async fn a_batch_without_events_only_acknowledges_and_is_durable() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options.clone()).expect("the options are good");
    publish(&bus, "in", 1).await;
    let subscription = group(&bus).await;
    let first = next(&subscription).await;
    let published = first.ack_and_publish(bus.batch()).await;
    assert_eq!(published, Ok(Vec::new()));
    let counts = bus.group("in", "g").await.expect("it exists").counts;
    assert_eq!((counts.acked, counts.in_flight), (1, 0));
    store.refuse_writes(true);
    drop((subscription, bus));
    sleep(1).await;
    store.refuse_writes(false);
    let bus = Bus::open(store, options).expect("the options are good");
    nothing(&group(&bus).await, 60_000).await;
}

#[tokio::test(start_paused = true)]
async fn several_events_are_settled_in_the_same_step_or_none() {
    let bus = bus();
    publish(&bus, "in", 5).await;
    let subscription = group(&bus).await;
    let mut deliveries = Vec::new();
    for _ in 0..4 {
        deliveries.push(next(&subscription).await);
    }
    let last = deliveries.pop().expect("there are four");
    let sum = prombus::Delivery::ack_all_and_publish(deliveries, result(&bus, "out", 6));
    assert_eq!(sum.await.expect("the step is made").len(), 1);
    assert_eq!(cursor(&bus).await, 3);
    // One of them is settled, so that the other is not either.
    let ids: Vec<String> = read_all(&bus, "in").await[2..4]
        .iter()
        .map(|event| event.id().into_owned())
        .collect();
    let again = step_by_ids(&subscription, "in", ids.clone(), result(&bus, "out", 7)).await;
    assert!(
        matches!(&again, Err(AckPublishError::AlreadySettled(settled)) if settled.seq == 3),
        "{again:?}"
    );
    assert_eq!(cursor(&bus).await, 3, "4 is still held");
    let one = step_by_ids(
        &subscription,
        "in",
        vec![ids[1].clone(), ids[1].clone()],
        result(&bus, "out", 8),
    )
    .await;
    assert_eq!(one.expect("named twice is once").len(), 1);
    last.ack_confirmed().await.expect("settled already is fine");
    assert_eq!(outputs(&bus).await, ["6", "8"]);
    let counts = bus.group("in", "g").await.expect("it exists").counts;
    assert_eq!(counts.acked, 4);

    let none = prombus::Delivery::ack_all_and_publish([], result(&bus, "out", 9)).await;
    assert_eq!(none, Err(AckPublishError::NotOneGroup));
    let other = bus
        .subscribe("in", "h", earliest())
        .await
        .expect("subscribed");
    let mixed = [next(&subscription).await, next(&other).await];
    let mixed = prombus::Delivery::ack_all_and_publish(mixed, result(&bus, "out", 9)).await;
    assert_eq!(mixed, Err(AckPublishError::NotOneGroup));
    assert_eq!(outputs(&bus).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn ephemeral_groups_and_fan_in_can_do_it_too() {
    let bus = bus();
    for topic in ["in.a", "in.b"] {
        publish(&bus, topic, 1).await;
    }
    let subscription = bus
        .subscribe_ephemeral("in.*", earliest())
        .await
        .expect("subscribed");
    for _ in 0..2 {
        let delivery = next(&subscription).await;
        let topic = delivery.event.topic().to_owned();
        if topic == "in.a" {
            let batch = result(&bus, "out", 1);
            delivery.ack_and_publish(batch).await.expect("a step");
            continue;
        }
        let ids = vec![delivery.event.id().into_owned()];
        let elsewhere =
            step_by_ids(&subscription, "in.a", ids.clone(), result(&bus, "out", 2)).await;
        assert!(
            matches!(elsewhere, Err(AckPublishError::UnknownId(_))),
            "{elsewhere:?}"
        );
        let nowhere = step_by_ids(&subscription, "in.c", ids.clone(), result(&bus, "out", 2)).await;
        assert!(
            matches!(nowhere, Err(AckPublishError::UnknownId(_))),
            "{nowhere:?}"
        );
        let foreign =
            step_by_ids(&subscription, "other", ids.clone(), result(&bus, "out", 2)).await;
        assert_eq!(foreign, Err(AckPublishError::Gone));
        step_by_ids(&subscription, "in.b", ids, result(&bus, "out", 2))
            .await
            .expect("a step");
    }
    publish(&bus, "in.a", 1).await;
    let empty = next(&subscription).await.ack_and_publish(bus.batch()).await;
    assert_eq!(empty, Ok(Vec::new()));
    nothing(&subscription, 120_000).await;
    assert_eq!(outputs(&bus).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_next_of_a_key_comes_when_the_step_is_written() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options).expect("the options are good");
    for number in 0..2 {
        bus.publish("in", &number, &key("k")).await.expect("stored");
    }
    let by_key = SubscribeOptions {
        ordering: Some(prombus::Ordering::Key),
        ..earliest()
    };
    let subscription = bus.subscribe("in", "g", by_key).await.expect("subscribed");
    let first = next(&subscription).await;
    store.hold_answers(true);
    let step = first.ack_and_publish(result(&bus, "out", 1));
    nothing(&subscription, 90_000).await;
    store.hold_answers(false);
    step.await.expect("the step is made");
    assert_eq!(next(&subscription).await.event.seq(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_answer_by_a_step() {
    let bus = bus();
    publish(&bus, "in", 3).await;
    let publisher = bus.clone();
    let consumer = bus
        .subscribe_with("in", "g", earliest(), move |delivery| {
            let batch = result(&publisher, "out", delivery.event.seq());
            async move { delivery.ack_and_publish(batch).await.map(drop) }
        })
        .await
        .expect("subscribed");
    sleep(1_000).await;
    consumer.stop().await;
    assert_eq!(outputs(&bus).await, ["1", "2", "3"]);
    let counts = bus.group("in", "g").await.expect("it exists").counts;
    assert_eq!((counts.acked, counts.nacked, counts.expired), (3, 0, 0));
}

/// A bus that makes no topics by itself, with `in` and `out`.
async fn strict_bus() -> Bus {
    let (store, options) = store();
    let options = BusOptions {
        auto_create_topics: false,
        ..options
    };
    let bus = Bus::open(store, options).expect("the options are good");
    for topic in ["in", "out"] {
        bus.create_topic(topic, &prombus::TopicConfig::default())
            .await
            .expect("made");
    }
    bus
}
