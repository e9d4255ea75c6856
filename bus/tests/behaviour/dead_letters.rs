//! Dead letters: written in one step with settling the event, and never dead-lettered again.

use crate::support::*;
use prombus::{Bus, PublishOptions, SubscribeExtras, SubscribeOptions};
use serde_json::{Value, json};

#[tokio::test(start_paused = true)]
async fn the_last_failure_writes_a_dead_letter_and_settles() {
    let bus = bus();
    let options = PublishOptions {
        id: Some("bad one"),
        key: Some("k"),
        ..plain()
    };
    bus.publish_text("a.b", "{\"n\":1.0}", &options)
        .await
        .expect("stored");
    let options = SubscribeOptions {
        max_attempts: Some(3),
        ack_timeout_ms: Some(1_000),
        extras: SubscribeExtras::member("worker"),
        ..earliest()
    };
    let subscription = bus
        .subscribe("a.b", "g", options)
        .await
        .expect("subscribed");
    next(&subscription).await.nack("first");
    let _lapses = next(&subscription).await;
    next(&subscription).await.nack("last");
    nothing(&subscription, 100_000).await;

    let letters = read_all(&bus, "dlq.a.b").await;
    assert_eq!(letters.len(), 1);
    let payload = letters[0].payload();
    let original = read_all(&bus, "a.b").await[0].json().to_owned();
    assert!(
        payload.contains(&format!("\"original\":{original},")),
        "byte for byte: {payload}"
    );
    let letter: Value = serde_json::from_str(payload).expect("JSON");
    assert_eq!(letter["topic"], "a.b");
    assert_eq!(letter["group"], "g");
    assert_eq!(letter["err"], "last");
    assert_eq!(letter["attempts"], 3);
    assert_eq!(letter["original"]["id"], "bad one");
    assert!(letter["ts"].as_u64() > Some(START_MS));
    let history = letter["history"].as_array().expect("a list");
    let reasons: Vec<&Value> = history.iter().map(|attempt| &attempt["reason"]).collect();
    assert_eq!(
        reasons,
        [&json!("first"), &json!("the lease ran out"), &json!("last")]
    );
    assert_eq!(history[1]["member"], "worker");
    assert_eq!(
        history[1]["end"].as_u64(),
        history[1]["start"].as_u64().map(|start| start + 1_000)
    );

    let info = bus.group("a.b", "g").await.expect("it exists");
    assert_eq!(
        (info.cursor, info.lag, info.counts.dead_lettered),
        (1, 0, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn dead_letters_keep_retrying_at_the_longest_backoff() {
    let bus = bus();
    publish(&bus, "dlq.t", 1).await;
    let options = SubscribeOptions {
        max_attempts: Some(2),
        ..earliest()
    };
    let subscription = bus
        .subscribe("dlq.t", "g", options)
        .await
        .expect("subscribed");
    let mut before = tokio::time::Instant::now();
    for attempt in 1..=8 {
        let delivery = subscription.next().await.expect("it goes on");
        assert_eq!(delivery.context.attempt, attempt);
        if attempt > 1 {
            assert!(before.elapsed().as_millis() >= 22_500);
        }
        before = tokio::time::Instant::now();
        delivery.nack_after("never", 0);
    }
    assert!(bus.store().topic("dlq.dlq.t").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_that_cannot_be_written_is_tried_again() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options).expect("the options are good");
    publish(&bus, "t", 2).await;
    let options = SubscribeOptions {
        max_attempts: Some(1),
        ..earliest()
    };
    let subscription = bus.subscribe("t", "g", options).await.expect("subscribed");
    store.refuse_writes(true);
    next(&subscription).await.nack("bad");
    next(&subscription).await.ack();
    sleep(1_000).await;
    assert_eq!(
        bus.cursor("t", "g").await.expect("it exists").last_seq,
        0,
        "not settled"
    );
    store.refuse_writes(false);
    sleep(60_000).await;
    assert_eq!(read_all(&bus, "dlq.t").await.len(), 1);
    assert_eq!(bus.cursor("t", "g").await.expect("it exists").last_seq, 2);
}

#[tokio::test(start_paused = true)]
async fn dead_letters_are_made_even_where_topics_are_not_made_by_publishing() {
    let (store, options) = store();
    let options = prombus::BusOptions {
        auto_create_topics: false,
        ..options
    };
    let bus = Bus::open(store, options).expect("the options are good");
    bus.create_topic("t", &prombus::TopicConfig::default())
        .await
        .expect("made");
    publish(&bus, "t", 200).await;
    let options = SubscribeOptions {
        max_attempts: Some(1),
        ..earliest()
    };
    let subscription = bus.subscribe("t", "g", options).await.expect("subscribed");
    for _ in 0..200 {
        next(&subscription).await.nack("bad");
    }
    sleep(1_000).await;
    assert_eq!(read_all(&bus, "dlq.t").await.len(), 200);
    assert_eq!(bus.group("t", "g").await.expect("it exists").lag, 0);
}
