//! Closing: everything is written, everything stops, and nothing new is taken in.

use crate::support::*;
use prombus::error::{GroupError, PublishError, SettleError, SubscribeError};
use prombus::{Bus, Ended};

#[tokio::test(start_paused = true)]
async fn a_closed_bus_takes_nothing_in() {
    let bus = bus();
    publish(&bus, "t", 2).await;
    let subscription = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    let held = next(&subscription).await;
    bus.close().await.expect("closed");
    bus.close().await.expect("twice is fine");
    assert!(
        subscription.next().await.is_none(),
        "the second event went back"
    );
    assert_eq!(subscription.ended(), Some(Ended::BusClosed));
    assert_eq!(held.ack_confirmed().await, Err(SettleError::Gone));
    let error = bus.publish("t", &1, &plain()).await.expect_err("closed");
    assert_eq!((error.kind(), error), ("Closed", PublishError::Closed));
    let error = bus
        .subscribe("t", "g", earliest())
        .await
        .expect_err("closed");
    assert_eq!(error, SubscribeError::Group(GroupError::Closed));
    assert_eq!(bus.group("t", "g").await, Err(GroupError::Closed));
    assert!(bus.delete_topic("t").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn letting_go_of_the_last_bus_writes_and_stops() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options.clone()).expect("the options are good");
    publish(&bus, "t", 2).await;
    let subscription = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    take(&subscription, 1).await;
    let clone = bus.clone();
    drop(bus);
    publish_one(&clone, "t", 3).await;
    drop(clone);
    sleep(1).await;
    assert!(subscription.next().await.is_none());
    let bus = Bus::open(store, options).expect("the options are good");
    assert_eq!(
        bus.cursor("t", "g").await.expect("it was written").last_seq,
        1
    );
}

#[tokio::test(start_paused = true)]
async fn groups_that_nobody_uses_cost_no_task() {
    let bus = bus();
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let before = tasks();
    for number in 0..100 {
        let group = format!("g{number}");
        let subscription = bus
            .subscribe("t", &group, earliest())
            .await
            .expect("subscribed");
        assert!(tasks() > before);
        drop(subscription);
    }
    sleep(1_000).await;
    assert_eq!(tasks(), before);
    assert_eq!(bus.groups("t").await.expect("they can be read").len(), 100);
}

#[tokio::test(start_paused = true)]
async fn counts_survive_an_owner_that_retires() {
    let bus = bus();
    publish(&bus, "t", 3).await;
    let subscription = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    take(&subscription, 3).await;
    drop(subscription);
    sleep(1_000).await;
    let counts = bus.group("t", "g").await.expect("it exists").counts;
    assert_eq!((counts.acked, counts.in_flight), (3, 0));
}
