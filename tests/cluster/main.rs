//! Two nodes on one shared log that serve the same group: at any time one of them does, and no event is in two hands.
#![cfg(test)]

mod nodes;
mod relay;

use nodes::{LIMIT, Node, cluster};
use prombus::error::{GroupError, SubscribeError};
use prombus::{Ended, PublishOptions, Schedule, StartAt, SubscribeOptions, Subscription};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

/// How long leases are in these tests.
const LEASE: Duration = Duration::from_secs(3);

fn options() -> SubscribeOptions {
    SubscribeOptions {
        from: StartAt::Earliest,
        manual_ack: true,
        ack_timeout_ms: Some(LEASE.as_millis() as u64),
        ..SubscribeOptions::default()
    }
}

/// Subscribes as soon as the node may serve the group.
async fn subscribe(node: &Node) -> Subscription {
    let until = Instant::now() + LIMIT;
    loop {
        match node.bus.subscribe("t", "g", options()).await {
            Ok(subscription) => return subscription,
            Err(error) => assert!(error.is_retryable() && Instant::now() < until, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Takes so many deliveries, acknowledges them, and returns their payloads.
async fn consume(subscription: &Subscription, count: usize) -> BTreeSet<String> {
    let mut payloads = BTreeSet::new();
    for _ in 0..count {
        let next = tokio::time::timeout(LIMIT, subscription.next()).await;
        let delivery = next.expect("in time").expect("an event");
        let payload = delivery.event.payload().to_owned();
        assert!(payloads.insert(payload), "it came twice");
        delivery.ack_confirmed().await.expect("acknowledged");
    }
    payloads
}

fn numbers(range: std::ops::Range<usize>) -> BTreeSet<String> {
    range.map(|number| number.to_string()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_is_served_by_one_node_at_a_time() {
    let [one, two] = cluster().await;
    one.publish(0..20).await;
    let subscription = subscribe(&one).await;
    // The other node sees the group, and does not serve it.
    two.catch_up().await;
    let refused = two.bus.subscribe("t", "g", options()).await;
    let error = refused.expect_err("one node serves it");
    assert!(error.is_retryable());
    let SubscribeError::Group(GroupError::OwnedElsewhere(elsewhere)) = &error else {
        panic!("{error}");
    };
    assert_eq!(elsewhere.node, "http://one");
    assert_eq!(two.bus.group("t", "g").await.expect("a group").lag, 20);
    let explanation = two.bus.explain("t", "g").await.expect("an explanation");
    assert!(
        explanation.sentence.contains("http://one"),
        "{}",
        explanation.sentence
    );
    let error = two.bus.seek("t", "g", StartAt::Earliest).await;
    assert!(
        matches!(error, Err(GroupError::OwnedElsewhere(_))),
        "{error:?}"
    );
    // Publishing works everywhere.
    two.publish(20..40).await;
    assert_eq!(consume(&subscription, 40).await, numbers(0..40));
    // A group without members is anybody's at once.
    drop(subscription);
    let subscription = subscribe(&two).await;
    one.publish(40..50).await;
    assert_eq!(consume(&subscription, 10).await, numbers(40..50));
    // The same after a node is closed, with events in its members' hands.
    one.publish(50..53).await;
    let held = subscription.next().await.expect("an event");
    two.bus.close().await.expect("closed");
    drop(held);
    let subscription = subscribe(&one).await;
    assert_eq!(consume(&subscription, 3).await, numbers(50..53));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_cut_off_hands_out_nothing_and_its_members_keep_what_they_hold() {
    let [one, two] = cluster().await;
    one.publish(0..3).await;
    let began = Instant::now();
    let cut_off = subscribe(&one).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(cut_off.next().await.expect("an event"));
    }
    // It still follows the log, and so sees what is published; but none of its beats arrive.
    one.cut(true);
    let subscription = subscribe(&two).await;
    two.publish(3..6).await;
    let mut delivered = BTreeSet::new();
    while delivered.len() < 6 {
        let next = tokio::time::timeout(LIMIT, subscription.next()).await;
        let delivery = next.expect("in time").expect("an event");
        let payload = delivery.event.payload().to_owned();
        let number: usize = payload.parse().expect("a number");
        if number < 3 {
            assert!(began.elapsed() >= LEASE, "{payload} is still leased");
        }
        assert!(delivered.insert(payload), "it came twice");
        delivery.ack_confirmed().await.expect("acknowledged");
    }
    assert_eq!(delivered, numbers(0..6));
    // Whatever the node does when it is back, nothing of this comes from it.
    one.cut(false);
    let more = tokio::time::timeout(LIMIT, cut_off.next()).await;
    assert!(more.expect("in time").is_none(), "it hands out nothing");
    assert_eq!(cut_off.ended(), Some(Ended::TakenOver));
    for delivery in held {
        delivery
            .ack_confirmed()
            .await
            .expect_err("it is not this node's any more");
    }
    let group = two.bus.group("t", "g").await.expect("a group");
    assert_eq!((group.lag, group.in_flight), (0, 0));
}

/// How many topics the pattern has that is followed.
const TOPICS: usize = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pattern_is_followed_on_several_nodes_and_each_event_comes_once() {
    let [one, two] = cluster().await;
    let publish = async |number: usize| {
        let topic = format!("p.{}", number % TOPICS);
        let options = PublishOptions::default();
        let published = one.bus.publish(&topic, &number, &options).await;
        published.expect("published");
    };
    for number in 0..TOPICS {
        publish(number).await;
    }
    let follow = async |node: &Node| {
        let subscribed = node.bus.subscribe("p.*", "g", options()).await;
        subscribed.expect("a subscription, whoever serves the topics")
    };
    let subscriptions = [follow(&one).await, follow(&two).await];
    let mut delivered = BTreeSet::new();
    let take = async |delivered: &mut BTreeSet<String>, count: usize| {
        while delivered.len() < count {
            let [one, two] = &subscriptions;
            let next = async {
                tokio::select! {
                    delivery = one.next() => delivery,
                    delivery = two.next() => delivery,
                }
            };
            let next = tokio::time::timeout(LIMIT, next).await;
            let delivery = next.expect("in time").expect("an event");
            let payload = delivery.event.payload().to_owned();
            delivery.ack_confirmed().await.expect("acknowledged");
            assert!(delivered.insert(payload), "it came twice");
        }
    };
    take(&mut delivered, TOPICS).await;
    // Owners that have nothing to do end, and whichever node is first serves the topic next time.
    for round in 1..4 {
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        for number in round * TOPICS..(round + 1) * TOPICS {
            publish(number).await;
        }
        take(&mut delivered, (round + 1) * TOPICS).await;
    }
    assert_eq!(delivered, numbers(0..4 * TOPICS));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_scheduled_is_published_once_though_both_nodes_see_it_due() {
    let [one, two] = cluster().await;
    let schedule = Schedule::after(300);
    let scheduled = 40;
    for number in 0..scheduled {
        let node = if number % 2 == 0 { &one } else { &two };
        let payload = number.to_string();
        let options = PublishOptions::default();
        let answer = node.bus.schedule("t", &payload, &options, &schedule).await;
        answer.expect("scheduled");
    }
    let subscription = subscribe(&one).await;
    assert_eq!(
        consume(&subscription, scheduled).await,
        numbers(0..scheduled)
    );
    // Had the other node published one too, it would come now.
    tokio::time::sleep(Duration::from_secs(1)).await;
    two.catch_up().await;
    let tail = two.bus.store().topic("t").map(|topic| topic.tail_seq);
    assert_eq!(tail, Some(scheduled as u64));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_outage_changes_no_owner() {
    let [one, two] = cluster().await;
    one.publish(0..1).await;
    let subscription = subscribe(&one).await;
    assert_eq!(consume(&subscription, 1).await, numbers(0..1));
    one.set_away(true);
    tokio::time::sleep(Duration::from_secs(3)).await;
    one.set_away(false);
    let publishing = async {
        while two.try_publish(1).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let published = tokio::time::timeout(LIMIT, publishing).await;
    published.expect("in time");
    assert_eq!(consume(&subscription, 1).await, numbers(1..2));
    let error = two.bus.subscribe("t", "g", options()).await.err();
    assert!(
        error.is_some_and(|error| error.is_retryable()),
        "it is still the other's"
    );
}
