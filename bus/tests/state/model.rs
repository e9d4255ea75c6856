//! The plain fold that everything is compared with, and what the tests do over and over.

use super::lossy_store::{LossyStore, VirtualClock};
use prombus::{Bus, BusOptions, KeyState, LoadState, PublishOptions, TopicConfig};
use prombus_store::memory::MemoryStore;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const TOPIC: &str = "t";
pub(crate) const SNAPSHOT: &str = "t.snapshot";

/// A table: each key with its payload.
pub(crate) type Table = BTreeMap<String, String>;

/// A store that outlives buses, and the options of those.
pub(crate) struct Ground {
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) options: BusOptions,
}

/// Everything that was ever published to a topic.
#[derive(Debug, Default, Clone)]
pub(crate) struct Model {
    pub(crate) events: Vec<ModelEvent>,
}

#[derive(Debug, Clone)]
pub(crate) struct ModelEvent {
    pub(crate) seq: u64,
    pub(crate) ts: u64,
    pub(crate) key: String,
    /// `None` where it deletes the key.
    pub(crate) payload: Option<String>,
}

impl Ground {
    pub(crate) fn new() -> Self {
        let clock = VirtualClock::new();
        Self {
            store: Arc::new(MemoryStore::new(clock.clone())),
            options: BusOptions {
                clock,
                ..BusOptions::default()
            },
        }
    }

    pub(crate) fn bus(&self) -> Bus {
        let store = LossyStore::healthy(&self.store);
        Bus::open(store, self.options.clone()).expect("good options")
    }
}

impl Model {
    /// Publishes, and remembers it.
    pub(crate) async fn publish(&mut self, bus: &Bus, key: &str, payload: Option<&str>) {
        self.publish_at(bus, key, payload, None).await;
    }

    pub(crate) async fn publish_at(
        &mut self,
        bus: &Bus,
        key: &str,
        payload: Option<&str>,
        ts: Option<u64>,
    ) {
        let options = PublishOptions {
            key: Some(key),
            ts,
            ..PublishOptions::default()
        };
        let text = payload.unwrap_or("null");
        let published = bus.publish_text(TOPIC, text, &options).await;
        let published = published.expect("it is stored");
        self.events.push(ModelEvent {
            seq: published.seq,
            ts: published.ts,
            key: key.to_owned(),
            payload: payload.map(str::to_owned),
        });
    }

    /// The table after all events that are wanted, in the order of positions.
    pub(crate) fn fold(&self, wanted: impl Fn(&ModelEvent) -> bool) -> Table {
        let mut table = Table::new();
        for event in self.events.iter().filter(|event| wanted(event)) {
            apply(&mut table, &event.key, event.payload.as_deref());
        }
        table
    }

    pub(crate) fn now(&self) -> Table {
        self.fold(|_| true)
    }

    pub(crate) fn at(&self, ts: u64) -> Table {
        self.fold(|event| event.ts <= ts)
    }

    /// Asserts that a table is that of a position. Of keys that changed later compaction may have taken what they were,
    /// so these may have an earlier state, or none.
    pub(crate) fn check_at(&self, table: &Table, position: u64, seed: u64) {
        let expected = self.fold(|event| event.seq <= position);
        let later: BTreeSet<&str> = self
            .events
            .iter()
            .filter(|event| event.seq > position)
            .map(|event| event.key.as_str())
            .collect();
        for (key, payload) in &expected {
            let found = table.get(key);
            let fits = found == Some(payload) || later.contains(key.as_str());
            assert!(
                fits,
                "seed {seed}: {key} is {found:?} at {position}, not {payload}"
            );
        }
        for (key, payload) in table {
            let was = |event: &ModelEvent| {
                event.seq <= position
                    && event.key == *key
                    && event.payload.as_ref() == Some(payload)
            };
            let fits = expected.get(key) == Some(payload)
                || later.contains(key.as_str()) && self.events.iter().any(was);
            assert!(fits, "seed {seed}: {key} is {payload} at {position}");
        }
    }
}

pub(crate) fn apply(table: &mut Table, key: &str, payload: Option<&str>) {
    match payload {
        Some(payload) => table.insert(key.to_owned(), payload.to_owned()),
        None => table.remove(key),
    };
}

/// A topic with snapshots that are made only when they are asked for: the first is due at once, the next in a year.
pub(crate) fn with_snapshots() -> TopicConfig {
    TopicConfig {
        compaction: true,
        snapshot_topic: Some(SNAPSHOT.to_owned()),
        snapshot_interval_ms: Some(365 * 24 * 60 * 60 * 1000),
        ..TopicConfig::default()
    }
}

pub(crate) async fn sleep(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

/// Reads a table to its end.
pub(crate) async fn load(loading: &mut LoadState) -> Table {
    let mut table = Table::new();
    while let Some(page) = loading.next_page().await.expect("a page") {
        for state in page {
            let before = table.insert(state.key.clone(), state.payload);
            assert_eq!(before, None, "{} stands once", state.key);
        }
    }
    table
}

/// Loads and follows to the tail; compares the table with the fold at its position, and each event with the log.
pub(crate) async fn load_and_follow(bus: &Bus, model: &Model, seed: u64) -> Table {
    let mut loading = bus.load_state(TOPIC).await.expect("it is there");
    let mut table = load(&mut loading).await;
    let position = loading.position();
    model.check_at(&table, position, seed);
    let mut follow = loading.follow().expect("it goes on");
    let mut next = position + 1;
    while let Some(page) = follow.read_on().await.expect("a page") {
        for event in page.events {
            assert!(event.seq() >= next, "seed {seed}: no overlap");
            next = event.seq() + 1;
            let payload = Some(event.payload()).filter(|_| !event.is_tombstone());
            apply(&mut table, &event.key().expect("a key"), payload);
        }
    }
    table
}

pub(crate) fn table_of(states: Vec<KeyState>) -> Table {
    let states = states.into_iter();
    states.map(|state| (state.key, state.payload)).collect()
}
