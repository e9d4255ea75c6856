//! Steps that come at about the same time share a write, and only the guilty one fails.

use super::*;
use std::sync::atomic::Ordering;

#[tokio::test(start_paused = true)]
async fn steps_that_come_while_a_write_is_under_way_share_the_next() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options).expect("the options are good");
    publish(&bus, "in", 200).await;
    bus.publish("out", &0, &plain()).await.expect("stored");
    let subscription = group(&bus).await;
    let mut deliveries = Vec::new();
    while deliveries.len() < 200 {
        deliveries.extend(subscription.next_batch(200).await);
    }
    let before = store.commits.load(Ordering::SeqCst);
    store.hold_answers(true);
    let steps: Vec<_> = deliveries
        .into_iter()
        .map(|delivery| {
            let batch = result(&bus, "out", delivery.event.seq());
            delivery.ack_and_publish(batch)
        })
        .collect();
    sleep(10).await;
    store.hold_answers(false);
    let mut seqs = Vec::new();
    for step in steps {
        seqs.push(step.await.expect("a step")[0].seq);
    }
    assert!(seqs.is_sorted(), "in the order they were asked for");
    let commits = store.commits.load(Ordering::SeqCst) - before;
    assert!(commits <= 4, "{commits} commits for 200 steps");
    assert_eq!(outputs(&bus).await.len(), 201);
    assert_eq!(cursor(&bus).await, 200);
}

#[tokio::test(start_paused = true)]
async fn only_the_guilty_one_of_many_fails() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options).expect("the options are good");
    publish(&bus, "in", 21).await;
    bus.publish_batch(named(&bus, "taken", 0)).await;
    let subscription = group(&bus).await;
    // The first one's write holds the others up, so that they are tried together.
    store.hold_answers(true);
    let mut steps = Vec::new();
    for _ in 0..21 {
        let delivery = next(&subscription).await;
        let seq = delivery.event.seq();
        let batch = match seq {
            7 | 8 => named(&bus, "taken", seq),
            // The second of these is a duplicate of the first, which is fine.
            11 | 12 => named(&bus, "twice", 11),
            seq => result(&bus, "out", seq),
        };
        steps.push((seq, delivery.ack_and_publish(batch)));
    }
    sleep(10).await;
    store.hold_answers(false);
    for (seq, step) in steps {
        let answer = step.await;
        match seq {
            7 | 8 => assert_eq!(answer.expect_err("a conflict").kind(), "IdConflict"),
            12 => assert!(answer.expect("a step")[0].duplicate),
            _ => assert!(!answer.expect("a step")[0].duplicate),
        }
    }
    assert_eq!(outputs(&bus).await.len(), 1 + 21 - 2 - 1);
    let info = bus.group("in", "g").await.expect("it exists");
    assert_eq!((info.counts.acked, info.in_flight), (19, 2));
    assert_eq!(info.cursor, 6);
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_goes_away_meanwhile_is_made_again() {
    let bus = bus();
    publish(&bus, "in", 3).await;
    bus.publish("out", &0, &plain()).await.expect("stored");
    let subscription = group(&bus).await;
    let mut steps = Vec::new();
    bus.delete_topic("out").await.expect("deleted");
    for _ in 0..3 {
        let delivery = next(&subscription).await;
        let batch = result(&bus, "out", delivery.event.seq());
        steps.push(delivery.ack_and_publish(batch));
    }
    for step in steps {
        step.await.expect("a step");
    }
    assert_eq!(outputs(&bus).await, ["1", "2", "3"]);
}
