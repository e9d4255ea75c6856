//! Delivering to one group from a node's copy, beside the file store.

use super::nodes::on_nats;
use super::runtime;
use super::servers::NatsServers;
use crate::Outcome;
use crate::bus_work::{bus_on, consume, file_bus, publish};
use crate::log_work::{payloads, per_second, topic_at};
use crate::report::{Goal, Line, Unit};
use crate::sampling::in_turns;
use crate::table::Bench;
use prombus::{Bus, StartAt, SubscribeOptions};
use prombus_replicated::Options;
use std::time::Instant;

/// Enough in flight that consumer and owner need not wait for each other.
const MAX_IN_FLIGHT: usize = 10_000;

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let runtime = runtime()?;
    let folder = bench.folder.fresh("consume");
    std::fs::create_dir_all(&folder)?;
    let servers = runtime.block_on(NatsServers::start(&folder, 1))?;
    let payloads = payloads();
    let events = bench.scale.cluster_events;
    let topics = [topic_at(0)];
    let (node, file) = runtime.block_on(async {
        let copy = folder.join("copy");
        let store = on_nats(&servers, "consume", 1, &copy, Options::default()).await?;
        let node = bus_on(store)?;
        let file = file_bus(&folder.join("file"), &bench.scale)?;
        for bus in [&node, &file] {
            publish(bus, &topics, &payloads, events).await?;
        }
        Outcome::Ok((node, file))
    })?;
    let groups = std::cell::Cell::new(0);
    let deliver = |bus: &Bus| {
        groups.set(groups.get() + 1);
        let group = format!("group-{}", groups.get());
        runtime.block_on(delivered(bus, &group, events))
    };
    let (measured, beside) = in_turns(bench.scale.repeats, || deliver(&node), || deliver(&file))?;
    runtime.block_on(async {
        node.close().await?;
        file.close().await?;
        Outcome::Ok(())
    })?;
    drop(servers);
    crate::folder::remove(&folder)?;
    Ok(vec![
        Line::new(
            "deliver and ack, one group, a node on R1",
            Unit::EventsPerSecond,
            measured,
        )
        .beside("file:", beside)
        .goal(Goal::RatioAtLeast(0.8)),
    ])
}

async fn delivered(bus: &Bus, group: &str, events: u64) -> Outcome<f64> {
    let options = SubscribeOptions {
        from: StartAt::Earliest,
        batch_size: 1_000,
        max_in_flight: MAX_IN_FLIGHT,
        ..SubscribeOptions::default()
    };
    let started = Instant::now();
    let subscription = bus.subscribe(&topic_at(0), group, options).await?;
    consume(&subscription, events).await?;
    Ok(per_second(events, started))
}
