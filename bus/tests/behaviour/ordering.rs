//! Ordering by key: one event per key at a time, a retry blocks only its key.

use crate::support::*;
use prombus::{Ordering, SubscribeOptions};
use std::collections::HashMap;

fn by_key() -> SubscribeOptions {
    SubscribeOptions {
        ordering: Some(Ordering::Key),
        ..earliest()
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_blocks_its_key_and_all_others_flow() {
    let bus = bus();
    for name in ["a", "a", "b", "a", "b"] {
        bus.publish("t", &1, &key(name)).await.expect("stored");
    }
    publish_one(&bus, "t", 6).await;
    let subscription = bus.subscribe("t", "g", by_key()).await.expect("subscribed");
    let first = next(&subscription).await;
    assert_eq!(first.event.seq(), 1);
    first.nack_after("later", 10_000);
    assert_eq!(take(&subscription, 3).await, [3, 6, 5]);
    nothing(&subscription, 9_000).await;
    assert_eq!(take(&subscription, 3).await, [1, 2, 4]);
}

#[tokio::test(start_paused = true)]
async fn each_key_comes_in_log_order_whatever_fails_and_whoever_takes_it() {
    let bus = bus();
    for number in 0..300u64 {
        let name = format!("key-{}", number % 7);
        bus.publish("t", &number, &key(&name))
            .await
            .expect("stored");
    }
    let one = bus.subscribe("t", "g", by_key()).await.expect("subscribed");
    let two = bus.subscribe("t", "g", by_key()).await.expect("subscribed");
    let mut last: HashMap<String, u64> = HashMap::new();
    let mut settled = 0;
    let mut turn = 0;
    while settled < 300 {
        turn += 1;
        let delivery = tokio::select! {
            delivery = one.next() => delivery,
            delivery = two.next() => delivery,
        };
        let delivery = delivery.expect("it goes on");
        let name = delivery.event.key().expect("it has one").into_owned();
        let seq = delivery.event.seq();
        assert!(
            last.get(&name).is_none_or(|&last| last < seq),
            "{name}: {seq}"
        );
        if turn % 3 == 0 && delivery.context.attempt < 4 {
            delivery.nack("again");
        } else {
            last.insert(name, seq);
            settled += 1;
            delivery.ack_confirmed().await.expect("it is held");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_that_dies_lets_its_key_go_on() {
    let bus = bus();
    for _ in 0..2 {
        bus.publish("t", &1, &key("a")).await.expect("stored");
    }
    let options = SubscribeOptions {
        max_attempts: Some(1),
        ..by_key()
    };
    let subscription = bus.subscribe("t", "g", options).await.expect("subscribed");
    next(&subscription).await.nack("bad");
    assert_eq!(take(&subscription, 1).await, [2]);
    assert_eq!(read_all(&bus, "dlq.t").await.len(), 1);
}
