//! Explanations: why nothing is flowing, in a sentence and as data.

use crate::support::*;
use prombus::{Bus, BusOptions, Explanation, Ordering, Reason, SubscribeExtras, SubscribeOptions};

async fn explain(bus: &Bus) -> Explanation {
    sleep(1).await;
    bus.explain("t", "g").await.expect("it exists")
}

#[tokio::test(start_paused = true)]
async fn nobody_there_then_caught_up() {
    let bus = bus();
    drop(
        bus.subscribe("t", "g", earliest())
            .await
            .expect("subscribed"),
    );
    publish(&bus, "t", 2).await;
    let told = explain(&bus).await;
    assert_eq!(told.reason, Reason::NoMembers);
    assert_eq!(
        told.sentence,
        "group g of topic t has 2 events to go, but it has no members."
    );
    let subscription = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    take(&subscription, 2).await;
    let told = explain(&bus).await;
    assert_eq!(told.reason, Reason::CaughtUp);
    assert!(told.sentence.contains("caught up"), "{}", told.sentence);
}

#[tokio::test(start_paused = true)]
async fn paused_then_the_cap_and_by_whom() {
    let bus = bus();
    let options = SubscribeOptions {
        max_in_flight: 2,
        extras: SubscribeExtras::member("worker"),
        ..earliest()
    };
    let subscription = bus.subscribe("t", "g", options).await.expect("subscribed");
    subscription.pause();
    publish(&bus, "t", 3).await;
    let told = explain(&bus).await;
    assert_eq!(told.reason, Reason::Paused);
    assert!(
        told.sentence.contains("its only member worker is paused"),
        "{}",
        told.sentence
    );
    subscription.resume();
    let _held = (next(&subscription).await, next(&subscription).await);
    let told = explain(&bus).await;
    assert_eq!(told.reason, Reason::InFlightCapReached);
    assert!(
        told.sentence.contains("worker holds 2 of 2"),
        "{}",
        told.sentence
    );
    assert_eq!((told.group.in_flight, told.group.members[0].room), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn backoff_until_when() {
    let bus = bus();
    publish(&bus, "t", 1).await;
    let subscription = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    next(&subscription).await.nack_after("later", 5_000);
    let told = explain(&bus).await;
    assert_eq!(told.reason, Reason::WaitingForBackoff);
    let in_ms = told.next_retry_ms.expect("one waits") - START_MS;
    assert!((5_000..5_010).contains(&in_ms), "{in_ms}");
    assert!(
        told.sentence
            .starts_with("group g of topic t: 1 event failed and waits"),
        "{}",
        told.sentence
    );
}

#[tokio::test(start_paused = true)]
async fn key_lanes_and_which_event_blocks_them() {
    let bus = bus();
    for _ in 0..3 {
        bus.publish("t", &1, &key("k")).await.expect("stored");
    }
    let options = SubscribeOptions {
        ordering: Some(Ordering::Key),
        ..earliest()
    };
    let subscription = bus.subscribe("t", "g", options).await.expect("subscribed");
    let held = next(&subscription).await;
    let told = explain(&bus).await;
    assert_eq!(told.reason, Reason::KeyLanesBlocked);
    let lane = &told.lanes[0];
    assert_eq!(
        (lane.blocked_by_seq, lane.waiting, lane.due_ms),
        (1, 2, None)
    );
    assert_eq!(lane.blocked_by_id.as_deref(), Some(&*held.event.id()));
    assert_eq!(lane.key.as_deref(), Some("k"));
    assert!(told.sentence.contains("behind seq 1"), "{}", told.sentence);
    serde_json::to_string(&told).expect("it is data");
}

#[tokio::test(start_paused = true)]
async fn the_window_then_all_in_flight() {
    let (store, options) = store();
    let bus = Bus::open(
        store,
        BusOptions {
            group_window: 2,
            ..options
        },
    )
    .expect("the options are good");
    publish(&bus, "t", 3).await;
    let subscription = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    let first = next(&subscription).await;
    let _second = next(&subscription).await;
    assert_eq!(explain(&bus).await.reason, Reason::WindowFull);
    first.ack();
    let _third = next(&subscription).await;
    assert_eq!(explain(&bus).await.reason, Reason::AllInFlight);
}
