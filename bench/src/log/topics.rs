//! Whether publishing and delivering cost the same with one topic and with many.

use super::flat::{Points, lines};
use crate::Outcome;
use crate::bus_work::{consume, file_bus, publish, run as run_on, runtime};
use crate::folder::remove;
use crate::log_work::{BATCH_EVENTS, STORED_BYTES, nanos_each, payloads, topic_at};
use crate::report::Line;
use crate::table::Bench;
use prombus::{Bus, StartAt, SubscribeOptions};
use std::sync::Arc;
use std::time::Instant;

/// What one event costs, in nanoseconds.
struct Costs {
    by_batches: f64,
    by_events: f64,
    deliver: f64,
}

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let payloads = Arc::new(payloads());
    let runtime = runtime()?;
    let counts = bench.scale.topics.clone();
    let mut by_batches = Points::new(&counts);
    let mut by_events = Points::new(&counts);
    let mut deliver = Points::new(&counts);
    for _ in 0..bench.scale.repeats {
        for (at, &count) in counts.iter().enumerate() {
            bench.folder.warm(bench.scale.events * STORED_BYTES)?;
            let path = bench.folder.fresh("topics");
            let bus = {
                let _guard = runtime.enter();
                file_bus(&path, &bench.scale)?
            };
            let work = costs(bus, count, payloads.clone(), bench.scale.events);
            let costs = run_on(&runtime, work)?;
            remove(&path)?;
            by_batches.push(at, costs.by_batches);
            by_events.push(at, costs.by_events);
            deliver.push(at, costs.deliver);
        }
    }
    Ok([
        lines("publish, each batch to one of {} topics", by_batches),
        lines("publish, each event to one of {} topics", by_events),
        lines("deliver and ack by a pattern over {} topics", deliver),
    ]
    .into_iter()
    .flatten()
    .collect())
}

async fn costs(bus: Bus, count: usize, payloads: Arc<Vec<String>>, events: u64) -> Outcome<Costs> {
    let topics: Vec<Arc<str>> = (0..count).map(topic_at).collect();
    for topic in &topics {
        bus.publish_text(topic, "0", &Default::default()).await?;
    }
    let half = events / 2;
    let started = Instant::now();
    for (topic, _) in topics.iter().cycle().zip(0..half / BATCH_EVENTS) {
        publish(&bus, &[topic], &payloads, BATCH_EVENTS).await?;
    }
    let by_batches = nanos_each(half, started);
    // What is left to seal of one row is not the next one's cost.
    bus.store().maintain().await?;
    let started = Instant::now();
    publish(&bus, &topics, &payloads, half).await?;
    let by_events = nanos_each(half, started);

    let options = SubscribeOptions {
        from: StartAt::Earliest,
        batch_size: 1_000,
        max_in_flight: 10_000,
        ..SubscribeOptions::default()
    };
    bus.store().maintain().await?;
    let subscription = bus.subscribe_ephemeral("bench.*", options).await?;
    let stored = half + half + count as u64;
    let started = Instant::now();
    consume(&subscription, stored).await?;
    let deliver = nanos_each(stored, started);
    drop(subscription);
    bus.close().await?;
    Ok(Costs {
        by_batches,
        by_events,
        deliver,
    })
}
