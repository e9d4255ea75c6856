//! Many publishers waiting for fsync together, beside a loop that writes and syncs groups of the same size.

use crate::Outcome;
use crate::bus_work::runtime;
use crate::folder::remove;
use crate::log_work::{draft, make_topics, open_log, payloads, per_second, topic_at};
use crate::plain::{self, Records};
use crate::report::{Goal, Line, Unit};
use crate::sampling::Samples;
use crate::table::Bench;
use prombus_log::Log;
use prombus_store::{Batch, Durability};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tokio::task::JoinSet;

const PUBLISHERS: u64 = 16;
const IN_FLIGHT: usize = 256;

/// What the log did, and in how many syncs.
struct Run {
    events_per_second: f64,
    syncs: u64,
}

/// Each publisher is a task that sends events one by one and waits for the oldest when it has enough in flight, as a
/// connection of the gateway does.
pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let payloads: Arc<[String]> = payloads().into();
    let records = Records::new(&payloads)?;
    let events_each = bench.scale.synced_events / PUBLISHERS;
    let events = events_each * PUBLISHERS;
    let (mut measured, mut beside) = (Samples::default(), Samples::default());
    let mut group_events = Samples::default();
    for _ in 0..bench.scale.repeats {
        let path = bench.folder.fresh("group-commit");
        let log = Arc::new(open_log(&path, &bench.scale)?);
        make_topics(&log, &[topic_at(0)], Durability::Fsync)?;
        let run = through_log(&log, &payloads, events_each)?;
        log.close()?;
        drop(log);
        remove(&path)?;
        measured.push(run.events_per_second);
        let in_group = (events / run.syncs.max(1)).max(1);
        group_events.push(in_group as f64);
        let path = bench.folder.fresh("plain");
        beside.push(plainly(&path, &records, in_group, run.syncs)?);
        remove(&path)?;
    }
    let groups = format!("plain write and fdatasync of {:.0}", group_events.median());
    let what = "log append, fsync, 16 publishers with 256 in flight";
    let line = Line::new(what, Unit::EventsPerSecond, measured)
        .beside(groups, beside)
        .goal(Goal::RatioAtLeast(0.7));
    Ok(vec![line])
}

fn through_log(log: &Arc<Log>, payloads: &Arc<[String]>, events_each: u64) -> Outcome<Run> {
    let runtime = runtime()?;
    let syncs_before = log.stats().syncs;
    let started = Instant::now();
    runtime.block_on(async {
        let mut publishers = JoinSet::new();
        for _ in 0..PUBLISHERS {
            publishers.spawn(publish(log.clone(), payloads.clone(), events_each));
        }
        while let Some(ended) = publishers.join_next().await {
            ended??;
        }
        Outcome::Ok(())
    })?;
    Ok(Run {
        events_per_second: per_second(events_each * PUBLISHERS, started),
        syncs: log.stats().syncs - syncs_before,
    })
}

async fn publish(log: Arc<Log>, payloads: Arc<[String]>, events: u64) -> Outcome<()> {
    let topic = topic_at(0);
    let mut in_flight = VecDeque::with_capacity(IN_FLIGHT);
    for (payload, _) in payloads.iter().cycle().zip(0..events) {
        if in_flight.len() == IN_FLIGHT
            && let Some(oldest) = in_flight.pop_front()
        {
            oldest.await?;
        }
        let mut batch = Batch::new();
        batch.publish(&topic, &draft(payload));
        in_flight.push_back(log.append(&batch));
    }
    for commit in in_flight {
        commit.await?;
    }
    Ok(())
}

fn plainly(path: &Path, records: &Records, in_group: u64, groups: u64) -> Outcome<f64> {
    plain::append_and_sync(path, &records.repeated(in_group as usize), groups)
}
