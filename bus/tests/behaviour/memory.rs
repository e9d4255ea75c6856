//! Bytes of events that wait in memory: bounded for a subscription, a group and the bus, given back by everyone who goes,
//! and never so scarce that a subscription that takes its events gets none.

use crate::support::{earliest, plain, sleep, store};
use prombus::{Bus, BusOptions, SubscribeOptions, Subscription};

const EVENT_BYTES: usize = 100_000;

/// A bus with a topic `big` of so many large events.
async fn bus_of_large_events(count: usize, options: impl FnOnce(&mut BusOptions)) -> Bus {
    let (store, mut bus_options) = store();
    options(&mut bus_options);
    let bus = Bus::open(store, bus_options).expect("the options are good");
    let payload = "x".repeat(EVENT_BYTES);
    for _ in 0..count {
        let published = bus.publish("big", &payload, &plain()).await;
        published.expect("it is stored");
    }
    bus
}

async fn subscribe(bus: &Bus, group: &str) -> Subscription {
    let options = SubscribeOptions {
        max_in_flight: 100_000,
        ..earliest()
    };
    let subscribed = bus.subscribe("big", group, options).await;
    subscribed.expect("a subscription")
}

async fn in_flight(bus: &Bus, group: &str) -> u64 {
    let info = bus.group("big", group).await;
    info.expect("the group is there").in_flight
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_takes_nothing_is_leased_few_bytes() {
    let bus = bus_of_large_events(100, |_| {}).await;
    let subscription = subscribe(&bus, "g").await;
    sleep(100).await;
    let leased = in_flight(&bus, "g").await;
    assert!((1..=12).contains(&leased), "{leased} of 100 kB are leased");
    let used = bus.delivery_memory().used_bytes();
    assert!((EVENT_BYTES..=12 * EVENT_BYTES).contains(&used), "{used}");

    for _ in 0..100 {
        crate::support::next(&subscription).await.ack();
    }
    sleep(200).await;
    assert_eq!(bus.delivery_memory().used_bytes(), 0);
    assert_eq!(in_flight(&bus, "g").await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_stalled_subscription_is_leased_nothing_and_others_get_what_it_had() {
    let bus = bus_of_large_events(30, |_| {}).await;
    let stalled = subscribe(&bus, "g").await;
    sleep(50).await;
    stalled.control().set_stalled(true);
    sleep(50).await;
    assert_eq!(in_flight(&bus, "g").await, 0);
    assert_eq!(bus.delivery_memory().used_bytes(), 0);

    let reading = subscribe(&bus, "g").await;
    for _ in 0..10 {
        let delivery = crate::support::next(&reading).await;
        assert_eq!(delivery.context.attempt, 1, "nobody has seen it before");
        delivery.ack();
    }
    drop(reading);
    stalled.control().set_stalled(false);
    for _ in 0..20 {
        crate::support::next(&stalled).await.ack();
    }
    sleep(200).await;
    assert_eq!(in_flight(&bus, "g").await, 0);
    assert_eq!(bus.delivery_memory().used_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn groups_that_take_nothing_leave_others_a_share() {
    let bus = bus_of_large_events(40, |options| options.delivery_bytes = 1_000_000).await;
    let mut idle = Vec::new();
    for number in 0..20 {
        idle.push(subscribe(&bus, &format!("idle-{number}")).await);
    }
    sleep(100).await;
    let used = bus.delivery_memory().used_bytes();
    // What is shared, and beyond it one event for each.
    assert!(used <= 1_000_000 + 21 * (EVENT_BYTES + 1_000), "{used}");
    let busy = subscribe(&bus, "busy").await;
    for _ in 0..40 {
        crate::support::next(&busy).await.ack();
    }
    drop(idle);
    drop(busy);
    sleep(200).await;
    assert_eq!(bus.delivery_memory().used_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn one_subscription_to_many_topics_keeps_to_its_bytes() {
    let (store, options) = store();
    let limit = options.subscription_bytes;
    let bus = Bus::open(store, options).expect("the options are good");
    let payload = "x".repeat(EVENT_BYTES);
    for topic in 0..50 {
        for _ in 0..4 {
            let topic = format!("many.t{topic}");
            let published = bus.publish(&topic, &payload, &plain()).await;
            published.expect("it is stored");
        }
    }
    let options = SubscribeOptions {
        max_in_flight: 10_000,
        ..earliest()
    };
    let subscribed = bus.subscribe("many.*", "g", options).await;
    let subscription = subscribed.expect("a subscription");
    sleep(100).await;
    let used = bus.delivery_memory().used_bytes();
    // A read brings at least one event, however little is left for it.
    assert!(used <= limit + 2 * EVENT_BYTES, "{used}");
    for _ in 0..200 {
        crate::support::next(&subscription).await.ack();
    }
    drop(subscription);
    sleep(200).await;
    assert_eq!(bus.delivery_memory().used_bytes(), 0);
}
