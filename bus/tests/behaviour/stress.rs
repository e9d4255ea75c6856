//! Many tasks on many threads in real time: nothing is lost, nobody waits for ever.

use crate::support::*;
use prombus::{Bus, BusOptions, Delivery, Ordering, SubscribeOptions, Subscription, SystemClock};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;

const PUBLISHERS: u64 = 4;
const EVENTS_EACH: u64 = 1_500;
const GROUPS: [&str; 3] = ["one", "two", "by-key"];
/// Far more than it takes, so that only a hang can reach it.
const PATIENCE: Duration = Duration::from_secs(120);

type Settled = Arc<Mutex<BTreeSet<(String, u64)>>>;

/// Takes deliveries and refuses some of them once, until everything is settled.
async fn work(subscription: Subscription, settled: Settled, turn: u64) {
    let total = (PUBLISHERS * EVENTS_EACH) as usize;
    loop {
        if settled.lock().expect("nobody panics").len() == total {
            return;
        }
        let next = tokio::time::timeout(Duration::from_millis(20), subscription.next());
        let Ok(Some(delivery)) = next.await else {
            continue;
        };
        let seq = delivery.event.seq();
        if delivery.context.attempt == 1 && seq % 7 == turn {
            delivery.nack_after("not the first time", 1);
        } else {
            let topic = delivery.event.topic().to_owned();
            if delivery.ack_confirmed().await.is_ok() {
                settled.lock().expect("nobody panics").insert((topic, seq));
            }
        }
    }
}

async fn publish_all(bus: Bus, publisher: u64) {
    for number in 0..EVENTS_EACH {
        let topic = if number % 3 == 0 {
            "stress.a"
        } else {
            "stress.b"
        };
        let name = format!("key-{}", number % 11);
        let published = bus.publish(topic, &(publisher, number), &key(&name)).await;
        published.expect("it is stored");
        if number % 100 == 0 {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn everything_is_settled_whoever_comes_and_goes() {
    let (store, options) = store();
    let options = BusOptions {
        clock: Arc::new(SystemClock),
        ..options
    };
    let bus = Bus::open(store, options).expect("the options are good");
    let mut tasks = JoinSet::new();
    for group in GROUPS {
        let settled = Settled::default();
        let ordering = (group == "by-key").then_some(Ordering::Key);
        for member in 0..3 {
            let options = SubscribeOptions {
                max_in_flight: 64,
                batch_size: 8,
                ordering,
                ..earliest()
            };
            let subscription = bus
                .subscribe("stress.*", group, options)
                .await
                .expect("subscribed");
            tasks.spawn(work(subscription, settled.clone(), member));
        }
        // One that comes, takes some and goes without a word.
        let passing = bus
            .subscribe("stress.*", group, earliest())
            .await
            .expect("subscribed");
        tasks.spawn(async move {
            let held: Vec<Delivery> = passing.next_batch(50).await;
            drop((passing, held));
        });
    }
    for publisher in 0..PUBLISHERS {
        tasks.spawn(publish_all(bus.clone(), publisher));
    }
    let done = tokio::time::timeout(PATIENCE, async {
        while let Some(joined) = tasks.join_next().await {
            joined.expect("no task panics");
        }
    });
    done.await.expect("nobody waits for ever");
    for group in GROUPS {
        for topic in ["stress.a", "stress.b"] {
            let info = bus.group(topic, group).await.expect("it exists");
            assert_eq!(
                (info.lag, info.in_flight, info.cursor),
                (0, 0, info.tail),
                "{topic} {group}"
            );
            assert!(info.tail > 0);
        }
    }
    bus.close().await.expect("closed");
}
