//! From the moment an event is due to its delivery, at a steady rate, with `os` durability.

use super::{Served, runtime};
use crate::Outcome;
use crate::payload::{Checker, Payload};
use crate::report::{Goal, Line, Unit};
use crate::sampling::Samples;
use crate::table::Bench;
use prombus_client::{Client, PublishOptions, SubscribeOptions, Subscription};
use std::time::{Duration, Instant};
use tokio::time::{sleep_until, timeout};

const PER_SECOND: u64 = 5_000;
const MAX_P99_MS: f64 = 10.0;
/// How long the last events may take.
const ARRIVE_LIMIT: Duration = Duration::from_secs(60);

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let folder = bench.folder.fresh("latency");
    let served = Served::start(&folder)?;
    let runtime = runtime()?;
    let (mut middle, mut late) = (Samples::default(), Samples::default());
    for round in 0..=bench.scale.repeats {
        let topic = format!("paced-{round}");
        let mut millis = runtime.block_on(async {
            served.make_topic(&topic).await?;
            let publisher = served.connect().await?;
            let consumer = served.connect().await?;
            let options = SubscribeOptions::default();
            let subscription = consumer.subscribe(&topic, "watchers", options).await?;
            let count = bench.scale.paced_events;
            let begun = Instant::now();
            let publishing = publish(&publisher, &topic, begun, count);
            let (published, millis) =
                tokio::join!(publishing, receive(&subscription, begun, count));
            published?;
            millis
        })?;
        millis.sort_by(f64::total_cmp);
        // The first round pays for what is used for the first time.
        if round > 0 {
            middle.push(millis[millis.len() / 2]);
            late.push(millis[millis.len() * 99 / 100]);
        }
    }
    let what = |share: &str| format!("publish to delivery at {PER_SECOND}/s, {share}");
    Ok(vec![
        Line::new(what("p50"), Unit::Millis, middle),
        Line::new(what("p99"), Unit::Millis, late).goal(Goal::AtMost(MAX_P99_MS)),
    ])
}

async fn publish(client: &Client, topic: &str, begun: Instant, count: u64) -> Outcome<()> {
    let mut payload = Payload::new(0, 0);
    let mut answers = Vec::with_capacity(usize::try_from(count)?);
    for number in 0..count {
        let due = Duration::from_nanos(number * 1_000_000_000 / PER_SECOND);
        if begun + due > Instant::now() {
            sleep_until((begun + due).into()).await;
        }
        payload.set(number, due.as_nanos() as u64);
        answers.push(client.publish_text(topic, payload.as_str(), &PublishOptions::default()));
    }
    for answer in answers {
        answer.await?;
    }
    Ok(())
}

async fn receive(subscription: &Subscription, begun: Instant, count: u64) -> Outcome<Vec<f64>> {
    let mut millis = Vec::with_capacity(usize::try_from(count)?);
    let mut checker = Checker::new(count);
    while !checker.is_over() {
        let delivery = timeout(ARRIVE_LIMIT, subscription.next()).await?;
        let delivery = delivery.ok_or("the subscription ended")?;
        if let Some(seen) = checker.see(delivery.event.payload().as_bytes()) {
            let late = begun
                .elapsed()
                .saturating_sub(Duration::from_nanos(seen.due_ns));
            millis.push(late.as_secs_f64() * 1e3);
        }
        delivery.ack();
    }
    checker.verdict()?;
    Ok(millis)
}
