//! Leases: time-outs, backoff, extension, lost members and late answers.

use crate::support::*;
use prombus::SubscribeOptions;
use prombus::error::SettleError;

#[tokio::test(start_paused = true)]
async fn a_lease_that_runs_out_brings_the_event_back() {
    let bus = bus();
    publish(&bus, "t", 1).await;
    let options = SubscribeOptions {
        ack_timeout_ms: Some(5_000),
        ..earliest()
    };
    let subscription = bus.subscribe("t", "g", options).await.expect("subscribed");
    let first = next(&subscription).await;
    assert_eq!(
        (first.context.attempt, first.context.ack_deadline_ms),
        (1, 5_000)
    );
    nothing(&subscription, 4_990).await;
    let second = next(&subscription).await;
    assert_eq!((second.event.seq(), second.context.attempt), (1, 2));
    let info = bus.group("t", "g").await.expect("it exists");
    assert_eq!((info.counts.expired, info.counts.redelivered), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn nacks_wait_twice_as_long_each_time() {
    let bus = bus();
    publish(&bus, "t", 1).await;
    let subscription = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    let mut delivery = next(&subscription).await;
    for (attempt, full_ms) in [(2, 20), (3, 40), (4, 80), (5, 160)] {
        let before = tokio::time::Instant::now();
        delivery.nack("not yet");
        delivery = next(&subscription).await;
        let waited_ms = before.elapsed().as_millis();
        assert_eq!(delivery.context.attempt, attempt);
        assert!(
            (full_ms * 3 / 4..=full_ms + 2).contains(&waited_ms),
            "{waited_ms}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_nack_may_name_its_delay() {
    let bus = bus();
    publish(&bus, "t", 1).await;
    let subscription = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    next(&subscription).await.nack_after("later", 7_000);
    nothing(&subscription, 6_990).await;
    assert_eq!(next(&subscription).await.context.attempt, 2);
}

#[tokio::test(start_paused = true)]
async fn an_extension_moves_the_deadline() {
    let bus = bus();
    publish(&bus, "t", 1).await;
    let options = SubscribeOptions {
        ack_timeout_ms: Some(5_000),
        ..earliest()
    };
    let subscription = bus.subscribe("t", "g", options).await.expect("subscribed");
    let delivery = next(&subscription).await;
    sleep(4_000).await;
    delivery.extend(10_000);
    nothing(&subscription, 9_900).await;
    assert_eq!(
        delivery.extend_confirmed(0).await,
        Ok(()),
        "a second at least"
    );
    nothing(&subscription, 990).await;
    let again = next(&subscription).await;
    assert_eq!(again.context.attempt, 2);
    assert_eq!(
        delivery
            .extend_confirmed(1)
            .await
            .map_err(|error| error.kind()),
        Err("LeaseLost")
    );
}

#[tokio::test(start_paused = true)]
async fn a_lost_member_frees_its_events_at_once() {
    let bus = bus();
    publish(&bus, "t", 3).await;
    let one = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    let seen = next(&one).await;
    let two = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    nothing(&two, 100).await;
    drop(one);
    let mut attempts = Vec::new();
    for _ in 0..3 {
        let delivery = next(&two).await;
        attempts.push((delivery.event.seq(), delivery.context.attempt));
        delivery.ack();
    }
    assert_eq!(
        attempts,
        [(1, 2), (2, 1), (3, 1)],
        "only what was seen counts"
    );
    assert_eq!(
        seen.ack_confirmed().await,
        Ok(()),
        "it is settled already, which is fine"
    );
}

#[tokio::test(start_paused = true)]
async fn late_answers_follow_the_rules() {
    let bus = bus();
    publish(&bus, "t", 2).await;
    let options = SubscribeOptions {
        ack_timeout_ms: Some(1_000),
        max_in_flight: 1,
        ..earliest()
    };
    let one = bus
        .subscribe("t", "g", options.clone())
        .await
        .expect("subscribed");
    let late = next(&one).await;
    sleep(1_001).await;
    assert_eq!(late.ack_confirmed().await, Ok(()), "nobody else holds it");

    let late = next(&one).await;
    let two = bus.subscribe("t", "g", options).await.expect("subscribed");
    one.pause();
    let held = next(&two).await;
    assert_eq!((late.event.seq(), held.event.seq()), (2, 2));
    assert!(matches!(
        late.ack_confirmed().await,
        Err(SettleError::LeaseLost(_))
    ));
    assert_eq!(held.ack_confirmed().await, Ok(()));
    assert_eq!(bus.cursor("t", "g").await.expect("it exists").last_seq, 2);
}

#[tokio::test(start_paused = true)]
async fn events_are_settled_by_id() {
    let bus = bus();
    let first = publish_one(&bus, "t", 1).await;
    let own = prombus::PublishOptions {
        id: Some("own"),
        ..plain()
    };
    bus.publish("t", &2, &own).await.expect("stored");
    let third = publish_one(&bus, "t", 3).await;
    let subscription = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    let control = subscription.control();
    for _ in 0..3 {
        let _ = next(&subscription).await;
    }
    let codes = |results: Vec<Result<(), SettleError>>| -> Vec<&str> {
        results
            .iter()
            .map(|result| result.as_ref().map_or_else(|error| error.kind(), |()| "ok"))
            .collect()
    };
    let ids = [first.id.as_str(), "own", "nobody", first.id.as_str()];
    assert_eq!(
        codes(control.ack_ids("t", &ids).await),
        ["ok", "ok", "UnknownId", "ok"]
    );
    assert_eq!(
        codes(
            control
                .extend_ids("t", &["own", third.id.as_str()], Some(1))
                .await
        ),
        ["UnknownId", "ok"]
    );
    assert_eq!(
        codes(
            control
                .nack_ids("t", &[third.id.as_str(), "own"], "no", Some(0))
                .await
        ),
        ["ok", "ok"]
    );
    assert_eq!(next(&subscription).await.context.attempt, 2);
    assert_eq!(codes(control.ack_ids("other", &["own"]).await), ["Gone"]);
}

#[tokio::test(start_paused = true)]
async fn what_lies_unseen_in_a_slow_subscription_never_counts() {
    let bus = bus();
    publish(&bus, "t", 2).await;
    let options = SubscribeOptions {
        ack_timeout_ms: Some(1_000),
        max_attempts: Some(2),
        ..earliest()
    };
    let subscription = bus.subscribe("t", "g", options).await.expect("subscribed");
    sleep(60_000).await;
    let first = next(&subscription).await;
    assert_eq!((first.event.seq(), first.context.attempt), (1, 1));
    assert_eq!(
        bus.group("t", "g").await.expect("it exists").counts.expired,
        0
    );
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_settled_before_its_turn_takes_no_room() {
    let bus = bus();
    let mut ids = Vec::new();
    for number in 1..=3 {
        ids.push(publish_one(&bus, "t", number).await.id.to_string());
    }
    // A filter reads further ahead than there is room for.
    let options = SubscribeOptions {
        max_in_flight: 1,
        filter: Some(prombus::Filter::function(|_| true)),
        ..earliest()
    };
    let subscription = bus.subscribe("t", "g", options).await.expect("subscribed");
    let first = next(&subscription).await;
    let results = subscription
        .control()
        .ack_ids("t", &[&ids[1], &ids[2]])
        .await;
    assert_eq!(results, [Ok(()), Ok(())]);
    first.ack();
    publish_one(&bus, "t", 4).await;
    assert_eq!(take(&subscription, 1).await, [4]);
}
