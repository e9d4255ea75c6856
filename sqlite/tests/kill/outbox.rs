//! Orders that are written together with their events, and two drainers that publish them.

use crate::steps::{Stepping, database};
use crate::{TOPIC, Work, log, with_bus};
use prombus::PublishOptions;
use prombus_sqlite::rusqlite::Connection;
use prombus_sqlite::{DrainerOptions, Outbox};
use prombus_store::ManualClock;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

pub(crate) const WORK: Work = Work {
    name: "outbox",
    steps: 400,
    prepare,
    run,
    judge,
};

/// Time goes on by more than a lease from one process to the next.
const ROUND_MS: u64 = 100_000;
const TABLE: &str =
    "CREATE TABLE IF NOT EXISTS orders (number INTEGER PRIMARY KEY, event TEXT NOT NULL)";

fn open(folder: &Path) -> Connection {
    let connection = prombus_sqlite::open(folder.join("tables.db")).expect("a database");
    connection.execute_batch(TABLE).expect("a table");
    Outbox::init(&connection).expect("an outbox");
    connection
}

/// Some of the transactions are rolled back, and with them the events.
fn prepare(folder: &Path, random: &mut fastrand::Rng) {
    let mut connection = open(folder);
    for _ in 0..random.u32(10..60) {
        let transaction = connection.transaction().expect("a transaction");
        let number: i64 = transaction
            .query_row(
                "SELECT coalesce(max(number), 0) + 1 FROM orders",
                [],
                |row| row.get(0),
            )
            .expect("a number");
        let key = random
            .bool()
            .then(|| format!("customer-{}", random.u32(0..4)));
        let options = PublishOptions {
            key: key.as_deref(),
            ..PublishOptions::default()
        };
        let id = Outbox::add_value(&transaction, TOPIC, &number, &options).expect("added");
        transaction
            .execute("INSERT INTO orders VALUES (?1, ?2)", (number, id))
            .expect("a row");
        if random.u32(0..5) > 0 {
            transaction.commit().expect("it commits");
        }
    }
}

fn run(folder: &Path, round: u64) {
    let clock = Arc::new(ManualClock::at((round + 1) * ROUND_MS));
    let drainer = |worker: &str| {
        let options = DrainerOptions {
            batch_rows: 6,
            ..DrainerOptions::new(format!("{worker}-{round}"))
        };
        Outbox::drainer(database(folder), options, clock.clone()).expect("a drainer")
    };
    let (mut one, mut two) = (drainer("one"), drainer("two"));
    with_bus(folder, async |bus| {
        let publisher = Stepping(bus.clone());
        // A drainer may find nothing due because the other one holds the earlier rows of a key.
        for _ in 0..1_000 {
            let (first, second) = tokio::join!(one.drain(&publisher), two.drain(&publisher));
            first.and(second).expect("drained");
            let counts = one.counts().await.expect("counts");
            if counts.pending + counts.claimed == 0 {
                return;
            }
        }
        panic!("it does not end");
    });
}

fn judge(folder: &Path, seed: u64) {
    let connection = open(folder);
    let counts = Outbox::counts(&connection).expect("counts");
    let orders = "SELECT orders.number, orders.event, sent_seq FROM orders
        JOIN prombus_outbox ON prombus_outbox.id = orders.event ORDER BY number";
    let mut query = connection.prepare(orders).expect("a query");
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    let orders: Result<Vec<(i64, String, i64)>, _> = rows.expect("rows").collect();
    let orders = orders.expect("rows");
    assert_eq!(counts.sent, orders.len() as u64, "seed {seed}: {counts:?}");
    let events = log(folder);
    assert_eq!(
        events.len(),
        orders.len(),
        "seed {seed}: as many events as orders"
    );
    let mut last_of_key = BTreeMap::new();
    for event in &events {
        let number: i64 = event.payload().parse().expect("a number");
        let expected = (number, event.id().into_owned(), event.seq() as i64);
        assert!(orders.contains(&expected), "seed {seed}: {expected:?}");
        if let Some(key) = event.key() {
            let before = last_of_key.insert(key.into_owned(), number);
            assert!(
                before < Some(number),
                "seed {seed}: {before:?} before {number}"
            );
        }
    }
}
