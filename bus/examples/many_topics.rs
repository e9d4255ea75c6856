//! How a pattern over many topics behaves: how long its first event takes, and what memory it costs.
//!
//! Run it with `cargo run --release -p prombus --example many_topics -- 100000`.
#![allow(clippy::print_stdout, reason = "an example talks to whoever runs it")]
#![allow(
    clippy::disallowed_methods,
    reason = "durations that people read are measured here"
)]

use prombus::{Bus, BusOptions, PublishOptions, StartAt, SubscribeOptions};
use prombus_log::FileStore;
use prombus_store::Store;
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

const EVENTS_AT_A_TIME: usize = 1_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let topics: usize = match std::env::args().nth(1) {
        Some(count) => count.parse()?,
        None => 100_000,
    };
    let folder = std::env::temp_dir().join(format!("prombus-many-topics-{}", std::process::id()));
    let (store, _) = FileStore::open(&folder)?;
    let store: Arc<dyn Store> = Arc::new(store);
    let bus = Bus::open(store, BusOptions::default())?;
    for first in (0..topics).step_by(EVENTS_AT_A_TIME) {
        let mut batch = bus.batch();
        for topic in first..topics.min(first + EVENTS_AT_A_TIME) {
            batch.add(&format!("many.t{topic}"), "1", &PublishOptions::default());
        }
        for result in bus.publish_batch(batch).await {
            result?;
        }
    }
    println!(
        "{topics} topics with an event each: {} kB resident",
        resident_kb()
    );
    for from in [StartAt::Latest, StartAt::Earliest] {
        let began = Instant::now();
        let options = SubscribeOptions {
            from: from.clone(),
            ..SubscribeOptions::default()
        };
        let group = format!("{from:?}");
        let subscription = bus.subscribe("many.*", &group, options).await?;
        let subscribed = began.elapsed();
        bus.publish_text("many.t7", "2", &PublishOptions::default())
            .await?;
        let Some(delivery) = subscription.next().await else {
            return Err("the subscription ended".into());
        };
        println!(
            "from {from:?}: subscribed after {subscribed:?}, first event ({} {}) after {:?}, {} kB resident",
            delivery.event.topic(),
            delivery.event.seq(),
            began.elapsed(),
            resident_kb()
        );
        delivery.ack();
    }
    bus.close().await?;
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

/// Resident memory of this process, where the system tells it.
fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}
