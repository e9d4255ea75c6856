//! A minute of everyday trouble: publishers, several groups, consumers that vanish and come back, and random NACKs.
//! In the end every event is settled exactly once in each group, and the server's memory has stayed flat.

use crate::server::{PATIENCE, Server};
use prombus_client::{
    Client, ClientOptions, Delivery, PublishOptions, StartAt, SubscribeOptions, Subscription,
};
use prombus_store::conformance::Random;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

const TOPIC: &str = "soak.events";
const GROUPS: [&str; 3] = ["billing", "mail", "audit"];
const PUBLISHERS: u64 = 4;
const CONSUMERS_PER_GROUP: u64 = 3;
/// One of so many deliveries is refused.
const NACK_ONE_OF: u64 = 20;
/// One of so many deliveries makes its consumer vanish without a word.
const VANISH_ONE_OF: u64 = 400;
/// What a publisher has on its way at a time, and how long it rests after each.
const BURST: u64 = 50;
const REST: Duration = Duration::from_millis(40);
/// More than buffers, caches and the allocator's slack take once warm; a leak of a few bytes for each event exceeds it.
const MAX_GROWTH_BYTES: u64 = 48 << 20;

struct Soak {
    url: String,
    published: AtomicU64,
    is_over: AtomicBool,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_settled_once_and_memory_stays_flat() {
    let length = Duration::from_secs(match std::env::var("PROMBUS_SOAK_SECONDS") {
        Ok(text) => text.parse().expect("a number of seconds"),
        Err(_) => 60,
    });
    let server = Server::start(&[]);
    let soak = Arc::new(Soak {
        url: server.url.clone(),
        published: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
    });
    let first = Client::connect(&soak.url, ClientOptions::default()).await;
    let first = first.expect("a client");
    for group in GROUPS {
        drop(subscribe(&first, group).await);
    }
    let mut consumers = JoinSet::new();
    for group in GROUPS {
        for number in 1..=CONSUMERS_PER_GROUP {
            consumers.spawn(consume(soak.clone(), group, Random::seeded(number)));
        }
    }
    let end = Instant::now() + length;
    let mut publishers = JoinSet::new();
    for number in 0..PUBLISHERS {
        publishers.spawn(publish(soak.clone(), number, end));
    }
    sleep(length / 2).await;
    let halfway_bytes = server.resident_bytes();
    while let Some(outcome) = publishers.join_next().await {
        outcome.expect("a publisher");
    }
    let published = soak.published.load(Ordering::Relaxed);
    for group in GROUPS {
        wait_until_settled(&server, group, published).await;
    }
    soak.is_over.store(true, Ordering::Relaxed);
    let end_bytes = server.resident_bytes();
    while let Some(outcome) = consumers.join_next().await {
        outcome.expect("a consumer");
    }
    assert!(published > 0);
    assert!(
        end_bytes < halfway_bytes + MAX_GROWTH_BYTES,
        "{halfway_bytes} bytes halfway, {end_bytes} at the end, {published} events"
    );
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0));
}

async fn publish(soak: Arc<Soak>, publisher: u64, end: Instant) {
    let client = Client::connect(&soak.url, ClientOptions::default()).await;
    let client = client.expect("a client");
    let mut number = 0;
    while Instant::now() < end {
        let answers: Vec<_> = (0..BURST)
            .map(|_| {
                number += 1;
                let payload = format!(r#"{{"publisher":{publisher},"number":{number}}}"#);
                client.publish_text(TOPIC, &payload, &PublishOptions::default())
            })
            .collect();
        for answer in answers {
            answer.await.expect("it is stored");
            soak.published.fetch_add(1, Ordering::Relaxed);
        }
        sleep(REST).await;
    }
    client.close().await.expect("a clean end");
}

/// Consumes until it is over; a consumer that vanishes is followed by another one.
async fn consume(soak: Arc<Soak>, group: &'static str, mut random: Random) {
    while !soak.is_over.load(Ordering::Relaxed) {
        let client = Client::connect(&soak.url, ClientOptions::default()).await;
        let client = client.expect("a client");
        let subscription = subscribe(&client, group).await;
        while !soak.is_over.load(Ordering::Relaxed) {
            // Looks up from time to time whether it is over.
            let Ok(next) = timeout(Duration::from_millis(200), subscription.next()).await else {
                continue;
            };
            let delivery: Delivery = next.expect("the subscription goes on");
            if random.one_in(VANISH_ONE_OF) {
                break;
            }
            if random.one_in(NACK_ONE_OF) {
                delivery.nack("bad luck")
            } else {
                delivery.ack()
            }
        }
    }
}

async fn subscribe(client: &Client, group: &str) -> Subscription {
    let options = SubscribeOptions {
        from: StartAt::Earliest,
        max_attempts: Some(1_000),
        ..SubscribeOptions::default()
    };
    let subscribed = client.subscribe(TOPIC, group, options).await;
    subscribed.expect("a subscription")
}

async fn wait_until_settled(server: &Server, group: &str, published: u64) {
    let limit = Instant::now() + 4 * PATIENCE;
    let path = format!("/explain?topic={TOPIC}&group={group}");
    loop {
        let (status, text) = server.get(&path);
        assert_eq!(status, 200, "{text}");
        let info: Value = serde_json::from_str(&text).expect("JSON");
        let info = &info["group"];
        if info["lag"] == 0 {
            assert_eq!(info["cursor"], published, "{text}");
            assert_eq!(info["counts"]["acked"], published, "each once: {text}");
            assert_eq!(info["counts"]["dead_lettered"], 0, "{text}");
            return;
        }
        assert!(Instant::now() < limit, "{text}");
        sleep(Duration::from_millis(100)).await;
    }
}
