//! How long a node with an empty folder takes: from the whole log, and from a snapshot and the tail.

use super::nodes::{fill, make_topic, on_nats};
use super::runtime;
use super::servers::NatsServers;
use crate::Outcome;
use crate::log_work::payloads;
use crate::report::{Goal, Line, Unit};
use crate::sampling::repeat;
use crate::table::Bench;
use prombus_replicated::{Options, ReplicatedStore};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest that a million events may take.
const MAX_MS: f64 = 3_000.0;
const SNAPSHOT_LIMIT: Duration = Duration::from_secs(120);

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let runtime = runtime()?;
    let folder = bench.folder.fresh("cold");
    std::fs::create_dir_all(&folder)?;
    let servers = runtime.block_on(NatsServers::start(&folder, 1))?;
    let payload = payloads().swap_remove(0);
    let events = bench.scale.cold_events;
    let full = |snapshot_bytes| Options {
        snapshot_bytes,
        absent_after: Duration::from_secs(1),
        ..Options::default()
    };
    let writer = runtime.block_on(async {
        let copy = folder.join("writer");
        let writer = on_nats(&servers, "cold", 1, &copy, full(u64::MAX)).await?;
        make_topic(&*writer).await?;
        fill(&writer, events, &payload).await?;
        Outcome::Ok(writer)
    })?;
    let mut number = 0;
    let mut start = || {
        number += 1;
        let copy = folder.join(format!("cold-{number}"));
        let started = Instant::now();
        let node = on_nats(&servers, "cold", 1, &copy, full(u64::MAX));
        let node = runtime.block_on(node)?;
        let ms = started.elapsed().as_secs_f64() * 1_000.0;
        drop(node);
        crate::folder::remove(&copy)?;
        Ok(ms)
    };
    let from_log = repeat(bench.scale.repeats, &mut start)?;
    drop(writer);
    runtime.block_on(async {
        let copy = folder.join("writer");
        let writer = on_nats(&servers, "cold", 1, &copy, full(1)).await?;
        wait_for_snapshot(&writer).await?;
        fill(&writer, events / 20, &payload).await
    })?;
    let from_snapshot = repeat(bench.scale.repeats, &mut start)?;
    drop(servers);
    crate::folder::remove(&folder)?;
    let line =
        |what: String, samples| Line::new(what, Unit::Millis, samples).goal(Goal::AtMost(MAX_MS));
    Ok(vec![
        line(format!("cold start of {events} events, the log"), from_log),
        line(
            format!("cold start of {events} events, a snapshot and a 20th behind it"),
            from_snapshot,
        ),
    ])
}

async fn wait_for_snapshot(node: &Arc<ReplicatedStore>) -> Outcome<()> {
    let until = Instant::now() + SNAPSHOT_LIMIT;
    while node.replication().first < 2 {
        if Instant::now() > until {
            return Err("the log was not trimmed in time".into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}
