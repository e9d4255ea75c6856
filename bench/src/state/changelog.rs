//! A keyed topic into a table of an SQLite file, beside a plain loop of batched upserts of the same rows.

use crate::Outcome;
use crate::bus_work::{file_bus, run as run_on, runtime};
use crate::folder::remove;
use crate::keyed_work::{publish_keyed, read_all};
use crate::log_work::{per_second, topic_at};
use crate::report::{Goal, Line, Unit};
use crate::sampling::in_turns;
use crate::table::Bench;
use prombus::{Bus, StoredEvent};
use prombus_sqlite::rusqlite::params;
use prombus_sqlite::{BATCH, BusSource, Changelog, ChangelogOptions, Runner};
use std::cell::RefCell;
use std::path::Path;
use std::time::Instant;

const TABLE: &str = "CREATE TABLE plain
    (key TEXT PRIMARY KEY NOT NULL, payload TEXT, ts INTEGER, seq INTEGER, id TEXT)";
const UPSERT: &str = "INSERT INTO plain (key, payload, ts, seq, id) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (key) DO UPDATE SET
        payload = excluded.payload, ts = excluded.ts, seq = excluded.seq, id = excluded.id";

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let runtime = runtime()?;
    let scale = &bench.scale;
    let path = bench.folder.fresh("changelog");
    let bus = {
        let _guard = runtime.enter();
        file_bus(&path, scale)?
    };
    let (filling, events, keys) = (bus.clone(), scale.row_events, scale.row_keys);
    let stored = run_on(&runtime, async move {
        let topic = topic_at(0);
        publish_keyed(&filling, &topic, events, keys).await?;
        read_all(&filling, &topic).await
    })?;
    let folder = RefCell::new(&mut bench.folder);
    let file = |name: &str| -> Outcome<std::path::PathBuf> {
        let folder = folder.borrow_mut().fresh(name);
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    };
    let project = || {
        let folder = file("projected")?;
        let rate = run_on(&runtime, projected(bus.clone(), folder.join("table.db")))?;
        remove(&folder)?;
        Ok(rate)
    };
    let plain = || {
        let folder = file("plain")?;
        let rate = plainly(&folder.join("table.db"), &stored)?;
        remove(&folder)?;
        Ok(rate)
    };
    let (measured, beside) = in_turns(scale.repeats, project, plain)?;
    run_on(&runtime, async move { Ok(bus.close().await?) })?;
    remove(&path)?;
    let what = format!("changelog of {events} events of {keys} keys into SQLite");
    Ok(vec![
        Line::new(what, Unit::EventsPerSecond, measured)
            .beside("plain batched upserts", beside)
            .goal(Goal::RatioAtLeast(0.6)),
    ])
}

async fn projected(bus: Bus, path: std::path::PathBuf) -> Outcome<f64> {
    let topic = topic_at(0);
    let connection = prombus_sqlite::open(&path)?;
    let changelog = Changelog::open(connection, &topic, &ChangelogOptions::new("projected"))?;
    let mut runner = Runner::new(changelog, BusSource::new(&bus, &topic));
    let started = Instant::now();
    let done = runner.catch_up().await?;
    Ok(per_second(done.events, started))
}

/// What anyone would write: a prepared statement, and a transaction for each batch.
fn plainly(path: &Path, events: &[StoredEvent]) -> Outcome<f64> {
    let mut connection = prombus_sqlite::open(path)?;
    connection.execute_batch(TABLE)?;
    let started = Instant::now();
    for batch in events.chunks(BATCH.events) {
        let transaction = connection.transaction()?;
        {
            let mut upsert = transaction.prepare_cached(UPSERT)?;
            for event in batch {
                upsert.execute(params![
                    event.key(),
                    event.payload(),
                    event.ts() as i64,
                    event.seq() as i64,
                    event.id(),
                ])?;
            }
        }
        transaction.commit()?;
    }
    Ok(per_second(events.len() as u64, started))
}
