//! Publishes heartbeats and subscribes to them with a handler that crashes once: the event comes again, and in the end
//! the group's cursor is behind the last one. The data is kept, so a second run goes on where the first one ended.
//!
//! Run it with `cargo run --release -p prombus --example heartbeats`.
#![allow(clippy::print_stdout, reason = "an example talks to whoever runs it")]

use prombus::{Bus, BusOptions, Delivery, PublishOptions, StartAt, SubscribeOptions, Topic};
use prombus_log::FileStore;
use prombus_store::Store;
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;
use tokio::sync::mpsc;

#[derive(Debug, Serialize, Deserialize)]
struct Heartbeat {
    host: String,
    name: String,
    pid: u32,
    cpu_pct: f64,
}

/// A topic and the type of its payloads, declared once.
const BEATS: Topic<Heartbeat> = Topic::new("heartbeat.received");
const BEATS_SENT: u32 = 5;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join("prombus-heartbeats");
    let (store, report) = FileStore::open(&folder)?;
    println!("opened     {} {report:?}", store.status().url);
    let bus = Bus::open(Arc::new(store), BusOptions::default())?;

    for pid in 1..=BEATS_SENT {
        let beat = Heartbeat {
            host: "web-1".to_owned(),
            name: "api".to_owned(),
            pid,
            cpu_pct: f64::from(pid) * 1.5,
        };
        let key = format!("{}:{}:{}", beat.host, beat.name, beat.pid);
        let options = PublishOptions {
            key: Some(&key),
            ..PublishOptions::default()
        };
        let published = BEATS.publish(&bus, &beat, &options).await?;
        println!("published  seq {} id {}", published.seq, published.id);
    }

    let (handled, mut all_handled) = mpsc::channel(16);
    let handler = move |beat: Heartbeat, delivery: Delivery| {
        let handled = handled.clone();
        async move {
            let attempt = delivery.context.attempt;
            println!("handling   pid {} attempt {attempt}", beat.pid);
            assert!(beat.pid != 3 || attempt > 1, "the handler crashes at pid 3");
            let _ = handled.send(beat.pid).await;
            Ok::<_, Infallible>(())
        }
    };
    let options = SubscribeOptions {
        from: StartAt::Earliest,
        ..SubscribeOptions::default()
    };
    let consumer = BEATS
        .subscribe_with(&bus, "dashboard", options, handler)
        .await?;
    for _ in 0..BEATS_SENT {
        all_handled.recv().await;
    }
    consumer.stop().await;

    let cursor = bus.cursor(BEATS.name(), "dashboard").await?;
    println!("cursor     {}", serde_json::to_string(&cursor)?);
    println!(
        "explained  {}",
        bus.explain(BEATS.name(), "dashboard").await?.sentence
    );
    bus.close().await?;
    Ok(())
}
