//! A table that follows a topic.

use crate::steps::{Stepping, database};
use crate::{TOPIC, Work, log, publish_changes, with_bus};
use prombus::ReadLimit;
use prombus_sqlite::{BATCH, BusSource, Changelog, ChangelogOptions, Runner};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

pub(crate) const WORK: Work = Work {
    name: "changelog",
    steps: 150,
    prepare: publish_changes,
    run,
    judge,
};

/// Two tables of the same topic, one of which compares versions.
const TABLES: [(&str, bool); 2] = [("plain", false), ("guarded", true)];

#[derive(Deserialize)]
struct Change {
    version: i64,
    amount: i64,
}

fn options(table: &str, is_guarded: bool) -> ChangelogOptions {
    let columns = ["version:integer", "amount:integer", "seq=$seq:integer"];
    ChangelogOptions {
        columns: columns
            .map(|column| column.parse().expect("a column"))
            .to_vec(),
        indexes: vec![vec!["amount".to_owned()]],
        version: is_guarded.then(|| "version".parse().expect("a version")),
        batch: ReadLimit { events: 7, ..BATCH },
        ..ChangelogOptions::new(table)
    }
}

fn run(folder: &Path, _: u64) {
    with_bus(folder, async |bus| {
        for (table, is_guarded) in TABLES {
            let options = options(table, is_guarded);
            let changelog = Changelog::open(database(folder), TOPIC, &options).expect("a table");
            let mut runner = Runner::new(changelog, Stepping(BusSource::new(bus, TOPIC)));
            runner.catch_up().await.expect("all");
        }
    });
}

fn judge(folder: &Path, seed: u64) {
    let events = log(folder);
    let connection = prombus_sqlite::open(folder.join("tables.db")).expect("a database");
    for (table, is_guarded) in TABLES {
        let mut expected = BTreeMap::new();
        for event in &events {
            let key = event.key().expect("a key").into_owned();
            if event.is_tombstone() {
                expected.remove(&key);
                continue;
            }
            let change: Change = serde_json::from_str(event.payload()).expect("a change");
            let there: Option<&(i64, i64, i64)> = expected.get(&key);
            let is_older = there.is_some_and(|(version, ..)| change.version < *version);
            if !is_guarded || !is_older {
                expected.insert(key, (change.version, change.amount, event.seq() as i64));
            }
        }
        let mut query = connection
            .prepare(&format!("SELECT key, version, amount, seq FROM {table}"))
            .expect("a query");
        let rows = query.query_map([], |row| {
            Ok((row.get(0)?, (row.get(1)?, row.get(2)?, row.get(3)?)))
        });
        let found: Result<BTreeMap<String, (i64, i64, i64)>, _> = rows.expect("rows").collect();
        assert_eq!(found.expect("rows"), expected, "seed {seed}, {table}");
    }
}
