//! Pausing a whole group: no member is given events, leases go on, and it survives a restart.

use crate::support::*;
use prombus::{Bus, Reason, StartAt, SubscribeOptions};

#[tokio::test(start_paused = true)]
async fn every_member_stops_and_leases_go_on() {
    let bus = bus();
    publish(&bus, "t", 10).await;
    let one = bus.subscribe("t", "g", earliest()).await.expect("joined");
    let held = next(&one).await;
    let two = bus.subscribe("t", "g", earliest()).await.expect("joined");
    let other_group = bus.subscribe("t", "h", earliest()).await.expect("joined");
    sleep(10).await;
    let info = bus.pause_group("t", "g").await.expect("it exists");
    assert_eq!(info.paused_since_ms, Some(START_MS + 10));
    assert_eq!(
        (info.in_flight, info.lag),
        (1, 10),
        "what was in mailboxes went back, what a member holds did not"
    );
    publish_one(&bus, "t", 11).await;
    nothing(&one, 5_000).await;
    nothing(&two, 5_000).await;
    assert_eq!(take(&other_group, 11).await.len(), 11);
    held.extend_confirmed(20_000).await.expect("it is held");
    held.ack_confirmed().await.expect("it is held");
    let late = bus.subscribe("t", "g", earliest()).await.expect("joined");
    nothing(&late, 5_000).await;
    drop((one, two));

    let info = bus.resume_group("t", "g").await.expect("it exists");
    assert_eq!((info.paused_since_ms, info.cursor), (None, 1));
    let mut attempts = Vec::new();
    for _ in 0..10 {
        let delivery = next(&late).await;
        attempts.push(delivery.context.attempt);
        delivery.ack();
    }
    assert_eq!(attempts, [1; 10], "what went back unseen was no attempt");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_ends_in_a_pause_comes_back_after_it() {
    let bus = bus();
    publish(&bus, "t", 2).await;
    let subscription = bus.subscribe("t", "g", earliest()).await.expect("joined");
    let (refused, forgotten) = (next(&subscription).await, next(&subscription).await);
    bus.pause_group("t", "g").await.expect("it exists");
    refused.nack("no");
    sleep(40_000).await;
    let info = bus.group("t", "g").await.expect("it exists");
    assert_eq!((info.in_flight, info.counts.expired), (0, 1));
    drop(forgotten);
    nothing(&subscription, 60_000).await;
    bus.resume_group("t", "g").await.expect("it exists");
    for _ in 0..2 {
        let delivery = next(&subscription).await;
        assert_eq!(delivery.context.attempt, 2);
        delivery.ack();
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_survives_a_restart_and_a_seek_and_says_so() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options.clone()).expect("good options");
    publish(&bus, "t", 3).await;
    let subscription = bus.subscribe("t", "g", earliest()).await.expect("joined");
    take(&subscription, 3).await;
    bus.pause_group("t", "g").await.expect("it exists");
    let first = bus.pause_group("t", "g").await.expect("it exists");
    // The process is killed: what was answered is stored.
    store.die_after(0, false);
    drop((subscription, bus));
    store.revive();
    sleep(1_000).await;

    let bus = Bus::open(store, options).expect("good options");
    let listed = bus.groups("t").await.expect("listed");
    assert_eq!(listed[0].paused_since_ms, first.paused_since_ms);
    let subscription = bus.subscribe("t", "g", earliest()).await.expect("joined");
    bus.seek("t", "g", StartAt::Earliest).await.expect("sought");
    nothing(&subscription, 1_000).await;
    let told = bus.explain("t", "g").await.expect("it exists");
    assert_eq!(told.reason, Reason::Paused);
    assert_eq!(
        told.sentence,
        "group g of topic t was paused at 2023-11-14T22:13:20Z and has 3 events to go; resume it with \
         `prombus group resume t g` or POST /groups/resume."
    );
    bus.resume_group("t", "g").await.expect("it exists");
    bus.resume_group("t", "g").await.expect("twice is fine");
    assert_eq!(take(&subscription, 3).await, [1, 2, 3]);
    let caught_up = bus.explain("t", "g").await.expect("it exists");
    assert_eq!(caught_up.reason, Reason::CaughtUp);
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_is_not_stored_is_an_error_until_it_is() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options).expect("good options");
    publish(&bus, "t", 1).await;
    let _subscription = bus.subscribe("t", "g", earliest()).await.expect("joined");
    store.refuse_writes(true);
    for _ in 0..2 {
        let refused = bus.pause_group("t", "g").await;
        assert_eq!(refused.map_err(|error| error.kind()), Err("StoreFailed"));
    }
    store.refuse_writes(false);
    let info = bus.pause_group("t", "g").await.expect("it is stored");
    assert!(info.paused_since_ms.is_some());
}

#[tokio::test(start_paused = true)]
async fn groups_that_are_not_there_or_not_stored() {
    let bus = bus();
    publish(&bus, "t", 1).await;
    for (topic, group, kind) in [
        ("t", "none", "UnknownGroup"),
        ("none.*", "g", "InvalidTopic"),
        ("t", "a b", "InvalidGroup"),
    ] {
        let paused = bus.pause_group(topic, group).await;
        assert_eq!(paused.map_err(|error| error.kind()), Err(kind));
    }
    let ephemeral = bus
        .subscribe_ephemeral("t", SubscribeOptions::default())
        .await
        .expect("subscribed");
    let group = ephemeral.group().to_owned();
    bus.pause_group("t", &group).await.expect("it exists");
    publish_one(&bus, "t", 2).await;
    nothing(&ephemeral, 1_000).await;
    bus.resume_group("t", &group).await.expect("it exists");
    assert_eq!(take(&ephemeral, 1).await, [2]);
}
