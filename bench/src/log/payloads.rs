//! What an event costs by the size of its payload: publishing to files with `os` durability, and delivering.

use crate::Outcome;
use crate::bus_work::{consume, file_bus, publish, run as run_on, runtime};
use crate::folder::remove;
use crate::log_work::{BATCH_EVENTS, nanos_each, topic_at};
use crate::report::{Line, Unit, with_commas};
use crate::sampling::Samples;
use crate::table::Bench;
use prombus::{Bus, StartAt, SubscribeOptions};
use std::sync::Arc;
use std::time::Instant;

/// About how many bytes are published at each size, unless that would be more events than other rows have.
const VOLUME_BYTES: u64 = 256 << 20;
/// What an event takes beside its payload.
const BESIDE_BYTES: u64 = 160;

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let runtime = runtime()?;
    let sizes = bench.scale.payload_bytes.clone();
    let mut costs = vec![(Samples::default(), Samples::default()); sizes.len()];
    for _ in 0..bench.scale.repeats {
        for (&size, (published, delivered)) in sizes.iter().zip(&mut costs) {
            let events = (VOLUME_BYTES / size as u64).min(bench.scale.events);
            // A batch is the least that is published.
            let events = events.next_multiple_of(BATCH_EVENTS);
            bench.folder.warm(events * (size as u64 + BESIDE_BYTES))?;
            let path = bench.folder.fresh("payloads");
            let bus = {
                let _guard = runtime.enter();
                file_bus(&path, &bench.scale)?
            };
            let payloads = Arc::new(vec![payload(size); BATCH_EVENTS as usize]);
            let (publish, deliver) = run_on(&runtime, measured(bus, payloads, events))?;
            published.push(publish);
            delivered.push(deliver);
            remove(&path)?;
        }
    }
    let (publish, deliver): (Vec<_>, Vec<_>) = costs.into_iter().unzip();
    let lines = |what: &'static str, costs: Vec<Samples>| {
        let sizes = sizes.iter().map(|&size| with_commas(size as f64));
        let lines = sizes.zip(costs).map(move |(size, samples)| {
            let what = format!("{what}, payloads of {size} bytes");
            Line::new(what, Unit::NanosPerEvent, samples)
        });
        lines.collect::<Vec<_>>()
    };
    let mut all = lines("publish", publish);
    all.extend(lines("deliver and ack", deliver));
    Ok(all)
}

/// Nanoseconds of publishing an event, and of delivering and acknowledging it.
async fn measured(bus: Bus, payloads: Arc<Vec<String>>, events: u64) -> Outcome<(f64, f64)> {
    let topic = topic_at(0);
    let started = Instant::now();
    publish(&bus, &[&topic], &payloads, events).await?;
    let published = nanos_each(events, started);
    // Sealing what was just written is the publisher's cost.
    bus.store().maintain().await?;
    let options = SubscribeOptions {
        from: StartAt::Earliest,
        batch_size: 1_000,
        max_in_flight: 10_000,
        ..SubscribeOptions::default()
    };
    let subscription = bus.subscribe(&topic, "group", options).await?;
    let started = Instant::now();
    consume(&subscription, events).await?;
    let delivered = nanos_each(events, started);
    drop(subscription);
    bus.close().await?;
    Ok((published, delivered))
}

fn payload(bytes: usize) -> String {
    let start = r#"{"note":""#;
    format!("{start}{}\"}}", "x".repeat(bytes - start.len() - 2))
}
