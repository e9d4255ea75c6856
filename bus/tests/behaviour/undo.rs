//! Undoing a seek: position, settled events and attempts as before it, once.

use crate::support::*;
use prombus::{
    Bus, BusOptions, Delivery, Ordering, SeekEffect, StartAt, SubscribeOptions, Subscription,
};

fn effect(cursor: u64, redelivered: u64, skipped: u64) -> SeekEffect {
    SeekEffect {
        cursor,
        redelivered,
        skipped,
        beyond_tail: false,
    }
}

/// Acknowledges these positions of what comes, and returns the rest.
async fn ack_only(subscription: &Subscription, count: usize, seqs: &[u64]) -> Vec<Delivery> {
    let mut held = Vec::new();
    for _ in 0..count {
        let delivery = next(subscription).await;
        if seqs.contains(&delivery.event.seq()) {
            delivery.ack_confirmed().await.expect("it is held")
        } else {
            held.push(delivery)
        }
    }
    held
}

#[tokio::test(start_paused = true)]
async fn a_group_goes_on_where_it_was_also_after_a_restart() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options.clone()).expect("good options");
    publish(&bus, "t", 10).await;
    let subscription = bus.subscribe("t", "g", earliest()).await.expect("joined");
    // 1, 2, 5 and 6 are settled, 4 has failed and waits, the others are held.
    let mut held = ack_only(&subscription, 10, &[1, 2, 5, 6]).await;
    held.remove(1).nack_after("later", 30_000);
    let back = bus.seek("t", "g", StartAt::Earliest).await;
    assert_eq!(back, Ok(effect(0, 4, 0)));
    store.die_after(0, false);
    drop((held, subscription, bus));
    store.revive();

    let bus = Bus::open(store.clone(), options.clone()).expect("good options");
    let undone = bus.undo_seek("t", "g").await;
    assert_eq!(undone, Ok(effect(2, 0, 4)));
    let again = bus.undo_seek("t", "g").await;
    let again = again.expect_err("once only");
    assert_eq!(again.kind(), "NothingToUndo");
    assert!(!again.is_retryable());
    store.die_after(0, false);
    drop(bus);
    store.revive();

    let bus = Bus::open(store, options).expect("good options");
    let subscription = bus.subscribe("t", "g", earliest()).await.expect("joined");
    let mut came = Vec::new();
    for _ in 0..6 {
        let delivery = next(&subscription).await;
        came.push((delivery.event.seq(), delivery.context.attempt));
        delivery.ack();
    }
    came.sort_unstable();
    assert_eq!(came, [(3, 2), (4, 2), (7, 2), (8, 2), (9, 2), (10, 2)]);
    nothing(&subscription, 1_000).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_settled_since_stays_settled() {
    let bus = bus();
    publish(&bus, "t", 6).await;
    let subscription = bus.subscribe("t", "g", earliest()).await.expect("joined");
    take(&subscription, 2).await;
    let skipped = bus.seek("t", "g", StartAt::Latest).await;
    assert_eq!(skipped, Ok(effect(6, 0, 4)));
    publish(&bus, "t", 3).await;
    // 7 and 9 are settled after the seek, 8 is not.
    let held = next(&subscription).await;
    held.ack_confirmed().await.expect("it is held");
    let held = next(&subscription).await;
    next(&subscription)
        .await
        .ack_confirmed()
        .await
        .expect("held");
    let undone = bus.undo_seek("t", "g").await;
    assert_eq!(undone, Ok(effect(2, 4, 0)));
    let void = held.ack_confirmed().await;
    assert_eq!(void.map_err(|error| error.kind()), Err("LeaseLost"));
    assert_eq!(take(&subscription, 5).await, [3, 4, 5, 6, 8]);
    nothing(&subscription, 1_000).await;
    let info = bus.group("t", "g").await.expect("it exists");
    assert_eq!((info.cursor, info.lag), (9, 0));
}

#[tokio::test(start_paused = true)]
async fn only_the_last_seek_is_undone_and_a_dry_run_is_none() {
    let bus = bus();
    publish(&bus, "t", 9).await;
    let subscription = bus.subscribe("t", "g", earliest()).await.expect("joined");
    take(&subscription, 4).await;
    drop(subscription);
    sleep(1_000).await;
    let seek = async |seq| bus.seek("t", "g", StartAt::Seq(seq)).await.expect("sought");
    seek(8).await;
    seek(3).await;
    let dry = bus.seek_dry_run("t", "g", StartAt::Latest).await;
    dry.expect("it exists");
    assert_eq!(bus.undo_seek("t", "g").await, Ok(effect(7, 0, 5)));
    let again = bus.undo_seek("t", "g").await;
    assert_eq!(again.map_err(|error| error.kind()), Err("NothingToUndo"));
    let cursor = bus.cursor("t", "g").await.expect("it exists");
    assert_eq!(cursor.last_seq, 7);
}

#[tokio::test(start_paused = true)]
async fn too_much_settled_since_is_refused_with_the_limit() {
    let (store, options) = store();
    let options = BusOptions {
        max_undo_settled: 3,
        ..options
    };
    let bus = Bus::open(store.clone(), options.clone()).expect("good options");
    publish(&bus, "t", 9).await;
    let subscription = bus.subscribe("t", "g", earliest()).await.expect("joined");
    take(&subscription, 9).await;
    bus.seek("t", "g", StartAt::Earliest).await.expect("sought");
    take(&subscription, 3).await;
    drop(subscription);
    bus.undo_seek("t", "g").await.expect("three are fine");
    bus.seek("t", "g", StartAt::Earliest).await.expect("sought");
    let subscription = bus.subscribe("t", "g", earliest()).await.expect("joined");
    take(&subscription, 4).await;
    drop(subscription);
    let refused = bus.undo_seek("t", "g").await.expect_err("too much");
    let told = "group g of topic t has settled 4 events since the seek, more than the 3 (max_undo_settled) up to \
                which it can be undone; set the cursor instead";
    assert_eq!(refused.to_string(), told);
    bus.close().await.expect("closed");
    let bus = Bus::open(store, options).expect("good options");
    let refused = bus.undo_seek("t", "g").await.expect_err("too much");
    assert_eq!(refused.to_string(), told, "also after a restart");
    let cursor = bus.cursor("t", "g").await.expect("it exists");
    assert_eq!(cursor.last_seq, 4, "nothing changed");
}

#[tokio::test(start_paused = true)]
async fn a_seek_below_what_is_kept_can_be_undone() {
    let (store, options) = store();
    let options = BusOptions {
        max_undo_settled: 3,
        ..options
    };
    let bus = Bus::open(store, options).expect("good options");
    publish(&bus, "t", 9).await;
    bus.purge_topic("t").await.expect("it exists");
    publish(&bus, "t", 2).await;
    let subscription = bus.subscribe("t", "g", earliest()).await.expect("joined");
    take(&subscription, 2).await;
    bus.seek("t", "g", StartAt::Seq(1)).await.expect("sought");
    assert_eq!(take(&subscription, 1).await, [10]);
    assert_eq!(bus.undo_seek("t", "g").await, Ok(effect(11, 0, 1)));
    nothing(&subscription, 1_000).await;
}

#[tokio::test(start_paused = true)]
async fn events_that_wait_behind_their_key_are_not_lost() {
    for back_to in [Ordering::Key, Ordering::None] {
        let (store, options) = store();
        let options = BusOptions {
            group_window: 4,
            ..options
        };
        let bus = Bus::open(store, options).expect("good options");
        let options = || SubscribeOptions {
            ordering: None,
            ..earliest()
        };
        let by_key = SubscribeOptions {
            ordering: Some(Ordering::Key),
            ..earliest()
        };
        let subscription = bus.subscribe("t", "g", by_key).await.expect("joined");
        for key_of in ["a", "a", "a", "a", "a", "b", "c", "a", "d"] {
            bus.publish("t", &1, &key(key_of)).await.expect("stored");
        }
        // The first event of `a` is held, and those behind it leave the window.
        let held = next(&subscription).await;
        assert_eq!(take(&subscription, 3).await, [6, 7, 9]);
        bus.seek("t", "g", StartAt::Latest).await.expect("sought");
        drop((held, subscription));
        let config = prombus::GroupConfig {
            ordering: Some(back_to),
            ..prombus::GroupConfig::default()
        };
        bus.configure_group("t", "g", &config).await.expect("set");
        let undone = bus.undo_seek("t", "g").await.expect("undone");
        assert_eq!((undone.cursor, undone.skipped), (0, 0));
        let subscription = bus.subscribe("t", "g", options()).await.expect("joined");
        let mut came = Vec::new();
        while let Ok(Some(delivery)) =
            tokio::time::timeout(std::time::Duration::from_secs(5), subscription.next()).await
        {
            came.push(delivery.event.seq());
            delivery.ack();
        }
        came.sort_unstable();
        for seq in [1, 2, 3, 4, 5, 8] {
            assert!(came.contains(&seq), "{back_to:?} {came:?}");
        }
        if back_to == Ordering::Key {
            assert_eq!(came, [1, 2, 3, 4, 5, 8]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_to_undo_in_a_new_group_or_incarnation() {
    let bus = bus();
    publish(&bus, "t", 2).await;
    let unknown = bus.undo_seek("t", "g").await;
    assert_eq!(unknown.map_err(|error| error.kind()), Err("UnknownGroup"));
    drop(bus.subscribe("t", "g", earliest()).await.expect("joined"));
    let fresh = bus.undo_seek("t", "g").await;
    assert_eq!(fresh.map_err(|error| error.kind()), Err("NothingToUndo"));
    bus.seek("t", "g", StartAt::Latest).await.expect("sought");
    bus.delete_topic("t").await.expect("deleted");
    publish(&bus, "t", 2).await;
    drop(bus.subscribe("t", "g", earliest()).await.expect("joined"));
    let other = bus.undo_seek("t", "g").await;
    assert_eq!(other.map_err(|error| error.kind()), Err("NothingToUndo"));
}
