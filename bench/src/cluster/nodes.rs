//! Nodes of a cluster in this process, and tasks that publish on them.

use super::servers::NatsServers;
use crate::Outcome;
use crate::log_work::draft;
use prombus_replicated::nats::{JetStreamLog, NatsUrl};
use prombus_replicated::{FolderCopy, Options, ReplicatedStore, SharedLog};
use prombus_store::{Batch, Change, Durability, IfExists, Store, SystemClock, TopicOptions};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

pub(super) const TOPIC: &str = "bench";

/// Opens a node on a stream, with its copy in a folder.
pub(super) async fn on_nats(
    servers: &NatsServers,
    stream: &str,
    replicas: usize,
    copy: &Path,
    options: Options,
) -> Outcome<Arc<ReplicatedStore>> {
    let url = format!("nats://{}/{stream}?replicas={replicas}", servers.hosts);
    let log = JetStreamLog::open(&NatsUrl::parse(&url)?, 7).await?;
    open(Arc::new(log), copy, options).await
}

/// Opens a node on any shared log.
pub(super) async fn open(
    log: Arc<dyn SharedLog>,
    copy: &Path,
    options: Options,
) -> Outcome<Arc<ReplicatedStore>> {
    let (copy, _) = FolderCopy::open(copy, log.description().log_id)?;
    let options = Options {
        node: Some(copy.node()),
        ..options
    };
    let clock = Arc::new(SystemClock);
    let store = ReplicatedStore::open(log, Arc::new(copy), clock, options).await?;
    Ok(Arc::new(store))
}

/// Makes the topic that all rows publish to.
pub(super) async fn make_topic(store: &dyn Store) -> Outcome<()> {
    let mut batch = Batch::new();
    batch.change(Change::PutTopic {
        topic: TOPIC.into(),
        options: TopicOptions {
            durability: Durability::Os,
            ..TopicOptions::default()
        },
        if_exists: IfExists::Keep,
    });
    store.commit(batch).await?;
    Ok(())
}

/// Publishes single events with so many in flight on each node; events per second of all together.
pub(super) async fn publish(
    nodes: &[Arc<ReplicatedStore>],
    in_flight: usize,
    events: u64,
    payload: &str,
) -> Outcome<f64> {
    let left = Arc::new(AtomicU64::new(events));
    let topic: Arc<str> = TOPIC.into();
    let payload: Arc<str> = payload.into();
    let started = Instant::now();
    let mut tasks = Vec::new();
    for node in nodes {
        for _ in 0..in_flight {
            let (node, left) = (node.clone(), left.clone());
            let (topic, payload) = (topic.clone(), payload.clone());
            tasks.push(tokio::spawn(async move {
                while take_one(&left) {
                    let mut batch = Batch::new();
                    batch.publish(&topic, &draft(&payload));
                    node.commit(batch).await?;
                }
                Ok::<(), prombus_store::CommitError>(())
            }));
        }
    }
    for task in tasks {
        task.await??;
    }
    Ok(events as f64 / started.elapsed().as_secs_f64())
}

/// Publishes events in batches of a thousand, one after the other.
pub(super) async fn fill(node: &ReplicatedStore, events: u64, payload: &str) -> Outcome<()> {
    let topic: Arc<str> = TOPIC.into();
    let mut left = events;
    while left > 0 {
        let mut batch = Batch::new();
        for _ in 0..left.min(1_000) {
            batch.publish(&topic, &draft(payload));
        }
        node.commit(batch).await?;
        left -= left.min(1_000);
    }
    Ok(())
}

/// Whether there is one left to publish.
pub(super) fn take_one(left: &AtomicU64) -> bool {
    let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
        left.checked_sub(1)
    });
    taken.is_ok()
}
