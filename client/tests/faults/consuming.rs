//! Consuming: streams, handlers, settle, flow control, and what survives a broken connection.

use crate::broker::{Broker, Fault};
use crate::{connect, options, within};
use prombus_api::Code;
use prombus_client::{
    Client, Delivery, Ended, PublishOptions, StartAt, SubscribeOptions, Subscription, Topic,
};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

async fn subscribe(client: &Client, options: SubscribeOptions) -> Subscription {
    within(client.subscribe("t", "g", options)).await.unwrap()
}

fn all_settled(count: usize) -> impl Fn(&crate::broker::State) -> bool {
    move |state| state.group.settled.len() == count
}

#[tokio::test]
async fn every_event_comes_and_acknowledgements_share_frames() {
    let broker = Broker::start().await;
    broker.store(1_000);
    let client = connect(&broker, options()).await;
    let subscription = subscribe(&client, SubscribeOptions::default()).await;
    for number in 0..1_000_u32 {
        let delivery = within(subscription.next()).await.unwrap();
        assert_eq!(delivery.value::<u32>().unwrap(), number);
        assert_eq!(delivery.context.attempt, 1);
        assert_eq!(delivery.event.topic(), "t");
        delivery.ack();
    }
    broker.until(all_settled(1_000)).await;
    let state = broker.state();
    let frames = state
        .seen
        .iter()
        .filter(|word| word.starts_with("ACK"))
        .count();
    assert!(frames < 50, "{frames} frames for 1000 acknowledgements");
    assert!(state.group.settled.values().all(|&count| count == 1));
}

#[tokio::test]
async fn batches_come_and_are_acknowledged_together() {
    let broker = Broker::start().await;
    broker.store(250);
    let client = connect(&broker, options()).await;
    let subscription = subscribe(&client, SubscribeOptions::default()).await;
    let mut taken = 0;
    while taken < 250 {
        let batch = within(subscription.next_batch(100)).await;
        assert!((1..=100).contains(&batch.len()));
        taken += batch.len();
        Delivery::ack_all(batch);
    }
    broker.until(all_settled(250)).await;
}

#[tokio::test]
async fn what_was_acknowledged_of_a_partition_arrives_before_it_is_handed_over() {
    let broker = Broker::start().await;
    broker.store(20);
    broker.state().revokes_on_pause = true;
    let client = connect(&broker, options()).await;
    let partitioned = SubscribeOptions {
        partitioned: Some(true),
        ..SubscribeOptions::default()
    };
    let subscription = subscribe(&client, partitioned).await;
    let assignment = within(subscription.next_assignment()).await.unwrap();
    assert_eq!(assignment.assigned, [0]);
    let mut taken = Vec::new();
    for _ in 0..3 {
        taken.push(within(subscription.next()).await.unwrap());
    }
    subscription.pause();
    let assignment = within(subscription.next_assignment()).await.unwrap();
    assert_eq!(assignment.revoked, [0]);
    // Few of many: these acknowledgements would be left to gather.
    for delivery in taken {
        delivery.ack();
    }
    subscription.control().confirm_revoked("t", &[0]);
    let is_revoked = |word: &String| word == "REVOKED";
    broker
        .until(|state| state.seen.iter().any(is_revoked) && state.group.settled.len() == 3)
        .await;
    let seen = broker.state().seen.clone();
    let last = seen.last().expect("frames came");
    assert!(is_revoked(last), "{seen:?}");
}

#[tokio::test]
async fn flow_control_holds_and_single_acknowledgements_go_at_once() {
    let broker = Broker::start().await;
    broker.store(20);
    let client = connect(&broker, options()).await;
    let one = SubscribeOptions {
        max_in_flight: 1,
        ..SubscribeOptions::default()
    };
    let subscription = subscribe(&client, one).await;
    for _ in 0..20 {
        within(subscription.next()).await.unwrap().ack();
    }
    broker.until(all_settled(20)).await;
}

#[tokio::test]
async fn nack_extend_and_confirmed_answers_reach_the_server() {
    let broker = Broker::start().await;
    broker.store(4);
    let client = connect(&broker, options()).await;
    let subscription = subscribe(&client, SubscribeOptions::default()).await;
    within(subscription.next()).await.unwrap().nack("no");
    within(subscription.next())
        .await
        .unwrap()
        .nack_after("later", 7);
    let third = within(subscription.next()).await.unwrap();
    third.extend(5_000);
    within(third.extend_confirmed(5_000)).await.unwrap();
    within(third.ack_confirmed()).await.unwrap();
    let fourth = within(subscription.next()).await.unwrap();
    within(fourth.nack_confirmed("also no")).await.unwrap();
    let state = broker.state();
    let expected = [
        ("no".to_owned(), None),
        ("later".to_owned(), Some(7)),
        ("also no".to_owned(), None),
    ];
    assert_eq!(state.group.nacks, expected);
    assert_eq!(state.group.extended, 2);
    assert_eq!(state.group.settled.len(), 1);
}

#[tokio::test]
async fn pause_resume_and_unsubscribe_are_told() {
    let broker = Broker::start().await;
    let client = connect(&broker, options()).await;
    let subscription = subscribe(&client, SubscribeOptions::default()).await;
    subscription.pause();
    assert!(subscription.control().is_paused());
    broker
        .until(|state| state.seen.contains(&"PAUSE".to_owned()))
        .await;
    subscription.resume();
    broker
        .until(|state| state.seen.contains(&"RESUME".to_owned()))
        .await;
    assert_eq!(&*subscription.group(), "g");
    within(subscription.unsubscribe()).await;
    assert!(broker.state().seen.contains(&"UNSUBSCRIBE".to_owned()));
    drop(subscribe(&client, SubscribeOptions::default()).await);
    let count = |state: &crate::broker::State| {
        state
            .seen
            .iter()
            .filter(|word| *word == "UNSUBSCRIBE")
            .count()
    };
    broker.until(|state| count(state) == 2).await;
}

#[tokio::test]
async fn a_refused_subscription_says_why() {
    let broker = Broker::start().await;
    broker.state().subscribe_error = Some(Code::Forbidden);
    let client = connect(&broker, options()).await;
    let error = within(client.subscribe("t", "g", SubscribeOptions::default()))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "forbidden");
    let none = SubscribeOptions {
        max_in_flight: 0,
        ..SubscribeOptions::default()
    };
    let error = within(client.subscribe("t", "g", none)).await.unwrap_err();
    assert_eq!(error.code(), "bad_option");
}

#[tokio::test]
async fn what_was_acknowledged_does_not_come_again_after_a_break() {
    let broker = Broker::start().await;
    broker.store(10);
    // AUTH, SUBSCRIBE, and then the acknowledgements are lost with the connection.
    broker.state().faults.push_back(Fault::BeforeFrame(2));
    let client = connect(&broker, options()).await;
    let subscription = subscribe(&client, SubscribeOptions::default()).await;
    let first: Vec<Delivery> = within(subscription.next_batch(5)).await;
    let acknowledged: BTreeSet<u32> = first.iter().map(|one| one.value().unwrap()).collect();
    Delivery::ack_all(first);
    broker.until(|state| state.connections == 2).await;
    let mut others = BTreeSet::new();
    while others.len() < 5 {
        let delivery = within(subscription.next()).await.unwrap();
        let number: u32 = delivery.value().unwrap();
        assert!(!acknowledged.contains(&number), "{number} came again");
        others.insert(number);
        delivery.ack();
    }
    broker.until(all_settled(10)).await;
    assert!(
        broker
            .state()
            .group
            .settled
            .values()
            .all(|&count| count == 1)
    );
}

#[tokio::test]
async fn a_delivery_of_the_old_connection_can_still_be_acknowledged() {
    let broker = Broker::start().await;
    broker.store(1);
    broker.state().faults.push_back(Fault::BeforeFrame(2));
    let client = connect(&broker, options()).await;
    let subscription = subscribe(&client, SubscribeOptions::default()).await;
    let old = within(subscription.next()).await.unwrap();
    assert_eq!(old.context.attempt, 1);
    // The frame that breaks the connection.
    subscription.pause();
    broker
        .until(|state| state.group.attempts.get(&0) == Some(&2))
        .await;
    // What it can do no more: its lease is gone.
    let error = within(old.extend_confirmed(1_000)).await.unwrap_err();
    assert_eq!(error.code(), "connection_lost");
    within(old.ack_confirmed()).await.unwrap();
    assert_eq!(broker.state().group.settled.len(), 1);
}

#[tokio::test]
async fn an_ephemeral_subscription_goes_on_behind_the_last_event() {
    let broker = Broker::start().await;
    broker.store(3);
    broker.state().faults.push_back(Fault::AfterReplies(2));
    let client = connect(&broker, options()).await;
    let from = StartAt::Earliest;
    let subscription = within(client.subscribe_ephemeral(
        "t",
        SubscribeOptions {
            from,
            ..SubscribeOptions::default()
        },
    ))
    .await
    .unwrap();
    assert_eq!(&*subscription.group(), "made");
    broker
        .until(|state| {
            let subscribes = |word: &&String| word.starts_with("SUBSCRIBE");
            state.seen.iter().filter(subscribes).count() == 2
        })
        .await;
    let state = broker.state();
    assert!(state.seen[0].contains("Earliest"), "{:?}", state.seen);
}

#[tokio::test]
async fn a_handler_acknowledges_and_says_why_it_failed() {
    let broker = Broker::start().await;
    broker.store(3);
    let client = connect(&broker, options()).await;
    let options = SubscribeOptions {
        concurrency: 2,
        ..SubscribeOptions::default()
    };
    let handler = |delivery: Delivery| async move {
        match delivery.value::<u32>().unwrap() {
            0 => Ok(()),
            1 => Err("one is odd"),
            _ => panic!("two is too much"),
        }
    };
    let consumer = within(client.subscribe_with("t", "g", options, handler))
        .await
        .unwrap();
    broker
        .until(|state| state.group.nacks.len() >= 2 && !state.group.settled.is_empty())
        .await;
    within(consumer.stop()).await;
    let state = broker.state();
    let reasons: BTreeSet<&str> = state
        .group
        .nacks
        .iter()
        .map(|(why, _)| why.as_str())
        .collect();
    assert_eq!(
        reasons,
        BTreeSet::from(["one is odd", "panic: two is too much"])
    );
    assert!(state.group.settled.contains_key(&0));
    assert!(state.seen.contains(&"UNSUBSCRIBE".to_owned()));
}

#[tokio::test]
async fn a_long_handler_keeps_its_lease() {
    let broker = Broker::start().await;
    broker.store(1);
    let client = connect(&broker, options()).await;
    let extended = broker.clone();
    let handler = move |_: Delivery| {
        let broker = extended.clone();
        async move {
            broker.until(|state| state.group.extended >= 2).await;
            Ok::<_, String>(())
        }
    };
    let consumer = within(client.subscribe_with("t", "g", SubscribeOptions::default(), handler))
        .await
        .unwrap();
    broker.until(all_settled(1)).await;
    within(consumer.stop()).await;
}

#[tokio::test]
async fn typed_topics_refuse_what_does_not_fit() {
    const NUMBERS: Topic<u8> = Topic::new("t");
    let broker = Broker::start().await;
    let client = connect(&broker, options()).await;
    within(client.publish("t", "text", &PublishOptions::default()))
        .await
        .unwrap();
    within(NUMBERS.publish(&client, &7, &PublishOptions::default()))
        .await
        .unwrap();
    let one = SubscribeOptions::default();
    let numbers = within(NUMBERS.subscribe(&client, "g", one)).await.unwrap();
    let (number, delivery) = within(numbers.next()).await.unwrap();
    assert_eq!(number, 7);
    within(delivery.ack_confirmed()).await.unwrap();
    broker.until(|state| !state.group.nacks.is_empty()).await;
}

#[tokio::test]
async fn subscriptions_end_with_the_client() {
    let broker = Broker::start().await;
    broker.store(1);
    let client = connect(&broker, options()).await;
    let subscription = Arc::new(subscribe(&client, SubscribeOptions::default()).await);
    within(subscription.next()).await.unwrap().ack();
    let waiting = subscription.clone();
    let waiting = tokio::spawn(async move { waiting.next().await.is_none() });
    within(client.close()).await.unwrap();
    assert!(within(waiting).await.unwrap());
    assert!(matches!(subscription.ended(), Some(Ended::Client(_))));
    // Closing sent the acknowledgement first.
    assert_eq!(broker.state().group.settled.len(), 1);
    let error = within(client.subscribe("t", "g", SubscribeOptions::default()))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "closed");
}

#[tokio::test]
async fn several_tasks_may_wait_for_one_subscription() {
    let broker = Broker::start().await;
    let client = connect(&broker, options()).await;
    let subscription = Arc::new(subscribe(&client, SubscribeOptions::default()).await);
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    for _ in 0..3 {
        let (subscription, seen) = (subscription.clone(), seen.clone());
        tokio::spawn(async move {
            while let Some(delivery) = subscription.next().await {
                seen.lock()
                    .unwrap()
                    .insert(delivery.value::<u32>().unwrap());
                tokio::time::sleep(Duration::from_millis(1)).await;
                delivery.ack();
            }
        });
    }
    for number in 0..30 {
        within(client.publish("t", &number, &PublishOptions::default()))
            .await
            .unwrap();
    }
    broker.until(all_settled(30)).await;
    assert_eq!(seen.lock().unwrap().len(), 30);
}
