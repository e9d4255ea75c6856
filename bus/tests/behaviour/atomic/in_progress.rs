//! What may happen between asking for a step and knowing what came of it.

use super::*;
use prombus::{AckPublishFuture, Ended, StartAt};
use std::sync::Arc;

/// A bus whose store keeps its answers back, and a member that has asked for a step on the first of two events. With
/// `fails`, the store will say that it did not take the write.
struct UnderWay {
    store: Arc<TestStore>,
    bus: Bus,
    subscription: Subscription,
    step: AckPublishFuture,
}

async fn under_way(fails: bool) -> UnderWay {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options).expect("the options are good");
    publish(&bus, "in", 2).await;
    bus.publish("out", &0, &plain()).await.expect("stored");
    let options = SubscribeOptions {
        ack_timeout_ms: Some(1_000),
        max_in_flight: 1,
        ..earliest()
    };
    let subscription = bus.subscribe("in", "g", options).await.expect("subscribed");
    let first = next(&subscription).await;
    sleep(500).await;
    store.refuse_writes(fails);
    store.hold_answers(true);
    let step = first.ack_and_publish(result(&bus, "out", 1));
    sleep(1).await;
    UnderWay {
        store,
        bus,
        subscription,
        step,
    }
}

impl UnderWay {
    /// The store answers what was asked, and works from now on.
    fn go_on(&self) {
        self.store.refuse_writes(false);
        self.store.hold_answers(false);
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_passes_meanwhile_does_not_count() {
    let world = under_way(false).await;
    let other = group(&world.bus).await;
    let second = next(&other).await;
    assert_eq!(second.event.seq(), 2);
    second.extend(600_000);
    nothing(&other, 60_000).await;
    let info = world.bus.group("in", "g").await.expect("it exists");
    assert_eq!((info.counts.expired, info.in_flight), (0, 2));
    world.go_on();
    world.step.await.expect("the write wins");
    nothing(&other, 60_000).await;
    assert_eq!(outputs(&world.bus).await, ["0", "1"]);
    assert_eq!(cursor(&world.bus).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_has_passed_counts_when_the_step_fails() {
    let world = under_way(true).await;
    sleep(60_000).await;
    world.go_on();
    let failed = world.step.await.expect_err("the store failed");
    assert_eq!(failed.kind(), "StoreFailed");
    // The lease that was over ends at once, and while its event rests there is room for the other one.
    assert_eq!(take(&world.subscription, 1).await, [2]);
    let again = next(&world.subscription).await;
    assert_eq!((again.event.seq(), again.context.attempt), (1, 2));
    assert_eq!(outputs(&world.bus).await, ["0"]);
    again
        .ack_and_publish(result(&world.bus, "out", 2))
        .await
        .expect("a step");
    assert_eq!(outputs(&world.bus).await, ["0", "2"]);
    assert_eq!(cursor(&world.bus).await, 2);
}

#[tokio::test(start_paused = true)]
async fn an_extension_meanwhile_counts_when_the_step_fails() {
    let world = under_way(true).await;
    let id = read_all(&world.bus, "in").await[0].id().into_owned();
    let control = world.subscription.control();
    let extended = control.extend_ids("in", &[&id], Some(120_000)).await;
    assert_eq!(extended, [Ok(())]);
    sleep(60_000).await;
    world.go_on();
    world.step.await.expect_err("the store failed");
    nothing(&world.subscription, 50_000).await;
    assert_eq!(take(&world.subscription, 1).await, [2]);
    let again = next(&world.subscription).await;
    assert_eq!((again.event.seq(), again.context.attempt), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_member_that_leaves_meanwhile_does_not_free_the_event() {
    for fails in [false, true] {
        let world = under_way(fails).await;
        let other = group(&world.bus).await;
        let second = next(&other).await;
        second.extend(600_000);
        drop(world.subscription);
        nothing(&other, 60_000).await;
        world.store.refuse_writes(false);
        world.store.hold_answers(false);
        if fails {
            world.step.await.expect_err("the store failed");
            let again = next(&other).await;
            assert_eq!((again.event.seq(), again.context.attempt), (1, 2));
        } else {
            world.step.await.expect("the step is made");
            nothing(&other, 60_000).await;
            assert_eq!(outputs(&world.bus).await, ["0", "1"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_member_may_leave_and_the_group_is_finished_first() {
    let world = under_way(false).await;
    drop(world.subscription);
    sleep(100).await;
    world.store.hold_answers(false);
    world.step.await.expect("the step is made");
    let again = group(&world.bus).await;
    assert_eq!(next(&again).await.event.seq(), 2);
}

#[tokio::test(start_paused = true)]
async fn whoever_does_not_wait_for_the_answer_makes_the_step_all_the_same() {
    let world = under_way(false).await;
    drop(world.step);
    world.store.hold_answers(false);
    sleep(10).await;
    assert_eq!(outputs(&world.bus).await, ["0", "1"]);
    assert_eq!(cursor(&world.bus).await, 1);
}

#[tokio::test(start_paused = true)]
async fn other_answers_for_the_event_change_nothing_meanwhile() {
    let world = under_way(true).await;
    let id = read_all(&world.bus, "in").await[0].id().into_owned();
    let control = world.subscription.control();
    let second = step_by_ids(
        &world.subscription,
        "in",
        vec![id.clone()],
        result(&world.bus, "out", 9),
    )
    .await;
    assert!(
        matches!(second, Err(AckPublishError::AlreadySettled(_))),
        "{second:?}"
    );
    assert_eq!(control.ack_ids("in", &[&id]).await, [Ok(())]);
    assert_eq!(control.nack_ids("in", &[&id], "no", None).await, [Ok(())]);
    world.go_on();
    world.step.await.expect_err("the store failed");
    assert_eq!(take(&world.subscription, 1).await, [2]);
    let again = next(&world.subscription).await;
    assert_eq!((again.event.seq(), again.context.attempt), (1, 2));
    assert_eq!(outputs(&world.bus).await, ["0"]);
}

#[tokio::test(start_paused = true)]
async fn a_seek_waits_for_the_step_under_way_and_voids_those_that_wait() {
    let world = under_way(false).await;
    let other = group(&world.bus).await;
    let second = next(&other).await;
    let waiting = second.ack_and_publish(result(&world.bus, "out", 2));
    sleep(1).await;
    world.subscription.pause();
    let bus = world.bus.clone();
    let seeking = tokio::spawn(async move { bus.seek("in", "g", StartAt::Earliest).await });
    sleep(1_000).await;
    assert!(!seeking.is_finished());
    world.store.hold_answers(false);
    world.step.await.expect("it was under way");
    assert_eq!(waiting.await.expect_err("void").kind(), "LeaseLost");
    let effect = seeking.await.expect("no panic").expect("the cursor is set");
    assert_eq!((effect.cursor, effect.redelivered), (0, 1));
    assert_eq!(outputs(&world.bus).await, ["0", "1"]);
    let mut seqs = [
        next(&other).await.event.seq(),
        next(&other).await.event.seq(),
    ];
    seqs.sort_unstable();
    assert_eq!(seqs, [1, 2], "everything comes again");
}

#[tokio::test(start_paused = true)]
async fn removing_the_group_or_its_topic_waits_for_the_step_under_way() {
    for topic_too in [false, true] {
        let world = under_way(false).await;
        let other = group(&world.bus).await;
        let waiting = next(&other)
            .await
            .ack_and_publish(result(&world.bus, "out", 2));
        sleep(1).await;
        let bus = world.bus.clone();
        let removing = tokio::spawn(async move {
            if topic_too {
                bus.delete_topic("in").await.expect("deleted");
            } else {
                bus.remove_group("in", "g").await.expect("removed");
            }
        });
        sleep(1_000).await;
        world.store.hold_answers(false);
        world.step.await.expect("it was under way");
        let refused = waiting.await.expect_err("nobody writes it any more");
        assert_eq!(refused, AckPublishError::Gone);
        removing.await.expect("no panic");
        let ended = if topic_too {
            Ended::TopicDeleted
        } else {
            Ended::GroupRemoved
        };
        assert!(other.next().await.is_none());
        assert_eq!(other.ended(), Some(ended));
        assert_eq!(outputs(&world.bus).await, ["0", "1"]);
        assert!(world.bus.group("in", "g").await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn purging_the_topic_meanwhile_changes_nothing() {
    let world = under_way(false).await;
    let bus = world.bus.clone();
    let purging = tokio::spawn(async move { bus.purge_topic("in").await });
    sleep(1).await;
    world.store.hold_answers(false);
    purging.await.expect("no panic").expect("purged");
    world.step.await.expect("the step is made");
    assert_eq!(outputs(&world.bus).await, ["0", "1"]);
    nothing(&world.subscription, 60_000).await;
}

#[tokio::test(start_paused = true)]
async fn closing_finishes_the_steps_that_were_taken_in() {
    let world = under_way(false).await;
    let other = group(&world.bus).await;
    let waiting = next(&other)
        .await
        .ack_and_publish(result(&world.bus, "out", 2));
    sleep(1).await;
    let bus = world.bus.clone();
    let closing = tokio::spawn(async move { bus.close().await });
    sleep(1_000).await;
    assert!(!closing.is_finished());
    world.store.hold_answers(false);
    world.step.await.expect("the step is made");
    waiting.await.expect("this one too");
    closing.await.expect("no panic").expect("closed");
    assert_eq!(outputs(&world.bus).await, ["0", "1", "2"]);
}
