//! Handlers: success acknowledges, errors and panics bring the event back.

use crate::support::*;
use prombus::{Delivery, Ended, SubscribeOptions};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc;

#[tokio::test(start_paused = true)]
async fn errors_and_panics_are_nacks_with_their_text() {
    let bus = bus();
    publish(&bus, "t", 1).await;
    let options = SubscribeOptions {
        max_attempts: Some(3),
        ..earliest()
    };
    let handler = |delivery: Delivery| async move {
        match delivery.context.attempt {
            1 => Err("no good"),
            2 => panic!("broken at {}", delivery.event.seq()),
            _ => {
                std::panic::panic_any(7);
            }
        }
    };
    let consumer = bus
        .subscribe_with("t", "g", options, handler)
        .await
        .expect("subscribed");
    sleep(1_000).await;
    let letter = read_all(&bus, "dlq.t").await[0].payload().to_owned();
    let letter: serde_json::Value = serde_json::from_str(&letter).expect("JSON");
    let reasons: Vec<&str> = letter["history"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|attempt| attempt["reason"].as_str())
        .collect();
    assert_eq!(
        reasons,
        ["no good", "panic: broken at 1", "panic: without a message"]
    );
    publish_one(&bus, "t", 2).await;
    sleep(10).await;
    assert_eq!(
        bus.group("t", "g").await.expect("it exists").counts.nacked,
        4,
        "it goes on"
    );
    consumer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn success_acknowledges_one_by_one() {
    let bus = bus();
    publish(&bus, "t", 5).await;
    let (sender, mut seen) = mpsc::channel(16);
    let handler = move |delivery: Delivery| {
        let sender = sender.clone();
        async move { sender.send(delivery.event.seq()).await }
    };
    let consumer = bus
        .subscribe_with("t", "g", earliest(), handler)
        .await
        .expect("subscribed");
    for expected in 1..=5 {
        assert_eq!(seen.recv().await, Some(expected));
    }
    consumer.stop().await;
    assert_eq!(bus.cursor("t", "g").await.expect("it exists").last_seq, 5);
}

#[tokio::test(start_paused = true)]
async fn concurrency_is_what_was_asked_for() {
    let bus = bus();
    publish(&bus, "t", 20).await;
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let handler = {
        let (running, most) = (running.clone(), most.clone());
        move |_| {
            let (running, most) = (running.clone(), most.clone());
            async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                sleep(100).await;
                running.fetch_sub(1, Ordering::SeqCst);
                Ok::<_, Infallible>(())
            }
        }
    };
    let options = SubscribeOptions {
        concurrency: 4,
        ..earliest()
    };
    let consumer = bus
        .subscribe_with("t", "g", options, handler)
        .await
        .expect("subscribed");
    sleep(550).await;
    assert_eq!(most.load(Ordering::SeqCst), 4);
    assert_eq!(bus.cursor("t", "g").await.expect("it exists").last_seq, 20);
    consumer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn stopping_waits_for_what_runs_and_dropping_does_not() {
    let bus = bus();
    publish(&bus, "t", 3).await;
    let slow = |_| async {
        sleep(5_000).await;
        Ok::<_, Infallible>(())
    };
    let consumer = bus
        .subscribe_with("t", "g", earliest(), slow)
        .await
        .expect("subscribed");
    sleep(1).await;
    consumer.stop().await;
    assert_eq!(bus.cursor("t", "g").await.expect("it exists").last_seq, 1);
    let consumer = bus
        .subscribe_with("t", "g", earliest(), slow)
        .await
        .expect("subscribed");
    sleep(1).await;
    drop(consumer);
    let subscription = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    let interrupted = next(&subscription).await;
    assert_eq!(
        (interrupted.event.seq(), interrupted.context.attempt),
        (2, 2)
    );
}

#[tokio::test(start_paused = true)]
async fn manual_acknowledgement_is_left_to_the_handler() {
    let bus = bus();
    publish(&bus, "t", 2).await;
    let options = SubscribeOptions {
        manual_ack: true,
        ..earliest()
    };
    let handler = |delivery: Delivery| async move {
        if delivery.event.seq() == 2 {
            delivery.ack();
        }
        Ok::<_, Infallible>(())
    };
    let consumer = bus
        .subscribe_with("t", "g", options, handler)
        .await
        .expect("subscribed");
    sleep(10).await;
    let info = bus.group("t", "g").await.expect("it exists");
    assert_eq!((info.cursor, info.in_flight, info.counts.acked), (0, 1, 1));
    bus.close().await.expect("closed");
    assert_eq!(consumer.ended().await, Some(Ended::BusClosed));
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_takes_longer_than_its_lease_keeps_it() {
    let bus = bus();
    publish(&bus, "t", 1).await;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let handler = move |_: Delivery| {
        counted.fetch_add(1, Ordering::SeqCst);
        async {
            sleep(20_000).await;
            Ok::<(), Infallible>(())
        }
    };
    let options = SubscribeOptions {
        ack_timeout_ms: Some(2_000),
        ..earliest()
    };
    let consumer = bus
        .subscribe_with("t", "g", options, handler)
        .await
        .expect("subscribed");
    sleep(25_000).await;
    let group = bus.group("t", "g").await.expect("it exists");
    assert_eq!((calls.load(Ordering::SeqCst), group.cursor), (1, 1));
    consumer.stop().await;
}
