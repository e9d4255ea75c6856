//! Typed topics: one declaration to publish and to subscribe.

use crate::support::*;
use prombus::{SubscribeOptions, Topic};
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use tokio::sync::mpsc;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Heartbeat {
    host: String,
    pid: u32,
}

const BEATS: Topic<Heartbeat> = Topic::new("heartbeat.received");

fn beat(pid: u32) -> Heartbeat {
    Heartbeat {
        host: "a".into(),
        pid,
    }
}

#[tokio::test(start_paused = true)]
async fn values_go_in_and_come_out() {
    let bus = bus();
    BEATS
        .publish(&bus, &beat(1), &key("a:1"))
        .await
        .expect("stored");
    let subscription = BEATS
        .subscribe(&bus, "g", earliest())
        .await
        .expect("subscribed");
    let (value, delivery) = subscription.next().await.expect("one comes");
    assert_eq!(
        (value, delivery.event.key().as_deref()),
        (beat(1), Some("a:1"))
    );
    delivery.ack();
}

#[tokio::test(start_paused = true)]
async fn what_does_not_decode_is_refused_with_the_reason() {
    let bus = bus();
    bus.publish(BEATS.name(), "no beat", &plain())
        .await
        .expect("stored");
    BEATS
        .publish(&bus, &beat(2), &plain())
        .await
        .expect("stored");
    let options = SubscribeOptions {
        max_attempts: Some(1),
        ..earliest()
    };
    let subscription = BEATS
        .subscribe(&bus, "stream", options.clone())
        .await
        .expect("subscribed");
    let (value, _held) = subscription.next().await.expect("one comes");
    assert_eq!(value, beat(2));

    let (sender, mut seen) = mpsc::channel(4);
    let handler = move |value: Heartbeat, _| {
        let sender = sender.clone();
        async move {
            let _ = sender.send(value.pid).await;
            Ok::<_, Infallible>(())
        }
    };
    let _consumer = BEATS
        .subscribe_with(&bus, "handler", options, handler)
        .await
        .expect("subscribed");
    assert_eq!(seen.recv().await, Some(2));
    sleep(100).await;
    let letters = read_all(&bus, "dlq.heartbeat.received").await;
    assert_eq!(letters.len(), 2);
    assert!(
        letters
            .iter()
            .all(|letter| letter.payload().contains("expected struct Heartbeat"))
    );
}
