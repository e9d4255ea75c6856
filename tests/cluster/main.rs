//! Two nodes on one shared log that serve the same group: at any time one of them does, and no event is in two hands.
#![cfg(test)]

mod nodes;

use nodes::{LIMIT, Node, cluster};
use prombus::error::{GroupError, SubscribeError};
use prombus::{Ended, StartAt, SubscribeOptions, Subscription};
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
    let error = refused.err().expect("one node serves it");
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
