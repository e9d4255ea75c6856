//! The outbox against a bus in memory and a publisher that does as it is told.

mod draining;
mod rows;

use super::*;
use prombus::{Bus, BusOptions, PublishOptions, ReadFrom, ReadLimit};
use prombus_connect::outbox::OutboxRow as Row;
use prombus_store::ManualClock;
use prombus_store::memory::MemoryStore;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

const TOPIC: &str = "orders.made";

fn bus() -> Bus {
    let store = Arc::new(MemoryStore::new(Arc::new(prombus::SystemClock)));
    Bus::open(store, BusOptions::default()).expect("a bus")
}

fn outbox(path: &Path) -> Connection {
    let connection = crate::open(path).expect("a database");
    Outbox::init(&connection).expect("an outbox");
    connection
}

fn add(connection: &Connection, payload: &str, key: Option<&str>) -> String {
    let options = PublishOptions {
        key,
        ..PublishOptions::default()
    };
    Outbox::add(connection, TOPIC, payload, &options).expect("added")
}

/// Ids and payloads of the topic, in order.
async fn stored(bus: &Bus) -> Vec<(String, String)> {
    let limit = ReadLimit {
        events: 100_000,
        bytes: 1 << 30,
    };
    let page = bus
        .store()
        .read(&TOPIC.into(), ReadFrom::Seq(1), limit)
        .await;
    let events = page.map(|page| page.events).unwrap_or_default();
    events
        .iter()
        .map(|event| (event.id().into_owned(), event.payload().to_owned()))
        .collect()
}

/// What a row says of itself.
fn state(connection: &Connection, id: &str) -> (String, i64, Option<String>) {
    let find = "SELECT state, attempts, error FROM prombus_outbox WHERE id = ?1";
    connection
        .query_row(find, [id], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .expect("a row")
}

/// Publishes nothing: fails the payloads it was told to, and remembers the order of the others.
#[derive(Debug, Default)]
struct Picky {
    failures: Mutex<BTreeMap<String, PublishFailure>>,
    taken: Mutex<Vec<String>>,
}

impl Picky {
    fn fail(&self, payload: &str, code: &str) {
        let failure = PublishFailure::new(code, "as it was told");
        self.failures
            .lock()
            .expect("a lock")
            .insert(payload.to_owned(), failure);
    }

    fn relent(&self) {
        self.failures.lock().expect("a lock").clear();
    }

    fn taken(&self) -> Vec<String> {
        self.taken.lock().expect("a lock").clone()
    }
}

impl Publish for Picky {
    async fn publish<P: Sync>(&self, rows: &[Row<P>]) -> Vec<Result<SentAt, PublishFailure>> {
        let failures = self.failures.lock().expect("a lock");
        let mut taken = self.taken.lock().expect("a lock");
        let each = rows.iter().map(|row| match failures.get(&row.payload) {
            Some(failure) => Err(failure.clone()),
            None => {
                taken.push(row.payload.clone());
                Ok(SentAt {
                    seq: taken.len() as u64,
                    duplicate: false,
                })
            }
        });
        each.collect()
    }
}

fn drainer(path: &Path, worker: &str, clock: &Arc<ManualClock>) -> Drainer {
    let options = DrainerOptions::new(worker);
    Outbox::drainer(outbox(path), options, clock.clone()).expect("a drainer")
}
