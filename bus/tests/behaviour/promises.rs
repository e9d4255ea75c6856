//! Promises of delivery that hold across members, restarts and mistakes: lost attempts, whose option it is, seeks
//! beyond the tail, owners that panic, patterns that outlive their members.

use crate::support::*;
use prombus::error::{GroupError, SubscribeError};
use prombus::{
    Bus, BusOptions, Delivery, GroupConfig, Ordering, PublishOptions, StartAt, SubscribeOptions,
    Subscription,
};
use prombus_store::Store;

async fn subscribed(bus: &Bus, topic: &str, options: SubscribeOptions) -> Subscription {
    bus.subscribe(topic, "g", options)
        .await
        .expect("subscribed")
}

#[tokio::test(start_paused = true)]
async fn a_seek_beyond_the_tail_is_one_to_the_tail() {
    let bus = bus();
    publish(&bus, "t", 3).await;
    let subscription = subscribed(&bus, "t", earliest()).await;
    let effect = bus.seek("t", "g", StartAt::Seq(50)).await.expect("sought");
    assert_eq!((effect.cursor, effect.beyond_tail), (3, true));
    publish_one(&bus, "t", 4).await;
    assert_eq!(take(&subscription, 1).await, [4]);
    let effect = bus.seek("t", "g", StartAt::Seq(2)).await.expect("sought");
    assert_eq!((effect.cursor, effect.beyond_tail), (1, false));
}

#[tokio::test(start_paused = true)]
async fn members_that_leave_do_not_kill_an_event_before_they_are_many() {
    let bus = bus();
    publish(&bus, "t", 1).await;
    for attempt in 1..=20 {
        let subscription = subscribed(&bus, "t", earliest()).await;
        let delivery = next(&subscription).await;
        assert_eq!(delivery.context.attempt, attempt);
        assert!(bus.topic("dlq.t").is_err(), "after {attempt} attempts");
        drop(subscription);
        sleep(200).await;
    }
    let letters = read_all(&bus, "dlq.t").await;
    assert_eq!(letters.len(), 1, "the twentieth was one too many");
}

#[tokio::test(start_paused = true)]
async fn a_failure_behind_lost_attempts_counts_them() {
    let (store, options) = store();
    publish(
        &Bus::open(store.clone(), options.clone()).expect("good"),
        "t",
        1,
    )
    .await;
    for attempt in 1..=6 {
        let bus = Bus::open(store.clone(), options.clone()).expect("good");
        let subscription = subscribed(&bus, "t", earliest()).await;
        let delivery = next(&subscription).await;
        assert_eq!(delivery.context.attempt, attempt);
        bus.close().await.expect("closed");
    }
    let bus = Bus::open(store, options).expect("good");
    assert!(bus.topic("dlq.t").is_err(), "restarts alone");
    let subscription = subscribed(&bus, "t", earliest()).await;
    next(&subscription).await.nack("no");
    sleep(200).await;
    assert_eq!(read_all(&bus, "dlq.t").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn leases_are_as_long_as_their_own_member_asks() {
    let bus = bus();
    let with_timeout = |ms| SubscribeOptions {
        ack_timeout_ms: Some(ms),
        max_in_flight: 1,
        ..earliest()
    };
    let first = subscribed(&bus, "t", with_timeout(1_000)).await;
    let second = subscribed(&bus, "t", with_timeout(9_000)).await;
    publish(&bus, "t", 2).await;
    let deadline_ms = |delivery: Delivery| delivery.context.ack_deadline_ms;
    assert_eq!(deadline_ms(next(&first).await), 1_000);
    assert_eq!(deadline_ms(next(&second).await), 9_000);
}

#[tokio::test(start_paused = true)]
async fn what_belongs_to_the_group_is_changed_only_on_purpose() {
    let bus = bus();
    let with_attempts = |count| SubscribeOptions {
        max_attempts: count,
        ..earliest()
    };
    let first = subscribed(&bus, "t", with_attempts(Some(2))).await;
    drop(subscribed(&bus, "t", with_attempts(None)).await);
    drop(subscribed(&bus, "t", with_attempts(Some(2))).await);
    let refused = bus.subscribe("t", "g", with_attempts(Some(3))).await;
    let error = refused.expect_err("it has another");
    assert_eq!(error.kind(), "GroupMismatch");
    let SubscribeError::Group(GroupError::GroupMismatch(mismatch)) = error else {
        panic!("{error:?}");
    };
    assert_eq!(mismatch.field, "max_attempts");
    let by_key = SubscribeOptions {
        ordering: Some(Ordering::Key),
        ..earliest()
    };
    let refused = bus.subscribe("t", "g", by_key).await;
    assert_eq!(refused.expect_err("it has another").kind(), "GroupMismatch");
    let config = GroupConfig {
        max_attempts: Some(3),
        ..GroupConfig::default()
    };
    bus.configure_group("t", "g", &config)
        .await
        .expect("changed");
    drop(subscribed(&bus, "t", with_attempts(Some(3))).await);
    assert_eq!(
        bus.group("t", "g").await.expect("it exists").max_attempts,
        3
    );
    drop(first);
}

#[tokio::test(start_paused = true)]
async fn a_topic_made_while_no_member_is_there_is_followed_from_its_first_event() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options.clone()).expect("good");
    publish(&bus, "a.old", 2).await;
    let latest = SubscribeOptions::default;
    drop(subscribed(&bus, "a.*", latest()).await);
    publish(&bus, "a.new", 1).await;
    bus.close().await.expect("closed");
    let bus = Bus::open(store, options).expect("good");
    publish(&bus, "a.newer", 1).await;
    let subscription = subscribed(&bus, "a.*", latest()).await;
    publish_one(&bus, "a.old", 3).await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        let delivery = next(&subscription).await;
        seen.push((delivery.event.topic().to_owned(), delivery.event.seq()));
        delivery.ack();
    }
    seen.sort_unstable();
    let expected = [("a.new", 1), ("a.newer", 1), ("a.old", 3)];
    assert_eq!(seen, expected.map(|(topic, seq)| (topic.to_owned(), seq)));
    nothing(&subscription, 1_000).await;
}

#[tokio::test(start_paused = true)]
async fn a_pattern_goes_on_after_one_of_its_groups_is_removed() {
    let bus = bus();
    let subscription = subscribed(&bus, "a.*", earliest()).await;
    publish(&bus, "a.x", 1).await;
    assert_eq!(take(&subscription, 1).await, [1]);
    bus.remove_group("a.x", "g").await.expect("removed");
    assert_eq!(take(&subscription, 1).await, [1], "it begins anew");
    publish(&bus, "a.y", 1).await;
    assert_eq!(take(&subscription, 1).await, [1]);
    bus.remove_group("a.*", "g").await.expect("removed");
    assert!(subscription.next().await.is_none());
    let again = bus.remove_group("a.*", "g").await;
    assert!(matches!(again, Err(GroupError::UnknownGroup(_))));
}

#[tokio::test(start_paused = true)]
async fn a_late_acknowledgement_after_a_restart_counts() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options.clone()).expect("good");
    publish(&bus, "t", 9).await;
    let subscription = subscribed(&bus, "t", earliest()).await;
    let mut ids = Vec::new();
    for _ in 0..9 {
        ids.push(next(&subscription).await.event.id().into_owned());
    }
    bus.close().await.expect("closed");
    let bus = Bus::open(store, options).expect("good");
    let one_at_a_time = SubscribeOptions {
        max_in_flight: 1,
        ..earliest()
    };
    let subscription = subscribed(&bus, "t", one_at_a_time).await;
    let late = subscription.control().ack_ids("t", &[&ids[6]]).await;
    assert_eq!(late, [Ok(())], "no member holds it");
    assert_eq!(take(&subscription, 8).await, [1, 2, 3, 4, 5, 6, 8, 9]);
}

#[tokio::test(start_paused = true)]
async fn a_poisoned_key_stops_no_other_and_keeps_its_order() {
    let (store, options) = store();
    let options = BusOptions {
        group_window: 16,
        ..options
    };
    let bus = Bus::open(store.clone(), options.clone()).expect("good");
    let by_key = || SubscribeOptions {
        ordering: Some(Ordering::Key),
        ..earliest()
    };
    for _ in 0..100 {
        bus.publish("t", &1, &key("poison")).await.expect("stored");
    }
    bus.publish("t", &1, &key("other")).await.expect("stored");
    let subscription = subscribed(&bus, "t", by_key()).await;
    next(&subscription).await.nack_after("no", 60_000);
    assert_eq!(take(&subscription, 1).await, [101]);
    sleep(200).await;
    assert_eq!(bus.group("t", "g").await.expect("it exists").lag, 100);
    // What waits is not lost with the owner.
    bus.close().await.expect("closed");
    let bus = Bus::open(store, options).expect("good");
    let subscription = subscribed(&bus, "t", by_key()).await;
    let expected: Vec<u64> = (1..=100).collect();
    let mut seqs = Vec::new();
    for _ in 0..100 {
        let delivery =
            tokio::time::timeout(std::time::Duration::from_secs(120), subscription.next());
        let delivery = delivery.await.expect("one comes").expect("it goes on");
        seqs.push(delivery.event.seq());
        delivery.ack();
    }
    assert_eq!(seqs, expected);
    let info = bus.group("t", "g").await.expect("it exists");
    assert_eq!((info.lag, info.cursor), (0, 101));
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_panics_is_replaced() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options).expect("good");
    let subscription = subscribed(&bus, "t", earliest()).await;
    publish(&bus, "t", 1).await;
    let held = next(&subscription).await;
    store.panic_on_read();
    publish(&bus, "t", 1).await;
    sleep(3_000).await;
    held.ack();
    let mut seqs = Vec::new();
    while seqs.len() < 2 {
        let delivery = next(&subscription).await;
        seqs.push(delivery.event.seq());
        delivery.ack();
    }
    assert_eq!(seqs, [1, 2], "the lease ended with the owner");
    let explanation = bus.explain("t", "g").await.expect("it exists");
    let panic = explanation.panicked.expect("it is told");
    assert!(panic.contains("the test says so"), "{panic}");
    assert!(explanation.sentence.contains("panicked"));
    let members = explanation.group.members;
    assert_eq!(members[0].room, members[0].max_in_flight);
}

#[tokio::test(start_paused = true)]
async fn an_acknowledgement_during_a_write_is_written_in_time() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options).expect("good");
    publish(&bus, "t", 2).await;
    let subscription = subscribed(&bus, "t", earliest()).await;
    let (first, second) = (next(&subscription).await, next(&subscription).await);
    sleep(300).await;
    first.ack();
    store.hold_answers(true);
    sleep(110).await;
    second.ack();
    sleep(70).await;
    store.hold_answers(false);
    sleep(31).await;
    let stored = store.get("group/t/g").await.expect("read").expect("stored");
    let record: serde_json::Value = serde_json::from_slice(&stored.value).expect("JSON");
    assert_eq!(record["cursor"], 2, "101 ms after it was acknowledged");
}

#[tokio::test(start_paused = true)]
async fn what_was_purged_is_no_lag() {
    let bus = bus();
    publish(&bus, "t", 5).await;
    let subscription = subscribed(&bus, "t", earliest()).await;
    let held = next(&subscription).await;
    drop(subscription);
    bus.purge_topic("t").await.expect("purged");
    assert_eq!(bus.group("t", "g").await.expect("it exists").lag, 0);
    publish(&bus, "t", 2).await;
    assert_eq!(bus.lag("t", "g").await.expect("it exists").lag, 2);
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_refused_step_makes_no_topic() {
    let bus = bus();
    publish(&bus, "t", 1).await;
    let own = |id| PublishOptions {
        id: Some(id),
        ..PublishOptions::default()
    };
    bus.publish("taken", &1, &own("x")).await.expect("stored");
    let subscription = subscribed(&bus, "t", earliest()).await;
    let delivery = next(&subscription).await;
    let mut batch = bus.batch();
    batch.add_value("fresh", &1, &plain());
    batch.add_value("taken", &2, &own("x"));
    let refused = delivery.ack_and_publish(batch).await;
    assert!(refused.is_err());
    assert!(bus.topic("fresh").is_err(), "nothing of it happened");
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_is_deleted_and_made_again_is_delivered_from_its_first_event() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options).expect("good");
    publish(&bus, "t", 3).await;
    let subscription = subscribed(&bus, "t", earliest()).await;
    take(&subscription, 3).await;
    sleep(200).await;
    let stale = store.get("group/t/g").await.expect("read").expect("stored");
    bus.delete_topic("t").await.expect("deleted");
    // As a member leaves it that has joined between the listing and the deletion.
    let mut batch = prombus_store::Batch::new();
    batch.change(prombus_store::Change::Put {
        key: "group/t/g".into(),
        value: stale.value,
        expect: prombus_store::Expect::Any,
    });
    Store::commit(&*store, batch).await.expect("stored");
    publish(&bus, "t", 2).await;
    let subscription = subscribed(&bus, "t", earliest()).await;
    assert_eq!(take(&subscription, 2).await, [1, 2]);
}
