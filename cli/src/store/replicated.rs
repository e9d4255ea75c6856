//! Stores on a shared log, with the node's copy in a folder.

use anyhow::Context;
use prombus::{Store, SystemClock};
use prombus_replicated::mongo::{MongoLog, MongoUrl};
use prombus_replicated::nats::{JetStreamLog, NatsUrl};
use prombus_replicated::{FolderCopy, Growth, Options, Rebuilt, ReplicatedStore, SharedLog};
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::Arc;

/// Where copies are unless the URL says otherwise; the name of the stream or the database follows.
const COPIES: &str = "prombus-copies";

/// Opens a store on a stream of JetStream.
pub(super) async fn on_jetstream(url: &str) -> anyhow::Result<Arc<dyn Store>> {
    let url = NatsUrl::parse(url)?;
    let log = JetStreamLog::open(&url, RandomState::new().hash_one("log")).await?;
    if let Some(warning) = &log.description().warning {
        tracing::warn!(url = url.without_credentials(), "{warning}");
    }
    let default = || [COPIES, &url.stream].iter().collect::<PathBuf>();
    let folder = url.copy.clone().unwrap_or_else(default);
    open(Arc::new(log), folder, url.growth).await
}

/// Opens a store in a database of MongoDB.
pub(super) async fn on_mongodb(url: &str) -> anyhow::Result<Arc<dyn Store>> {
    let url = MongoUrl::parse(url)?;
    let log = MongoLog::open(&url.connection).await?;
    if let Some(warning) = &log.description().warning {
        tracing::warn!(url = log.description().url, "{warning}");
    }
    let default = || [COPIES, &url.database].iter().collect::<PathBuf>();
    let folder = url.copy.clone().unwrap_or_else(default);
    open(Arc::new(log), folder, url.growth).await
}

async fn open(
    log: Arc<dyn SharedLog>,
    folder: PathBuf,
    growth: Growth,
) -> anyhow::Result<Arc<dyn Store>> {
    let log_id = log.description().log_id;
    let (copy, rebuilt) = FolderCopy::open(&folder, log_id)?;
    let reason = match rebuilt {
        None => "the copy goes on where it was",
        Some(Rebuilt::New) => "the copy is new and made from the shared log",
        Some(Rebuilt::Older) => "the copy is of an older version and made anew from the shared log",
        Some(Rebuilt::Damaged) => "the copy is damaged and made anew from the shared log",
    };
    tracing::info!(folder = %folder.display(), "{reason}");
    let url = log.description().url.clone();
    let clock = Arc::new(SystemClock);
    let options = Options {
        node: Some(copy.node()),
        ..growth.apply(Options::default())
    };
    let opened = ReplicatedStore::open(log, Arc::new(copy), clock, options).await;
    let store = opened.with_context(|| format!("cannot open the store {url}"))?;
    let replication = store.replication();
    tracing::info!(
        url,
        applied = replication.applied,
        first = replication.first,
        snapshot = replication.snapshot,
        "the copy has caught up"
    );
    Ok(Arc::new(store))
}
