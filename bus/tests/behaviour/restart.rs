//! Restarts: what a clean stop keeps, what a crash may lose, and that two owners never both win.

use crate::support::*;
use prombus::{Bus, Ended, Filter, SubscribeOptions};
use std::sync::Arc;

#[tokio::test(start_paused = true)]
async fn nothing_acknowledged_comes_again_after_a_clean_stop() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options.clone()).expect("the options are good");
    publish(&bus, "t", 6).await;
    let subscription = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(next(&subscription).await);
    }
    held.remove(3).ack();
    held.remove(1).ack();
    held.remove(1).nack_after("later", 60_000);
    bus.close().await.expect("closed");

    let bus = Bus::open(store, options).expect("the options are good");
    let subscription = bus
        .subscribe("t", "g", SubscribeOptions::default())
        .await
        .expect("subscribed");
    let mut seen = Vec::new();
    for _ in 0..3 {
        let delivery = next(&subscription).await;
        seen.push((delivery.event.seq(), delivery.context.attempt));
        delivery.ack();
    }
    assert_eq!(
        seen,
        [(1, 2), (5, 1), (6, 1)],
        "1 was under way and counts, 5 and 6 were not looked at"
    );
    nothing(&subscription, 50_000).await;
    let third = next(&subscription).await;
    assert_eq!(
        (third.event.seq(), third.context.attempt),
        (3, 2),
        "its delay was kept"
    );
}

#[tokio::test(start_paused = true)]
async fn a_crash_loses_only_the_last_moments() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options.clone()).expect("the options are good");
    publish(&bus, "t", 3).await;
    let subscription = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    take(&subscription, 1).await;
    sleep(110).await;
    store.refuse_writes(true);
    take(&subscription, 1).await;
    sleep(110).await;
    assert_eq!(
        bus.cursor("t", "g").await.expect("it exists").last_seq,
        2,
        "it goes on in memory"
    );
    drop((bus, subscription));
    sleep(1).await;
    store.refuse_writes(false);

    let bus = Bus::open(store, options).expect("the options are good");
    let subscription = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    let second = next(&subscription).await;
    assert_eq!(
        (second.event.seq(), second.context.attempt),
        (2, 2),
        "its delivery had been written"
    );
}

#[tokio::test(start_paused = true)]
async fn changes_are_written_within_the_flush_time_and_together() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options.clone()).expect("the options are good");
    publish(&bus, "t", 50).await;
    let subscription = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    let commits = || store.commits.load(std::sync::atomic::Ordering::SeqCst);
    let before = commits();
    take(&subscription, 50).await;
    sleep(101).await;
    assert!(commits() - before <= 2, "{}", commits() - before);
    let record = store_record(&store, "group/t/g").await;
    assert_eq!(record["cursor"], 50);
    let settled = commits();
    sleep(60_000).await;
    assert_eq!(commits(), settled, "nothing changes, nothing is written");
}

#[tokio::test(start_paused = true)]
async fn settings_are_kept() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options.clone()).expect("the options are good");
    let explicit = SubscribeOptions {
        ack_timeout_ms: Some(1_234),
        max_attempts: Some(7),
        ordering: Some(prombus::Ordering::Key),
        filter: Some(Filter::Fields(prombus::FieldFilter {
            tags: vec!["#a".into()],
            ..Default::default()
        })),
        ..earliest()
    };
    drop(bus.subscribe("t", "g", explicit).await.expect("subscribed"));
    bus.close().await.expect("closed");
    let bus = Bus::open(store, options).expect("the options are good");
    let info = bus.group("t", "g").await.expect("it exists");
    assert_eq!((info.ack_timeout_ms, info.max_attempts), (1_234, 7));
    assert_eq!(info.ordering, prombus::Ordering::Key);
    let other = SubscribeOptions {
        max_attempts: Some(9),
        ..earliest()
    };
    let refused = bus.subscribe("t", "g", other).await;
    assert_eq!(refused.expect_err("it has 7").kind(), "GroupMismatch");
    let subscription = bus.subscribe("t", "g", earliest()).await;
    let subscription = subscription.expect("subscribed");
    publish(&bus, "t", 1).await;
    nothing(&subscription, 100).await;
}

#[tokio::test(start_paused = true)]
async fn of_two_owners_only_one_wins() {
    let (store, options) = store();
    let one = Bus::open(store.clone(), options.clone()).expect("the options are good");
    let two = Bus::open(store, options).expect("the options are good");
    publish(&one, "t", 2).await;
    let first = one
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    let second = two
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    take(&first, 1).await;
    sleep(200).await;
    take(&second, 1).await;
    sleep(200).await;
    let ended: Vec<Option<Ended>> = vec![first.ended(), second.ended()];
    assert_eq!(
        ended
            .iter()
            .filter(|ended| **ended == Some(Ended::TakenOver))
            .count(),
        1,
        "{ended:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_damaged_record_is_refused_and_left_as_it_is() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options).expect("the options are good");
    for text in [
        "{",
        "{\"version\":99,\"created_ms\":0,\"cursor\":0,\"settings\":{\"ack_timeout_ms\":1,\"max_attempts\":1,\"ordering\":\"none\"}}",
    ] {
        let mut batch = prombus_store::Batch::new();
        batch.change(prombus_store::Change::Put {
            key: "group/t/g".into(),
            value: text.as_bytes().into(),
            expect: prombus_store::Expect::Any,
        });
        prombus::Store::commit(&*store, batch)
            .await
            .expect("stored");
        let error = bus
            .subscribe("t", "g", earliest())
            .await
            .expect_err("damaged");
        assert!(error.to_string().contains("damaged"), "{error}");
        let record = prombus::Store::get(&*store, "group/t/g")
            .await
            .expect("read")
            .expect("there");
        assert_eq!(&*record.value, text.as_bytes());
    }
}

async fn store_record(store: &Arc<TestStore>, key: &str) -> serde_json::Value {
    let record = prombus::Store::get(&**store, key)
        .await
        .expect("it can be read")
        .expect("it is there");
    serde_json::from_slice(&record.value).expect("JSON")
}
