//! Writes that the store answers with a failure although they happened, as when an fsync fails and the store opens itself
//! anew: the group goes on behind them, and nothing is done twice.

use crate::support::*;
use prombus::{Bus, SubscribeOptions};

#[tokio::test(start_paused = true)]
async fn a_flush_that_failed_and_happened_is_no_other_owner() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options.clone()).expect("the options are good");
    publish(&bus, "t", 6).await;
    let subscription = bus.subscribe("t", "g", earliest()).await;
    let subscription = subscription.expect("subscribed");
    take(&subscription, 2).await;
    store.fail_commit(0, CommitFault::Denied);
    sleep(110).await;
    assert!(!store.has_fault(), "the group was written down");
    assert_eq!(take(&subscription, 2).await, [3, 4]);
    // While it rests some writes are refused, and then they are taken again.
    store.refuse_writes(true);
    sleep(5_000).await;
    store.refuse_writes(false);
    sleep(60_000).await;
    assert_eq!(take(&subscription, 2).await, [5, 6]);
    sleep(60_000).await;
    drop((bus, subscription));
    sleep(1).await;

    let bus = Bus::open(store, options).expect("the options are good");
    let cursor = bus.cursor("t", "g").await.expect("it exists");
    assert_eq!(cursor.last_seq, 6, "all is written down");
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_that_failed_and_happened_is_there_once() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options).expect("the options are good");
    publish(&bus, "t", 2).await;
    let once = SubscribeOptions {
        max_attempts: Some(1),
        ..earliest()
    };
    let subscription = bus.subscribe("t", "g", once).await.expect("subscribed");
    let first = next(&subscription).await;
    sleep(200).await;
    store.fail_commit(0, CommitFault::Denied);
    first.nack("it fails");
    sleep(110).await;
    assert!(!store.has_fault(), "the letter was written");
    sleep(60_000).await;
    assert_eq!(take(&subscription, 1).await, [2]);
    sleep(60_000).await;
    let letters = read_all(&bus, "dlq.t").await;
    assert_eq!(letters.len(), 1, "{letters:?}");
    let cursor = bus.cursor("t", "g").await.expect("it exists");
    assert_eq!(cursor.last_seq, 2);
}
