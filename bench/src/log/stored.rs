//! Whether publishing and delivering cost the same on a log with few events and with many.

use super::flat::{Points, lines};
use crate::Outcome;
use crate::bus_work::{consume, file_bus, publish, run as run_on, runtime};
use crate::folder::remove;
use crate::log_work::{BATCH_EVENTS, STORED_BYTES, make_log, nanos_each, payloads, topic_at};
use crate::report::Line;
use crate::table::Bench;
use prombus::{Bus, StartAt, SubscribeOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// What one event costs, in nanoseconds.
struct Costs {
    deliver_newest: f64,
    deliver_anywhere: f64,
    publish: f64,
}

/// Events that one subscription takes: as many as the smallest log holds.
const TAKEN_EVENTS: u64 = 1_000;

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let counts = bench.scale.stored.clone();
    let mut newest = Points::new(&counts);
    let mut anywhere = Points::new(&counts);
    let mut publish = Points::new(&counts);
    for _ in 0..bench.scale.repeats {
        for (at, &count) in counts.iter().enumerate() {
            let (path, is_mine) = log_of(bench, count)?;
            let publish_bytes = bench.scale.stored_publish_events * STORED_BYTES;
            bench.folder.warm(publish_bytes)?;
            let costs = costs_at(bench, &path)?;
            if is_mine {
                remove(&path)?;
            }
            newest.push(at, costs.deliver_newest);
            anywhere.push(at, costs.deliver_anywhere);
            publish.push(at, costs.publish);
        }
    }
    Ok([
        lines("publish with {} stored", publish),
        lines("deliver and ack the newest 1,000 of {}", newest),
        lines("deliver and ack 1,000 anywhere among {}", anywhere),
    ]
    .into_iter()
    .flatten()
    .collect())
}

/// A log of so many events, and whether it is to be removed. The largest is shared: what publishing adds to it is
/// small beside what it holds.
fn log_of(bench: &mut Bench, count: u64) -> Outcome<(PathBuf, bool)> {
    if count == bench.scale.large_log_events() {
        return Ok((bench.large_log()?.to_owned(), false));
    }
    let path = bench.folder.fresh("stored");
    make_log(&path, &bench.scale, 1, count)?;
    Ok((path, true))
}

fn costs_at(bench: &Bench, path: &Path) -> Outcome<Costs> {
    let runtime = runtime()?;
    let scale = bench.scale.clone();
    let bus = {
        let _guard = runtime.enter();
        file_bus(path, &scale)?
    };
    run_on(&runtime, async move {
        let (topic, payloads) = (topic_at(0), Arc::new(payloads()));
        let tail = bus.topic(&topic)?.tail_seq;
        let newest = tail - TAKEN_EVENTS + 1;
        let rounds = scale.stored_rounds;
        let at_newest = (0..rounds).map(|_| newest);
        let deliver_newest = deliver(&bus, &topic, at_newest).await?;
        let spread = (0..rounds).map(|round| 1 + (newest - 1) * round / rounds);
        let deliver_anywhere = deliver(&bus, &topic, spread).await?;
        let events = scale.stored_publish_events;
        publish(&bus, &[&topic], &payloads, BATCH_EVENTS).await?;
        let started = Instant::now();
        publish(&bus, &[&topic], &payloads, events).await?;
        let publish = nanos_each(events, started);
        bus.close().await?;
        Ok(Costs {
            deliver_newest,
            deliver_anywhere,
            publish,
        })
    })
}

/// Takes some events from each of the positions; what one of them costs, subscribing included.
async fn deliver(bus: &Bus, topic: &str, places: impl Iterator<Item = u64>) -> Outcome<f64> {
    let started = Instant::now();
    let mut taken = 0;
    for seq in places {
        let options = SubscribeOptions {
            from: StartAt::Seq(seq),
            batch_size: TAKEN_EVENTS as usize,
            ..SubscribeOptions::default()
        };
        let subscription = bus.subscribe_ephemeral(topic, options).await?;
        consume(&subscription, TAKEN_EVENTS).await?;
        taken += TAKEN_EVENTS;
    }
    Ok(nanos_each(taken, started))
}
