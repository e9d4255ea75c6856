//! Groups: every group sees every event, within a group each event goes to one member.

use crate::support::*;
use prombus::{StartAt, SubscribeOptions};
use std::collections::BTreeSet;

#[tokio::test(start_paused = true)]
async fn every_group_sees_every_event_once() {
    let bus = bus();
    let one = bus
        .subscribe("t", "one", earliest())
        .await
        .expect("subscribed");
    publish(&bus, "t", 5).await;
    let two = bus
        .subscribe("t", "two", earliest())
        .await
        .expect("subscribed");
    assert_eq!(take(&one, 5).await, [1, 2, 3, 4, 5]);
    assert_eq!(take(&two, 5).await, [1, 2, 3, 4, 5]);
    nothing(&one, 60_000).await;
}

#[tokio::test(start_paused = true)]
async fn members_of_a_group_share_its_events() {
    let bus = bus();
    let one = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    let two = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    let mut batch = bus.batch();
    for number in 0..100 {
        batch.add("t", &number.to_string(), &plain());
    }
    bus.publish_batch(batch).await;
    sleep(10).await;
    let seqs = |deliveries: &[prombus::Delivery]| -> BTreeSet<u64> {
        deliveries
            .iter()
            .map(|delivery| delivery.event.seq())
            .collect()
    };
    let (first, second) = (one.next_batch(100).await, two.next_batch(100).await);
    assert_eq!((first.len(), second.len()), (50, 50), "a fair share each");
    let all: BTreeSet<u64> = seqs(&first).union(&seqs(&second)).copied().collect();
    assert_eq!(all, (1..=100).collect());
}

#[tokio::test(start_paused = true)]
async fn from_places_a_new_group_only() {
    let bus = bus();
    publish(&bus, "t", 3).await;
    sleep(100).await;
    let fourth = publish_one(&bus, "t", 4).await;
    publish_one(&bus, "t", 5).await;
    let cases = [
        (StartAt::Earliest, 1),
        (StartAt::Ts(START_MS + 1), 4),
        (StartAt::AfterId(fourth.id.to_string()), 5),
        (StartAt::Seq(2), 2),
        (StartAt::Latest, 6),
        (StartAt::Ts(START_MS + 1_000_000), 6),
    ];
    let mut subscriptions = Vec::new();
    for (at, (from, _)) in cases.iter().enumerate() {
        let options = SubscribeOptions {
            from: from.clone(),
            ..Default::default()
        };
        let group = format!("g{at}");
        subscriptions.push(
            bus.subscribe("t", &group, options)
                .await
                .expect("subscribed"),
        );
    }
    publish_one(&bus, "t", 6).await;
    for ((from, first), subscription) in cases.iter().zip(&subscriptions) {
        assert_eq!(next(subscription).await.event.seq(), *first, "{from:?}");
    }
    drop(subscriptions);
    let latest = SubscribeOptions::default();
    let again = bus.subscribe("t", "g0", latest).await.expect("subscribed");
    assert_eq!(take(&again, 1).await, [1], "it goes on from its cursor");
}

#[tokio::test(start_paused = true)]
async fn in_flight_is_capped_and_acks_make_room() {
    let bus = bus();
    publish(&bus, "t", 10).await;
    let options = SubscribeOptions {
        max_in_flight: 3,
        ..earliest()
    };
    let subscription = bus.subscribe("t", "g", options).await.expect("subscribed");
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(next(&subscription).await);
    }
    nothing(&subscription, 1_000).await;
    held.remove(1).ack();
    assert_eq!(next(&subscription).await.event.seq(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_paused_member_gets_nothing_and_others_get_its_share() {
    let bus = bus();
    let one = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    let two = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    publish(&bus, "t", 4).await;
    sleep(10).await;
    one.pause();
    assert!(one.control().is_paused());
    let mut seqs = take(&two, 4).await;
    seqs.sort_unstable();
    assert_eq!(seqs, [1, 2, 3, 4], "what one was not asked for went back");
    two.pause();
    publish_one(&bus, "t", 5).await;
    nothing(&one, 1_000).await;
    one.resume();
    let fifth = next(&one).await;
    assert_eq!((fifth.event.seq(), fifth.context.attempt), (5, 1));
}

#[tokio::test(start_paused = true)]
async fn the_window_bounds_what_a_group_keeps_track_of() {
    let (store, options) = store();
    let options = prombus::BusOptions {
        group_window: 4,
        ..options
    };
    let bus = prombus::Bus::open(store, options).expect("the options are good");
    publish(&bus, "t", 10).await;
    let subscription = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(next(&subscription).await);
    }
    nothing(&subscription, 1_000).await;
    held.remove(0).ack();
    assert_eq!(next(&subscription).await.event.seq(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_group_that_is_far_behind_catches_up() {
    let bus = bus();
    for _ in 0..20 {
        let mut batch = bus.batch();
        for number in 0..1_000 {
            batch.add("t", &number.to_string(), &plain());
        }
        bus.publish_batch(batch).await;
    }
    let subscription = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    let mut seqs = Vec::new();
    while seqs.len() < 20_000 {
        let batch = subscription.next_batch(64).await;
        seqs.extend(batch.iter().map(|delivery| delivery.event.seq()));
        prombus::Delivery::ack_all(batch);
    }
    assert_eq!(seqs, (1..=20_000).collect::<Vec<u64>>());
    let info = bus.group("t", "g").await.expect("it exists");
    assert_eq!((info.cursor, info.lag, info.in_flight), (20_000, 0, 0));
    assert_eq!((info.counts.delivered, info.counts.acked), (20_000, 20_000));
}

#[tokio::test(start_paused = true)]
async fn groups_are_listed_with_their_numbers_and_can_be_removed() {
    let bus = bus();
    publish(&bus, "t", 3).await;
    let one = bus
        .subscribe("t", "one", earliest())
        .await
        .expect("subscribed");
    let two = bus
        .subscribe("t", "two", SubscribeOptions::default())
        .await
        .expect("subscribed");
    take(&one, 2).await;
    let infos = bus.groups("t").await.expect("they can be read");
    let told: Vec<_> = infos
        .iter()
        .map(|info| (&*info.group, info.cursor, info.lag))
        .collect();
    assert_eq!(told, [("one", 2, 1), ("two", 3, 0)]);
    assert_eq!(infos[0].members.len(), 1);
    drop(two);
    bus.remove_group("t", "one").await.expect("it exists");
    assert!(one.next().await.is_none());
    assert_eq!(one.ended(), Some(prombus::Ended::GroupRemoved));
    let infos = bus.groups("t").await.expect("they can be read");
    assert_eq!(infos.len(), 1);
    assert!(infos[0].members.is_empty());
    let again = bus
        .subscribe("t", "one", earliest())
        .await
        .expect("subscribed");
    assert_eq!(take(&again, 1).await, [1], "a new group of the same name");
}
