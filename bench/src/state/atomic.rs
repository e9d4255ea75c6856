//! Consuming events and publishing a result for each: in one atomic batch, beside publishing and then acknowledging.
//! Topics have `fsync` durability, because a step is durable before it is acknowledged.

use crate::Outcome;
use crate::bus_work::{publish, run as run_on, runtime, synced_file_bus};
use crate::folder::remove;
use crate::log_work::{payloads, per_second, topic_at};
use crate::report::{Goal, Line, Unit};
use crate::sampling::in_turns;
use crate::table::Bench;
use prombus::{
    Bus, Delivery, PublishBatch, PublishOptions, StartAt, SubscribeOptions, Subscription,
};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

const RESULTS: &str = "bench.results";
/// The events that a consumer works on at a time.
const TAKEN_AT_A_TIME: usize = 1_000;
const MAX_IN_FLIGHT: usize = 10_000;

/// How results are published and inputs acknowledged.
#[derive(Clone, Copy)]
enum How {
    /// Each event with its result in a step of its own.
    EachInAStep,
    /// Each result in a publish of its own, and when they are stored each acknowledgement.
    EachInTwo,
    /// All that were taken with all their results in one atomic batch.
    AllInAStep,
    /// All results in one publish, and when they are stored the acknowledgements.
    AllInTwo,
}

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let runtime = runtime()?;
    let payloads = Arc::new(payloads());
    let scale = &bench.scale;
    let folder = RefCell::new(&mut bench.folder);
    let measure = |how: How| -> Outcome<f64> {
        let path = folder.borrow_mut().fresh("atomic");
        let bus = {
            let _guard = runtime.enter();
            synced_file_bus(&path, scale)?
        };
        let work = worked(bus, payloads.clone(), scale.ack_publish_events, how);
        let rate = run_on(&runtime, work)?;
        remove(&path)?;
        Ok(rate)
    };
    let lines = [
        (
            "consume and publish, a step for each event",
            How::EachInAStep,
            "a publish and an ack for each",
            How::EachInTwo,
        ),
        (
            "consume and publish, a step for 1,000 events",
            How::AllInAStep,
            "publishing 1,000, then acknowledging them",
            How::AllInTwo,
        ),
    ];
    let lines = lines.map(|(what, how, plainly, in_two)| {
        let (measured, beside) = in_turns(scale.repeats, || measure(how), || measure(in_two))?;
        Ok(Line::new(what, Unit::EventsPerSecond, measured)
            .beside(plainly, beside)
            .goal(Goal::RatioAtLeast(0.5)))
    });
    lines.into_iter().collect()
}

/// Consumes all events and publishes a result for each; events per second until the last is settled.
async fn worked(bus: Bus, payloads: Arc<Vec<String>>, events: u64, how: How) -> Outcome<f64> {
    let topic = topic_at(0);
    publish(&bus, &[&topic], &payloads, events).await?;
    let options = SubscribeOptions {
        from: StartAt::Earliest,
        batch_size: TAKEN_AT_A_TIME,
        max_in_flight: MAX_IN_FLIGHT,
        ..SubscribeOptions::default()
    };
    let subscription = bus.subscribe(&topic, "workers", options).await?;
    let started = Instant::now();
    let mut left = events as usize;
    while left > 0 {
        left -= work(&bus, &subscription, how).await?;
    }
    let cursor = bus.group(&topic, "workers").await?.cursor;
    let rate = per_second(events, started);
    let results = bus.topic(RESULTS)?.tail_seq;
    if (cursor, results) != (events, events) {
        return Err(format!("{results} results and {cursor} settled of {events}").into());
    }
    bus.close().await?;
    Ok(rate)
}

/// Takes what is there and works on it; says how many that were.
async fn work(bus: &Bus, subscription: &Subscription, how: How) -> Outcome<usize> {
    let deliveries = subscription.next_batch(TAKEN_AT_A_TIME).await;
    let count = deliveries.len();
    let options = PublishOptions::default();
    match how {
        How::EachInAStep => {
            let mut answers = Vec::with_capacity(count);
            for delivery in deliveries {
                let mut results = bus.batch();
                results.add(RESULTS, delivery.event.payload(), &options);
                answers.push(delivery.ack_and_publish(results));
            }
            for answer in answers {
                answer.await?;
            }
        }
        How::EachInTwo => {
            let mut answers = Vec::with_capacity(count);
            for delivery in &deliveries {
                let mut results = bus.batch();
                results.add(RESULTS, delivery.event.payload(), &options);
                answers.push(bus.publish_batch(results));
            }
            for answer in answers {
                for published in answer.await {
                    published?;
                }
            }
            deliveries.into_iter().for_each(Delivery::ack);
        }
        How::AllInAStep => {
            let results = all_results(bus, &deliveries);
            Delivery::ack_all_and_publish(deliveries, results).await?;
        }
        How::AllInTwo => {
            for published in bus.publish_batch(all_results(bus, &deliveries)).await {
                published?;
            }
            Delivery::ack_all(deliveries);
        }
    }
    Ok(count)
}

fn all_results(bus: &Bus, deliveries: &[Delivery]) -> PublishBatch {
    let mut results = bus.batch();
    for delivery in deliveries {
        let payload = delivery.event.payload();
        results.add(RESULTS, payload, &PublishOptions::default());
    }
    results
}
