//! A handler that books every event into two tables, and marks it, in the transaction it is given. Some events fail
//! the first time.

use crate::steps::{Stepping, database, step};
use crate::{TOPIC, Work, log, publish_changes, with_bus};
use prombus::{Backoff, ReadLimit};
use prombus_sqlite::rusqlite::Transaction;
use prombus_sqlite::{
    BATCH, BusSource, Event, Runner, Transactional, TransactionalOptions, dedupe,
};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

pub(crate) const WORK: Work = Work {
    name: "handler",
    steps: 400,
    prepare: publish_changes,
    run,
    judge,
};

const TABLES: &str =
    "CREATE TABLE IF NOT EXISTS ledger (number INTEGER PRIMARY KEY AUTOINCREMENT, seq INTEGER);
    CREATE TABLE IF NOT EXISTS counts (key TEXT PRIMARY KEY, events INTEGER NOT NULL);";

fn run(folder: &Path, _: u64) {
    let connection = database(folder);
    connection.execute_batch(TABLES).expect("tables");
    dedupe::init(&connection).expect("a table");
    let options = TransactionalOptions {
        backoff: Backoff {
            first_ms: 1,
            longest_ms: 1,
        },
        batch: ReadLimit { events: 9, ..BATCH },
        ..TransactionalOptions::new("books")
    };
    let mut failed = HashSet::new();
    let handler = move |transaction: &Transaction<'_>, event: &Event| {
        book(transaction, event).map_err(|error| error.to_string())?;
        if event.seq().is_multiple_of(5) && failed.insert(event.seq()) {
            Err("not the first time".to_owned())
        } else {
            Ok(())
        }
    };
    with_bus(folder, async |bus| {
        let books = Transactional::open(connection, TOPIC, options, handler).expect("a projector");
        let mut runner = Runner::new(books, Stepping(BusSource::new(bus, TOPIC)));
        runner.catch_up().await.expect("all");
    });
}

fn book(transaction: &Transaction<'_>, event: &Event) -> prombus_sqlite::rusqlite::Result<()> {
    let id = event.id();
    assert!(
        !dedupe::seen(transaction, "books", &id, 0)?,
        "it is not given twice"
    );
    transaction.execute("INSERT INTO ledger (seq) VALUES (?1)", [event.seq() as i64])?;
    step();
    transaction.execute(
        "INSERT INTO counts (key, events) VALUES (?1, 1)
         ON CONFLICT (key) DO UPDATE SET events = events + 1",
        [event.key()],
    )?;
    step();
    dedupe::mark(transaction, "books", &id, 1_000, 0)
}

fn judge(folder: &Path, seed: u64) {
    let events = log(folder);
    let connection = prombus_sqlite::open(folder.join("tables.db")).expect("a database");
    let mut query = connection
        .prepare("SELECT seq FROM ledger ORDER BY number")
        .expect("a query");
    let seqs = query.query_map([], |row| row.get(0)).expect("rows");
    let seqs: Vec<i64> = seqs.collect::<Result<_, _>>().expect("rows");
    let expected: Vec<i64> = (1..=events.len() as i64).collect();
    assert_eq!(seqs, expected, "seed {seed}: each event once, in order");
    let mut counts = BTreeMap::new();
    for event in &events {
        *counts
            .entry(event.key().expect("a key").into_owned())
            .or_insert(0) += 1;
    }
    let mut query = connection
        .prepare("SELECT key, events FROM counts")
        .expect("a query");
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    let found: Result<BTreeMap<String, i32>, _> = rows.expect("rows").collect();
    assert_eq!(found.expect("rows"), counts, "seed {seed}");
    let marks: u32 = connection
        .query_row("SELECT count(*) FROM prombus_dedupe", [], |row| row.get(0))
        .expect("a count");
    assert_eq!(marks as usize, events.len(), "seed {seed}");
}
