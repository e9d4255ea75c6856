//! Partitions whose member has no room, in a group that keeps track of few events: they wait outside, in their order, also
//! over a restart, and nobody else waits for them.

use crate::support::*;
use prombus::{
    Bus, BusOptions, StartAt, SubscribeExtras, SubscribeOptions, Subscription, TopicConfig,
};
use std::collections::BTreeMap;
use std::time::Duration;

const PARTITIONS: u32 = 8;
const WINDOW: usize = 64;
const EVENTS: u32 = 2_000;

fn member(name: &str, max_in_flight: usize) -> SubscribeOptions {
    SubscribeOptions {
        partitioned: Some(true),
        extras: SubscribeExtras::member(name),
        from: StartAt::Earliest,
        max_in_flight,
        ..SubscribeOptions::default()
    }
}

async fn publish_all(bus: &Bus) {
    for number in 0..EVENTS {
        let name = format!("key-{}", number % 50);
        let published = bus.publish("t", &number, &key(&name)).await;
        published.expect("stored");
    }
}

/// Two members that have their partitions.
async fn two(bus: &Bus) -> (Subscription, Subscription) {
    let slow = bus.subscribe("t", "g", member("slow", 1)).await;
    let slow = slow.expect("subscribed");
    let fast = bus.subscribe("t", "g", member("fast", 100)).await;
    let fast = fast.expect("subscribed");
    for _ in 0..10_000 {
        for one in [&slow, &fast] {
            while let Some(change) = one.take_assignment() {
                one.control().confirm_revoked(&change.topic, change.revoked);
            }
        }
        let group = bus.group("t", "g").await.expect("a group");
        let held: Vec<usize> = group
            .members
            .iter()
            .map(|one| one.partitions.len())
            .collect();
        if held.iter().sum::<usize>() == PARTITIONS as usize && held.iter().all(|count| *count > 0)
        {
            return (slow, fast);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("the partitions are not shared");
}

/// Takes and acknowledges everything that comes; the positions of each partition ascend.
async fn drain(subscription: &Subscription, last: &mut BTreeMap<u32, u64>) -> u64 {
    let mut taken = 0;
    while let Ok(delivery) = tokio::time::timeout(Duration::from_secs(3), subscription.next()).await
    {
        let delivery = delivery.expect("it goes on");
        let partition = delivery.event.partition().expect("it has one");
        let seq = delivery.event.seq();
        let before = last.insert(partition, seq);
        assert!(before < Some(seq), "{seq} behind {before:?} in {partition}");
        delivery.ack_confirmed().await.expect("held");
        taken += 1;
    }
    taken
}

#[tokio::test(start_paused = true)]
async fn a_full_member_stops_nobody_and_gets_its_events_in_order_also_after_a_restart() {
    let (store, options) = store();
    let options = BusOptions {
        group_window: WINDOW,
        ..options
    };
    let bus = Bus::open(store.clone(), options.clone()).expect("opened");
    let config = TopicConfig {
        partitions: Some(PARTITIONS),
        ..TopicConfig::default()
    };
    bus.create_topic("t", &config).await.expect("made");
    let (slow, fast) = two(&bus).await;
    publish_all(&bus).await;
    let stuck = next(&slow).await;
    let mut last = BTreeMap::new();
    let taken = drain(&fast, &mut last).await;
    let own: u64 = {
        let group = bus.group("t", "g").await.expect("a group");
        group.lag
    };
    assert!(own > 10 * WINDOW as u64, "much waits for the other: {own}");
    assert_eq!(taken + own, u64::from(EVENTS), "nobody waited for it");
    drop(stuck);
    drop((slow, fast));
    bus.close().await.expect("closed");

    let bus = Bus::open(store, options).expect("opened");
    let group = bus.group("t", "g").await.expect("a group");
    assert_eq!(group.lag, own, "what waited outside is not lost");
    let (slow, fast) = two(&bus).await;
    let mut last_of_slow = BTreeMap::new();
    let mut rest = 0;
    while bus.group("t", "g").await.expect("a group").lag > 0 {
        rest += drain(&slow, &mut last_of_slow).await;
        rest += drain(&fast, &mut last).await;
    }
    assert_eq!(rest, own, "each once");
}
