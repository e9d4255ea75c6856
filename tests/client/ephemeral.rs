//! Ephemeral subscriptions over broken connections: their groups are gone each time, and still nothing is left out and
//! nothing comes twice.

use super::{PLAIN, Running, cutting_proxy, earliest, options, within};
use prombus_client::{Client, PublishOptions, SubscribeOptions};
use std::collections::BTreeSet;

const EVENTS: u64 = 150;

/// Publishes so that the topics' events lie beside each other in time.
async fn publish(server: &Running, topics: &[&str]) {
    let client = server.client().await;
    for number in 0..EVENTS {
        for topic in topics {
            let ts = Some(1_000_000 + number);
            let dated = PublishOptions { ts, ..*PLAIN };
            within(client.publish(topic, &number, &dated))
                .await
                .unwrap();
        }
    }
    within(client.close()).await.unwrap();
}

async fn cut_and_read(server: &Running, seed: u64, followed: &str, expected: usize) {
    let proxy = cutting_proxy(server.address, seed, 8).await;
    let client = within(Client::connect(&format!("ws://{proxy}"), options()))
        .await
        .unwrap();
    let narrow = SubscribeOptions {
        max_in_flight: 10,
        ..earliest()
    };
    let subscription = within(client.subscribe_ephemeral(followed, narrow))
        .await
        .unwrap();
    let mut seen = BTreeSet::new();
    while seen.len() < expected {
        let delivery = within(subscription.next())
            .await
            .unwrap_or_else(|| panic!("seed {seed}: {:?}", subscription.ended()));
        let event = (delivery.event.topic().to_owned(), delivery.event.seq());
        assert!(seen.insert(event.clone()), "seed {seed}: {event:?} twice");
        delivery.ack();
        // A consumer that is slower than the connection has events waiting when it breaks.
        tokio::time::sleep(std::time::Duration::from_micros(200)).await;
    }
    within(client.close()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_topics_go_on_without_gap_and_without_repetition() {
    let server = Running::in_memory().await;
    publish(&server, &["room.a", "room.b", "room.c"]).await;
    for seed in 0..10 {
        cut_and_read(&server, seed, "room.*", 3 * EVENTS as usize).await;
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_topic_goes_on_with_what_had_come_and_was_not_taken() {
    let server = Running::in_memory().await;
    publish(&server, &["room.a"]).await;
    for seed in 0..10 {
        cut_and_read(&server, seed, "room.a", EVENTS as usize).await;
    }
    server.stop().await;
}
