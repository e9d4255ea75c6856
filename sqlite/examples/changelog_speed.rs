//! How fast a topic becomes a table, beside a plain loop of batched upserts of the same rows into the same table.
//!
//! `cargo run --release -p prombus-sqlite --example changelog_speed [EVENTS] [KEYS]`

use prombus::{Bus, BusOptions, PublishOptions, ReadLimit};
use prombus_sqlite::rusqlite::{Connection, params};
use prombus_sqlite::{BATCH, BusSource, Changelog, ChangelogOptions, Runner};
use prombus_store::file::FileStore;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const TOPIC: &str = "orders.state";
const EVENTS: u64 = 500_000;
const KEYS: u64 = 100_000;
const ROUNDS: usize = 3;
const PUBLISHED_TOGETHER: u64 = 1_000;
const TABLE: &str = "CREATE TABLE orders
    (key TEXT PRIMARY KEY NOT NULL, payload TEXT, ts INTEGER, seq INTEGER, id TEXT)";
const UPSERT: &str = "INSERT INTO orders (key, payload, ts, seq, id) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (key) DO UPDATE SET
        payload = excluded.payload, ts = excluded.ts, seq = excluded.seq, id = excluded.id";

/// What a row is made of.
struct Row {
    key: String,
    payload: String,
    ts: i64,
    seq: i64,
    id: String,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::print_stdout, reason = "it is there to be read")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| match arguments.next() {
        Some(text) => text.parse(),
        None => Ok(default),
    };
    let (events, keys) = (number(EVENTS)?, number(KEYS)?);
    let folder = tempfile::tempdir()?;
    let (store, _) = FileStore::open(&folder.path().join("log"))?;
    let bus = Bus::open(Arc::new(store), BusOptions::default())?;
    publish(&bus, events, keys).await?;
    let rows = rows(&bus).await?;
    println!(
        "{events} events of {keys} keys, {} per transaction",
        BATCH.events
    );
    for round in 0..ROUNDS {
        let plain = plain(&folder.path().join(format!("plain-{round}.db")), &rows)?;
        let file = folder.path().join(format!("changelog-{round}.db"));
        let ours = changelog(&bus, &file).await?;
        let ratio = ours / plain;
        println!("plain loop {plain:>9.0} rows/s   changelog {ours:>9.0} events/s   {ratio:.2}");
    }
    bus.close().await?;
    Ok(())
}

/// Keys come in no order, as they do in life.
async fn publish(bus: &Bus, events: u64, keys: u64) -> Result<(), Box<dyn Error>> {
    let mut random = fastrand::Rng::with_seed(1);
    for start in (0..events).step_by(PUBLISHED_TOGETHER as usize) {
        let mut batch = bus.batch();
        for number in start..events.min(start + PUBLISHED_TOGETHER) {
            let key = format!("order-{:08}", random.u64(0..keys));
            let payload = format!(
                r#"{{"number":{number},"total":{},"address":{{"street":"Main Street 5","city":"Springfield"}},"note":"{}"}}"#,
                random.u32(1..100_000),
                "x".repeat(random.usize(0..120)),
            );
            let options = PublishOptions {
                key: Some(&key),
                ..PublishOptions::default()
            };
            batch.add(TOPIC, &payload, &options);
        }
        for published in bus.publish_batch(batch).await {
            published?;
        }
    }
    Ok(())
}

async fn rows(bus: &Bus) -> Result<Vec<Row>, Box<dyn Error>> {
    let limit = ReadLimit {
        events: 10_000,
        bytes: 8 << 20,
    };
    let (mut rows, mut from_seq) = (Vec::new(), 1);
    loop {
        let page = bus.store().read(&TOPIC.into(), from_seq, limit).await?;
        if page.events.is_empty() {
            return Ok(rows);
        }
        from_seq = page.next_seq;
        rows.extend(page.events.iter().map(|event| Row {
            key: event.key().unwrap_or_default().into_owned(),
            payload: event.payload().to_owned(),
            ts: event.ts() as i64,
            seq: event.seq() as i64,
            id: event.id().into_owned(),
        }));
    }
}

/// What anyone would write: a prepared statement, and a transaction for each batch.
#[allow(clippy::disallowed_methods, reason = "it measures")]
fn plain(path: &Path, rows: &[Row]) -> Result<f64, Box<dyn Error>> {
    let mut connection: Connection = prombus_sqlite::open(path)?;
    connection.execute_batch(TABLE)?;
    let started = Instant::now();
    for batch in rows.chunks(BATCH.events) {
        let transaction = connection.transaction()?;
        {
            let mut upsert = transaction.prepare_cached(UPSERT)?;
            for row in batch {
                upsert.execute(params![row.key, row.payload, row.ts, row.seq, row.id])?;
            }
        }
        transaction.commit()?;
    }
    Ok(rows.len() as f64 / started.elapsed().as_secs_f64())
}

#[allow(clippy::disallowed_methods, reason = "it measures")]
async fn changelog(bus: &Bus, path: &Path) -> Result<f64, Box<dyn Error>> {
    let connection = prombus_sqlite::open(path)?;
    let changelog = Changelog::open(connection, TOPIC, &ChangelogOptions::new("orders"))?;
    let mut runner = Runner::new(changelog, BusSource::new(bus, TOPIC));
    let started = Instant::now();
    let done = runner.catch_up().await?;
    Ok(done.events as f64 / started.elapsed().as_secs_f64())
}
