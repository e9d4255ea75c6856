//! Rebuilding a table: from a snapshot and what came after it, beside folding the whole log.

use crate::Outcome;
use crate::bus_work::{run as run_on, runtime, uncompacted_file_bus};
use crate::folder::remove;
use crate::keyed_work::publish_keyed;
use crate::log_work::topic_at;
use crate::report::{Goal, Line, Unit};
use crate::sampling::in_turns;
use crate::table::Bench;
use prombus::{Bus, Durability, Follow, TopicConfig};
use std::collections::HashMap;
use std::time::Instant;

/// From key to payload.
type Table = HashMap<String, String>;

/// The share of the events that come after the snapshot.
const TAIL_SHARE: u64 = 1_000;

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let runtime = runtime()?;
    let path = bench.folder.fresh("rebuild");
    let bus = {
        let _guard = runtime.enter();
        uncompacted_file_bus(&path, &bench.scale)?
    };
    let (events, keys) = (bench.scale.large_log_events(), bench.scale.row_keys);
    let filling = bus.clone();
    let snapshot = run_on(&runtime, async move {
        let topic = topic_at(0);
        publish_keyed(&filling, &topic, events, keys).await?;
        let config = TopicConfig {
            durability: Durability::Os,
            compaction: true,
            snapshot_topic: Some(format!("{topic}.snapshot")),
            snapshot_interval_ms: Some(u64::from(u32::MAX)),
            ..TopicConfig::default()
        };
        let folded = whole_log(&filling).await?;
        filling.configure_topic(&topic, &config).await?;
        filling.snapshot(&topic).await?;
        publish_keyed(&filling, &topic, events / TAIL_SHARE, keys).await?;
        Ok(folded.len())
    })?;
    let expected = run_on(&runtime, timed(bus.clone(), How::WholeLog))?.1;
    let check = |(seconds, table): (f64, Table)| {
        if table == expected {
            Ok(seconds * 1e3)
        } else {
            Err(format!("{} keys instead of {snapshot}", table.len()).into())
        }
    };
    let measure = |how| check(run_on(&runtime, timed(bus.clone(), how))?);
    let (measured, beside) = in_turns(
        bench.scale.repeats.min(3),
        || measure(How::Snapshot),
        || measure(How::WholeLog),
    )?;
    run_on(&runtime, {
        let bus = bus.clone();
        async move { Ok(bus.close().await?) }
    })?;
    remove(&path)?;
    let what = format!("a table of {keys} keys from its snapshot and the tail");
    Ok(vec![
        Line::new(what, Unit::Millis, measured)
            .beside(format!("from {events} events"), beside)
            .goal(Goal::RatioAtMost(0.1)),
    ])
}

#[derive(Clone, Copy)]
enum How {
    Snapshot,
    WholeLog,
}

async fn timed(bus: Bus, how: How) -> Outcome<(f64, Table)> {
    let started = Instant::now();
    let table = match how {
        How::Snapshot => from_snapshot(&bus).await?,
        How::WholeLog => whole_log(&bus).await?,
    };
    Ok((started.elapsed().as_secs_f64(), table))
}

async fn from_snapshot(bus: &Bus) -> Outcome<Table> {
    let mut table = Table::new();
    let mut state = bus.load_state(&topic_at(0)).await?;
    if !state.is_from_snapshot() {
        return Err("there is no snapshot".into());
    }
    while let Some(page) = state.next_page().await? {
        table.extend(page.into_iter().map(|state| (state.key, state.payload)));
    }
    fold(&mut state.follow()?, &mut table).await?;
    Ok(table)
}

async fn whole_log(bus: &Bus) -> Outcome<Table> {
    let mut table = Table::new();
    fold(&mut bus.follow(&topic_at(0), 1)?, &mut table).await?;
    Ok(table)
}

async fn fold(follow: &mut Follow, table: &mut Table) -> Outcome<()> {
    while let Some(page) = follow.read_on().await? {
        for event in &page.events {
            let Some(key) = event.key() else {
                continue;
            };
            match table.get_mut(&*key) {
                Some(payload) => event.payload().clone_into(payload),
                None => drop(table.insert(key.into_owned(), event.payload().to_owned())),
            }
        }
    }
    Ok(())
}
