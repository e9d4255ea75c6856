//! Fan-in: many topics in one subscription, by list and by pattern, those made later too.

use crate::support::*;
use prombus::{Bus, Ended, StartAt, SubscribeOptions, Subscription};
use std::sync::atomic::Ordering;

async fn topics(subscription: &Subscription, count: usize) -> Vec<(String, u64)> {
    let mut seen = Vec::new();
    for _ in 0..count {
        let delivery = next(subscription).await;
        seen.push((delivery.event.topic().to_owned(), delivery.event.seq()));
        delivery.ack();
    }
    seen.sort();
    seen
}

fn list(names: &[&str]) -> SubscribeOptions {
    SubscribeOptions {
        topics: names.iter().map(|&name| name.into()).collect(),
        ..earliest()
    }
}

fn named(pairs: &[(&str, u64)]) -> Vec<(String, u64)> {
    pairs
        .iter()
        .map(|&(topic, seq)| (topic.to_owned(), seq))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_list_of_topics_comes_in_together() {
    let bus = bus();
    publish(&bus, "a", 2).await;
    let subscription = bus
        .subscribe("", "g", list(&["a", "b", "a"]))
        .await
        .expect("subscribed");
    publish(&bus, "b", 1).await;
    publish(&bus, "c", 1).await;
    assert_eq!(
        topics(&subscription, 3).await,
        named(&[("a", 1), ("a", 2), ("b", 1)])
    );
    nothing(&subscription, 100).await;
    let names: Vec<String> = subscription
        .control()
        .topics()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(bus.group("b", "g").await.expect("it exists").cursor, 1);
}

#[tokio::test(start_paused = true)]
async fn many_topics_are_read_no_further_than_there_is_room() {
    const TOPICS: u64 = 40;
    const EVENTS: u64 = 100;
    const ROOM: u64 = 50;
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options).expect("the options are good");
    for topic in 0..TOPICS {
        publish(&bus, &format!("x.{topic}"), EVENTS).await;
    }
    let options = SubscribeOptions {
        max_in_flight: ROOM as usize,
        ..earliest()
    };
    let subscription = bus.subscribe("x.*", "g", options).await;
    let subscription = subscription.expect("subscribed");
    let mut acked = 0;
    while acked < TOPICS * EVENTS {
        sleep(1).await;
        let asked = store.asked_events.load(Ordering::SeqCst);
        assert!(asked <= acked + ROOM, "{asked} asked for, {acked} settled");
        for delivery in subscription.next_batch(7).await {
            delivery.ack();
            acked += 1;
        }
    }
    nothing(&subscription, 100).await;
}

#[tokio::test(start_paused = true)]
async fn a_pattern_follows_topics_made_later_from_their_first_event() {
    let bus = bus();
    publish(&bus, "x.old", 3).await;
    let latest = SubscribeOptions::default();
    let subscription = bus.subscribe("x.*", "g", latest).await.expect("subscribed");
    let mut batch = bus.batch();
    for number in ["1", "2", "3"] {
        batch.add("x.new", number, &plain());
        batch.add("y.new", number, &plain());
    }
    bus.publish_batch(batch).await;
    publish(&bus, "x.old", 1).await;
    let expected = [("x.new", 1), ("x.new", 2), ("x.new", 3), ("x.old", 4)];
    assert_eq!(topics(&subscription, 4).await, named(&expected));
    nothing(&subscription, 1_000).await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_topic_that_is_made_again_is_followed_again() {
    let bus = bus();
    publish(&bus, "x.a", 2).await;
    let subscription = bus
        .subscribe("x.**", "g", earliest())
        .await
        .expect("subscribed");
    assert_eq!(
        topics(&subscription, 2).await,
        named(&[("x.a", 1), ("x.a", 2)])
    );
    bus.delete_topic("x.a").await.expect("it exists");
    sleep(10).await;
    assert_eq!(subscription.ended(), None, "others may come");
    publish(&bus, "x.a", 1).await;
    assert_eq!(topics(&subscription, 1).await, named(&[("x.a", 1)]));
}

#[tokio::test(start_paused = true)]
async fn in_flight_is_capped_over_all_topics_and_a_busy_one_does_not_starve_the_others() {
    let bus = bus();
    publish(&bus, "a", 100).await;
    let options = SubscribeOptions {
        max_in_flight: 2,
        ..list(&["a", "b"])
    };
    let subscription = bus.subscribe("", "g", options).await.expect("subscribed");
    let mut held = vec![next(&subscription).await, next(&subscription).await];
    nothing(&subscription, 100).await;
    publish(&bus, "b", 1).await;
    sleep(10).await;
    let mut seen = Vec::new();
    for _ in 0..6 {
        held.remove(0).ack();
        held.push(next(&subscription).await);
        seen.push(held[1].event.topic().to_owned());
    }
    assert!(seen.contains(&"b".to_owned()), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn closing_ends_a_pattern_that_matches_nothing_yet() {
    let bus = bus();
    let subscription = bus
        .subscribe("none.**", "g", earliest())
        .await
        .expect("subscribed");
    bus.close().await.expect("closed");
    assert!(subscription.next().await.is_none());
    assert_eq!(subscription.ended(), Some(Ended::BusClosed));
}

#[tokio::test(start_paused = true)]
async fn letting_go_of_the_bus_ends_its_subscriptions() {
    let bus = bus();
    let pattern = bus
        .subscribe("none.**", "g", earliest())
        .await
        .expect("subscribed");
    let plain = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    drop::<Bus>(bus);
    assert!(pattern.next().await.is_none());
    assert!(plain.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_id_cannot_place_several_topics() {
    let bus = bus();
    let options = SubscribeOptions {
        from: StartAt::AfterId("a".into()),
        ..Default::default()
    };
    let error = bus
        .subscribe("x.*", "g", options.clone())
        .await
        .expect_err("several");
    assert_eq!(error.kind(), "InvalidField");
    let options = SubscribeOptions {
        topics: vec!["b".into()],
        ..options
    };
    assert!(bus.subscribe("a", "g", options).await.is_err());
}
