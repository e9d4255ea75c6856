//! Partitions: where events go, who gets which, and what happens when members come, go, stall or say nothing.

use crate::support::*;
use prombus::error::{AdminError, SubscribeError};
use prombus::{
    Assignment, Bus, StartAt, SubscribeExtras, SubscribeOptions, Subscription, TopicConfig,
    partition_of,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const PARTITIONS: u32 = 8;

fn partitioned(member: &str) -> SubscribeOptions {
    SubscribeOptions {
        partitioned: Some(true),
        extras: SubscribeExtras::member(member),
        from: StartAt::Earliest,
        ..SubscribeOptions::default()
    }
}

async fn bus_with_partitions() -> Bus {
    let bus = bus();
    make_topic(&bus).await;
    bus
}

async fn make_topic(bus: &Bus) {
    let config = TopicConfig {
        partitions: Some(PARTITIONS),
        ..TopicConfig::default()
    };
    bus.create_topic("t", &config).await.expect("made");
}

async fn publish_keys(bus: &Bus, keys: std::ops::Range<u32>) {
    for number in keys {
        let name = format!("key-{number}");
        bus.publish("t", &number, &key(&name))
            .await
            .expect("stored");
    }
}

async fn assignment(subscription: &Subscription) -> Assignment {
    let next = tokio::time::timeout(Duration::from_secs(120), subscription.next_assignment());
    next.await.expect("one comes").expect("it goes on")
}

async fn join(bus: &Bus, name: &str) -> Subscription {
    bus.subscribe("t", "g", partitioned(name))
        .await
        .expect("subscribed")
}

#[tokio::test(start_paused = true)]
async fn events_say_their_partition_and_keys_keep_theirs() {
    let bus = bus_with_partitions().await;
    publish_keys(&bus, 0..20).await;
    publish_keys(&bus, 0..20).await;
    for _ in 0..50 {
        publish_one(&bus, "t", 1).await;
    }
    let events = read_all(&bus, "t").await;
    let mut without_key = BTreeSet::new();
    for event in &events {
        let partition = event.partition().expect("the topic has partitions");
        let written = format!(",\"partition\":{partition},");
        assert!(event.json().contains(&written), "{}", event.json());
        match event.key() {
            Some(key) => assert_eq!(partition, partition_of(&key, PARTITIONS)),
            None => drop(without_key.insert(partition)),
        }
    }
    assert_eq!(without_key.len(), PARTITIONS as usize, "spread over all");
    publish_one(&bus, "plain", 1).await;
    let plain = read_all(&bus, "plain").await;
    assert_eq!(plain[0].partition(), None);
}

#[tokio::test(start_paused = true)]
async fn members_share_the_partitions_and_hand_over_what_moves() {
    let bus = bus_with_partitions().await;
    publish_keys(&bus, 0..40).await;
    let one = join(&bus, "one").await;
    let all: Vec<u32> = (0..PARTITIONS).collect();
    assert_eq!(assignment(&one).await.assigned, all);
    for _ in 0..40 {
        next(&one).await.ack();
    }
    let two = join(&bus, "two").await;
    let moved = assignment(&one).await;
    assert!(
        moved.assigned.is_empty() && !moved.revoked.is_empty(),
        "{moved:?}"
    );
    publish_keys(&bus, 0..40).await;
    let mut own = 0;
    let mut others = Vec::new();
    while let Ok(delivery) = tokio::time::timeout(Duration::from_secs(1), one.next()).await {
        let delivery = delivery.expect("it goes on");
        let partition = delivery.event.partition().expect("it has one");
        assert!(!moved.revoked.contains(&partition), "it was revoked");
        own += 1;
        delivery.ack();
    }
    nothing(&two, 1_000).await;
    assert!(one.control().confirm_revoked("t", moved.revoked.clone()));
    assert_eq!(assignment(&two).await.assigned, moved.revoked);
    for _ in own..40 {
        let delivery = next(&two).await;
        others.push(delivery.event.partition().expect("it has one"));
        delivery.ack();
    }
    assert!(
        others
            .iter()
            .all(|partition| moved.revoked.contains(partition))
    );
    // What one had comes to the other at once when it goes.
    drop(one);
    let rest = assignment(&two).await;
    let both: BTreeSet<u32> = rest
        .assigned
        .iter()
        .chain(&moved.revoked)
        .copied()
        .collect();
    assert_eq!(both.into_iter().collect::<Vec<u32>>(), all);
    let group = bus.group("t", "g").await.expect("a group");
    assert_eq!(
        (group.partitions, &group.members[0].partitions),
        (Some(PARTITIONS), &all)
    );
}

#[tokio::test(start_paused = true)]
async fn a_member_that_does_not_confirm_is_waited_for_as_long_as_a_lease_is() {
    let bus = bus_with_partitions().await;
    let one = join(&bus, "one").await;
    assignment(&one).await;
    let two = join(&bus, "two").await;
    let early = tokio::time::timeout(Duration::from_millis(29_000), two.next_assignment());
    assert!(early.await.is_err(), "the first may still be at it");
    assert!(!assignment(&two).await.assigned.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_a_member_holds_of_a_revoked_partition_is_waited_for_or_given_back() {
    let bus = bus_with_partitions().await;
    publish_keys(&bus, 0..40).await;
    let one = join(&bus, "one").await;
    assignment(&one).await;
    let mut held = BTreeMap::new();
    for _ in 0..40 {
        let delivery = next(&one).await;
        held.insert(delivery.event.seq(), delivery);
    }
    let two = join(&bus, "two").await;
    let moved = assignment(&one).await;
    one.control().confirm_revoked("t", moved.revoked.clone());
    assert_eq!(assignment(&two).await.assigned, moved.revoked);
    let mut again = 0;
    while let Ok(delivery) = tokio::time::timeout(Duration::from_secs(1), two.next()).await {
        let delivery = delivery.expect("it goes on");
        let partition = delivery.event.partition().expect("it has one");
        assert!(moved.revoked.contains(&partition));
        assert_eq!(
            delivery.context.attempt, 1,
            "it was given back, and did not fail"
        );
        again += 1;
        let given_back = held.remove(&delivery.event.seq());
        assert!(given_back.is_some(), "it was given to the first");
        delivery.ack_confirmed().await.expect("it is held");
    }
    assert!(again > 0);
    for (_, delivery) in held {
        delivery.ack_confirmed().await.expect("it is still held");
    }
    assert_eq!(bus.group("t", "g").await.expect("a group").lag, 0);
}

#[tokio::test(start_paused = true)]
async fn a_member_without_room_does_not_hold_up_the_others() {
    let bus = bus_with_partitions().await;
    let slow = SubscribeOptions {
        max_in_flight: 1,
        ..partitioned("slow")
    };
    let slow = bus.subscribe("t", "g", slow).await.expect("subscribed");
    assignment(&slow).await;
    let fast = join(&bus, "fast").await;
    let moved = assignment(&slow).await;
    slow.control().confirm_revoked("t", moved.revoked.clone());
    assignment(&fast).await;
    publish_keys(&bus, 0..500).await;
    let stuck = next(&slow).await;
    let wanted = (0..500).filter(|number| {
        let key = format!("key-{number}");
        moved.revoked.contains(&partition_of(&key, PARTITIONS))
    });
    for _ in wanted {
        next(&fast).await.ack();
    }
    nothing(&fast, 500).await;
    stuck.ack();
    next(&slow).await.ack();
    drop(fast);
    let mut rest = 0;
    while let Ok(delivery) = tokio::time::timeout(Duration::from_secs(5), slow.next()).await {
        delivery.expect("it goes on").ack();
        rest += 1;
        if bus.group("t", "g").await.expect("a group").lag == 0 {
            break;
        }
    }
    assert!(rest > 0);
    assert_eq!(bus.group("t", "g").await.expect("a group").lag, 0);
}

#[tokio::test(start_paused = true)]
async fn a_partitioned_group_stays_one_after_a_restart() {
    let (store, options) = store();
    let first = Bus::open(store.clone(), options.clone()).expect("opened");
    make_topic(&first).await;
    publish_keys(&first, 0..10).await;
    let one = join(&first, "one").await;
    for _ in 0..4 {
        next(&one).await.ack_confirmed().await.expect("held");
    }
    drop(one);
    first.close().await.expect("closed");
    let second = Bus::open(store, options).expect("opened");
    // Whoever says nothing takes the group as it is.
    let options = SubscribeOptions {
        partitioned: None,
        ..partitioned("one")
    };
    let one = second
        .subscribe("t", "g", options)
        .await
        .expect("subscribed");
    assert_eq!(assignment(&one).await.assigned.len(), PARTITIONS as usize);
    for _ in 0..6 {
        next(&one).await.ack_confirmed().await.expect("held");
    }
    let options = SubscribeOptions {
        partitioned: Some(false),
        ..partitioned("two")
    };
    let refused = second.subscribe("t", "g", options).await;
    let error = refused.expect_err("the group is one").to_string();
    assert!(error.contains("partitioned"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_partitioned_is_refused() {
    let bus = bus_with_partitions().await;
    let field = |refused: Result<Subscription, SubscribeError>| {
        let error = refused.expect_err("it makes no sense").to_string();
        assert!(error.contains("partitioned"), "{error}");
    };
    publish_one(&bus, "plain", 1).await;
    field(bus.subscribe("plain", "g", partitioned("m")).await);
    field(bus.subscribe("*", "g", partitioned("m")).await);
    field(bus.subscribe_ephemeral("t", partitioned("m")).await);
}

#[tokio::test(start_paused = true)]
async fn another_number_of_partitions_has_to_be_forced_and_is_taken_over_while_members_work() {
    let bus = bus_with_partitions().await;
    publish_keys(&bus, 0..30).await;
    let one = join(&bus, "one").await;
    assignment(&one).await;
    let held = next(&one).await;
    for partitions in [Some(4), None] {
        let config = TopicConfig {
            partitions,
            ..TopicConfig::default()
        };
        let refused = bus.configure_topic("t", &config).await;
        assert!(
            matches!(&refused, Err(AdminError::InvalidField(error)) if error.to_string().contains("has 8")),
            "{refused:?}"
        );
    }
    let config = TopicConfig {
        partitions: Some(3),
        ..TopicConfig::default()
    };
    bus.repartition_topic("t", &config).await.expect("forced");
    // The owner learns of it with the next thing that it does.
    held.ack_confirmed().await.expect("still held");
    publish_keys(&bus, 30..60).await;
    let mut assigned = BTreeSet::new();
    let mut revoked = 0;
    let mut settled = 1;
    while settled < 60 {
        tokio::select! {
            change = one.next_assignment() => {
                let change = change.expect("it goes on");
                revoked += change.revoked.len();
                assigned.extend(change.assigned);
            }
            delivery = one.next() => {
                delivery.expect("it goes on").ack();
                settled += 1;
            }
        }
    }
    assert_eq!(revoked, PARTITIONS as usize);
    assert_eq!(assigned, BTreeSet::from([0, 1, 2]));
    let events = read_all(&bus, "t").await;
    let numbers = |from: usize, to: usize| -> BTreeSet<u32> {
        events[from..to]
            .iter()
            .filter_map(|event| event.partition())
            .collect()
    };
    assert!(
        numbers(0, 30).iter().any(|partition| *partition > 2),
        "as it was published"
    );
    assert!(numbers(30, 60).iter().all(|partition| *partition < 3));
}

#[tokio::test(start_paused = true)]
async fn the_state_of_partitions_is_loaded_and_followed_alone() {
    let bus = bus_with_partitions().await;
    publish_keys(&bus, 0..60).await;
    let wanted = [1, 4];
    let is_wanted = |key: &str| wanted.contains(&partition_of(key, PARTITIONS));
    let state = bus.load_state("t").await.expect("loaded");
    let mut state = state.of_partitions(&wanted);
    let mut loaded = BTreeSet::new();
    while let Some(page) = state.next_page().await.expect("read") {
        loaded.extend(page.into_iter().map(|key| key.key.to_string()));
    }
    let keys = (0..60).map(|number| format!("key-{number}"));
    let expected: BTreeSet<String> = keys.filter(|key| is_wanted(key)).collect();
    assert!(!expected.is_empty());
    assert_eq!(loaded, expected);
    let mut follow = state.follow().expect("followed");
    publish_keys(&bus, 60..120).await;
    let keys = (60..120).map(|number| format!("key-{number}"));
    let expected: Vec<String> = keys.filter(|key| is_wanted(key)).collect();
    let mut followed = Vec::new();
    while followed.len() < expected.len() {
        let page = follow.next_page().await.expect("read").expect("open");
        followed.extend(
            page.events
                .iter()
                .map(|event| event.key().expect("a key").into_owned()),
        );
    }
    assert_eq!(followed, expected);
}

#[tokio::test(start_paused = true)]
async fn fewer_partitions_take_back_what_members_did_not_look_at() {
    let bus = bus_with_partitions().await;
    let one = join(&bus, "one").await;
    assignment(&one).await;
    let two = join(&bus, "two").await;
    let moved = assignment(&one).await;
    one.control().confirm_revoked("t", moved.revoked);
    assignment(&two).await;
    publish_keys(&bus, 0..40).await;
    // Everything is in the mailboxes of the two, and nobody looks.
    while bus.group("t", "g").await.expect("a group").in_flight < 40 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let config = TopicConfig {
        partitions: Some(3),
        ..TopicConfig::default()
    };
    bus.repartition_topic("t", &config).await.expect("forced");
    publish_one(&bus, "t", 1).await;
    let mut assigned = BTreeSet::new();
    while assigned.len() < 3 {
        let change = tokio::select! {
            change = one.next_assignment() => change,
            change = two.next_assignment() => change,
            () = tokio::time::sleep(Duration::from_secs(5)) => panic!("only {assigned:?} are assigned"),
        };
        assigned.extend(change.expect("it goes on").assigned);
    }
}
