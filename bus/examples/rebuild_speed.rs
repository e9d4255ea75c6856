//! How long it takes to have the table of a topic in memory: folded from its whole log, loaded from the latest event of
//! each key, and loaded from a snapshot with what came behind it.
//!
//!     cargo run --release -p prombus --example rebuild_speed -- 10000000 100000

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "it measures durations for people to read, prints them, and stops where it cannot go on"
)]

use prombus::{Bus, BusOptions, Durability, PublishOptions, TopicConfig};
use prombus_store::file::FileStore;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

const TOPIC: &str = "process.state";
const BATCH_EVENTS: usize = 1_000;
/// Published after the snapshot.
const TAIL_EVENTS: usize = 10_000;

type Table = HashMap<String, String>;

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| {
        arguments
            .next()
            .map_or(default, |text| text.parse().expect("a number"))
    };
    let (events, keys): (usize, usize) = (number(1_000_000), number(10_000));
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = FileStore::open(folder.path()).expect("a store");
    let bus = Bus::open(Arc::new(store), BusOptions::default()).expect("good options");
    let config = TopicConfig {
        durability: Durability::Os,
        ..TopicConfig::default()
    };
    bus.create_topic(TOPIC, &config).await.expect("made");
    publish(&bus, events - TAIL_EVENTS, keys).await;

    let began = Instant::now();
    let snapshots = TopicConfig {
        snapshot_topic: Some("process.state.snapshot".to_owned()),
        snapshot_interval_ms: Some(1 << 40),
        ..config
    };
    bus.configure_topic(TOPIC, &snapshots)
        .await
        .expect("changed");
    bus.snapshot(TOPIC).await.expect("a snapshot");
    let records = bus.topic("process.state.snapshot").expect("made").events;
    println!(
        "taking the first snapshot: {:.2} s, {records} records",
        began.elapsed().as_secs_f64()
    );
    publish(&bus, TAIL_EVENTS, keys).await;

    let began = Instant::now();
    let folded = fold(&bus, Table::new(), 1).await;
    let fold_s = began.elapsed().as_secs_f64();
    println!(
        "folding {events} events: {fold_s:.2} s, {} keys",
        folded.len()
    );
    let began = Instant::now();
    let loaded = load(&bus).await;
    let load_s = began.elapsed().as_secs_f64();
    assert!(loaded == folded, "they are the same");
    println!(
        "snapshot and {TAIL_EVENTS} events behind it: {load_s:.3} s, {:.1} times as fast",
        fold_s / load_s
    );
    let began = Instant::now();
    let mut count = 0;
    let mut range = prombus::KeyRange {
        limit: 10_000,
        ..prombus::KeyRange::default()
    };
    loop {
        let page = bus.latest_page(TOPIC, &range).await.expect("a page");
        count += page.events.len();
        match page.next {
            Some(next) => range.after = Some(next),
            None => break,
        }
    }
    let pages_s = began.elapsed().as_secs_f64();
    println!(
        "latest of {count} keys from the topic itself: {pages_s:.3} s, {:.1} times as fast",
        fold_s / pages_s
    );
}

async fn publish(bus: &Bus, events: usize, keys: usize) {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut batch = bus.batch();
    for number in 0..events {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let key = format!("host:name:{}", state % keys as u64);
        let payload = format!(
            r#"{{"status":"alive","cpu_pct":{},"mem_mb":{number},"name":"name","host":"host","last_seen_ts":1700000000000}}"#,
            state % 100
        );
        let options = PublishOptions {
            key: Some(&key),
            ..PublishOptions::default()
        };
        batch.add(TOPIC, &payload, &options);
        if batch.len() == BATCH_EVENTS {
            let full = std::mem::replace(&mut batch, bus.batch());
            bus.publish_batch(full).await;
        }
    }
    bus.publish_batch(batch).await;
}

async fn load(bus: &Bus) -> Table {
    let mut table = Table::new();
    let mut loading = bus.load_state(TOPIC).await.expect("it is there");
    assert!(loading.is_from_snapshot());
    let from_seq = loading.position() + 1;
    while let Some(page) = loading.next_page().await.expect("a page") {
        table.extend(page.into_iter().map(|state| (state.key, state.payload)));
    }
    fold(bus, table, from_seq).await
}

async fn fold(bus: &Bus, mut table: Table, from_seq: u64) -> Table {
    let mut follow = bus.follow(TOPIC, from_seq).expect("it is there");
    while let Some(page) = follow.read_on().await.expect("a page") {
        for event in page.events {
            let Some(key) = event.key() else { continue };
            match event.is_tombstone() {
                true => drop(table.remove(&*key)),
                false => drop(table.insert(key.into_owned(), event.payload().to_owned())),
            }
        }
    }
    table
}
