//! What the rows do with a bus: opening one on either store, publishing, and taking deliveries.

use crate::Outcome;
use crate::log_work::{BATCH_EVENTS, options};
use crate::scale::Scale;
use prombus::{Bus, BusOptions, Delivery, Durability, PublishOptions, Subscription, TopicConfig};
use prombus_log::{FileStore, LogOptions};
use prombus_store::memory::MemoryStore;
use prombus_store::{Store, SystemClock};
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;

/// The events that a consumer takes and acknowledges at a time.
const TAKEN_AT_A_TIME: usize = 1_000;

/// A runtime as an application has it: as many threads as the machine has cores.
pub(crate) fn runtime() -> Outcome<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    Ok(builder.enable_time().build()?)
}

/// Waits for something that needs no runtime.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> Outcome<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    Ok(runtime.block_on(work))
}

/// Runs the work as a task of the runtime, as an application does, and not beside it.
pub(crate) fn run<T: Send + 'static>(
    runtime: &Runtime,
    work: impl Future<Output = Outcome<T>> + Send + 'static,
) -> Outcome<T> {
    runtime.block_on(runtime.spawn(work))?
}

/// A bus on an empty memory store with room for `max_bytes`.
pub(crate) fn memory_bus(max_bytes: u64) -> Outcome<Bus> {
    let store = MemoryStore::with_limit(Arc::new(SystemClock), max_bytes);
    bus_on(Arc::new(store))
}

/// A bus on the folder at `path`.
pub(crate) fn file_bus(path: &Path, scale: &Scale) -> Outcome<Bus> {
    let (store, _) = FileStore::open_with(path, Arc::new(SystemClock), options(scale))?;
    bus_on(Arc::new(store))
}

/// The same, where nothing is ever compacted, so that the log stays whole.
pub(crate) fn uncompacted_file_bus(path: &Path, scale: &Scale) -> Outcome<Bus> {
    let options = LogOptions {
        maintain_interval_ms: u64::from(u32::MAX),
        ..options(scale)
    };
    let (store, _) = FileStore::open_with(path, Arc::new(SystemClock), options)?;
    bus_on(Arc::new(store))
}

/// A bus on the folder at `path`, where what is published is synced before it is acknowledged.
pub(crate) fn synced_file_bus(path: &Path, scale: &Scale) -> Outcome<Bus> {
    let (store, _) = FileStore::open_with(path, Arc::new(SystemClock), options(scale))?;
    Ok(Bus::open(Arc::new(store), BusOptions::default())?)
}

/// Publishes events in batches, each of which is waited for. Topics take turns within a batch.
pub(crate) async fn publish<T: AsRef<str>>(
    bus: &Bus,
    topics: &[T],
    payloads: &[String],
    events: u64,
) -> Outcome<()> {
    let options = PublishOptions::default();
    let mut turns = topics.iter().cycle();
    for _ in 0..events / BATCH_EVENTS {
        let mut batch = bus.batch();
        for (topic, payload) in turns.by_ref().zip(payloads) {
            batch.add(topic.as_ref(), payload, &options);
        }
        for published in bus.publish_batch(batch).await {
            published?;
        }
    }
    Ok(())
}

/// Takes deliveries and acknowledges them until there were `events`.
pub(crate) async fn consume(subscription: &Subscription, events: u64) -> Outcome<()> {
    let mut left = events;
    while left > 0 {
        let deliveries = subscription.next_batch(TAKEN_AT_A_TIME).await;
        if deliveries.is_empty() {
            return Err(format!("no more deliveries, {left} early").into());
        }
        left = left.saturating_sub(deliveries.len() as u64);
        Delivery::ack_all(deliveries);
    }
    Ok(())
}

/// The same for one of several that share what is left.
pub(crate) async fn consume_all(subscription: &Subscription, left: &AtomicU64) -> Outcome<()> {
    while left.load(Ordering::Relaxed) > 0 {
        let wait = Duration::from_millis(10);
        let taken = tokio::time::timeout(wait, subscription.next_batch(TAKEN_AT_A_TIME));
        // Others may have taken the last ones.
        let Ok(deliveries) = taken.await else {
            continue;
        };
        if deliveries.is_empty() {
            return Err("no more deliveries".into());
        }
        left.fetch_sub(deliveries.len() as u64, Ordering::Relaxed);
        Delivery::ack_all(deliveries);
    }
    Ok(())
}

/// New topics are made with `os` durability: what is measured is the bus, not the disk.
pub(crate) fn bus_on(store: Arc<dyn Store>) -> Outcome<Bus> {
    let config = TopicConfig {
        durability: Durability::Os,
        ..TopicConfig::default()
    };
    let options = BusOptions {
        topic_defaults: vec![("**".to_owned(), config)],
        ..BusOptions::default()
    };
    Ok(Bus::open(store, options)?)
}
