//! Delivering to one group and acknowledging, from both stores.

use crate::Outcome;
use crate::bus_work::{consume, file_bus, memory_bus, publish, run as run_on, runtime};
use crate::folder::remove;
use crate::log_work::{payloads, per_second, topic_at};
use crate::report::{Goal, Line, Unit};
use crate::sampling::repeat;
use crate::table::Bench;
use prombus::{Bus, StartAt, SubscribeOptions};
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::Runtime;

/// Enough in flight that consumer and owner need not wait for each other.
const MAX_IN_FLIGHT: usize = 10_000;

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let payloads = Arc::new(payloads());
    let runtime = runtime()?;
    let (repeats, events) = (bench.scale.repeats, bench.scale.events);
    let wide = SubscribeOptions {
        from: StartAt::Earliest,
        batch_size: 1_000,
        max_in_flight: MAX_IN_FLIGHT,
        ..SubscribeOptions::default()
    };
    let default = SubscribeOptions {
        from: StartAt::Earliest,
        ..SubscribeOptions::default()
    };
    let from_memory = |options: &SubscribeOptions| {
        repeat(repeats, || {
            let _guard = runtime.enter();
            delivered(&runtime, memory_bus(4 << 30)?, &payloads, events, options)
        })
    };
    let memory = from_memory(&wide)?;
    let memory_by_default = from_memory(&default)?;
    let file = repeat(repeats, || {
        let path = bench.folder.fresh("deliver");
        let bus = {
            let _guard = runtime.enter();
            file_bus(&path, &bench.scale)?
        };
        let rate = delivered(&runtime, bus, &payloads, events, &wide)?;
        remove(&path)?;
        Ok(rate)
    })?;
    let line = |what: &str, samples| Line::new(what, Unit::EventsPerSecond, samples);
    let goal = Goal::AtLeast(1_000_000.0);
    Ok(vec![
        line("deliver and ack, one group, memory:", memory).goal(goal),
        line("the same with the default options", memory_by_default),
        line("deliver and ack, one group, file:", file).goal(goal),
    ])
}

/// Publishes the events, then delivers them all to one group; events per second until the group's cursor is at the
/// end.
fn delivered(
    runtime: &Runtime,
    bus: Bus,
    payloads: &Arc<Vec<String>>,
    events: u64,
    options: &SubscribeOptions,
) -> Outcome<f64> {
    let (payloads, options) = (payloads.clone(), options.clone());
    run_on(runtime, async move {
        let topic = topic_at(0);
        publish(&bus, &[&topic], &payloads, events).await?;
        let subscription = bus.subscribe(&topic, "group", options).await?;
        let started = Instant::now();
        consume(&subscription, events).await?;
        let cursor = bus.group(&topic, "group").await?.cursor;
        let rate = per_second(events, started);
        if cursor != events {
            return Err(format!("the cursor is at {cursor} after {events}").into());
        }
        bus.close().await?;
        Ok(rate)
    })
}
