//! Stores on a shared log, with the node's copy in a folder.

use anyhow::Context;
use prombus::{Store, SystemClock};
use prombus_replicated::mongo;
use prombus_replicated::mongo::{MongoLog, MongoUrl};
use prombus_replicated::nats::OpenStreamError;
use prombus_replicated::nats::{JetStreamLog, NatsUrl};
use prombus_replicated::{
    FolderCopy, LocalCopy, OpenError, Options, Rebuilt, ReplicatedStore, SharedLog, UrlOptions,
};
use std::fmt::Display;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Where copies are unless the URL says otherwise; the name of the stream or the database follows.
const COPIES: &str = "prombus-copies";

/// How long after a failure the shared log is tried again at start.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// Opens a store on a stream of JetStream.
pub(super) async fn on_jetstream(url: &str) -> anyhow::Result<Arc<dyn Store>> {
    let url = NatsUrl::parse(url)?;
    let log_id = RandomState::new().hash_one("log");
    let log = retry(url.options.wait(), OpenStreamError::is_retryable, || {
        JetStreamLog::open(&url, log_id)
    });
    let log = log.await?;
    if let Some(warning) = &log.description().warning {
        tracing::warn!(url = url.without_credentials(), "{warning}");
    }
    let default = || [COPIES, &url.stream].iter().collect::<PathBuf>();
    let folder = url.copy.clone().unwrap_or_else(default);
    open(Arc::new(log), folder, url.options).await
}

/// Opens a store in a database of MongoDB.
pub(super) async fn on_mongodb(url: &str) -> anyhow::Result<Arc<dyn Store>> {
    let url = MongoUrl::parse(url)?;
    let log = retry(url.options.wait(), mongo::OpenError::is_retryable, || {
        MongoLog::open(&url.connection)
    });
    let log = log.await?;
    if let Some(warning) = &log.description().warning {
        tracing::warn!(url = log.description().url, "{warning}");
    }
    let default = || [COPIES, &url.database].iter().collect::<PathBuf>();
    let folder = url.copy.clone().unwrap_or_else(default);
    open(Arc::new(log), folder, url.options).await
}

async fn open(
    log: Arc<dyn SharedLog>,
    folder: PathBuf,
    url_options: UrlOptions,
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
        ..url_options.apply(Options::default())
    };
    let copy: Arc<dyn LocalCopy> = Arc::new(copy);
    let is_retryable = |error: &OpenError| matches!(error, OpenError::Unavailable(_));
    let opened = retry(url_options.wait(), is_retryable, || {
        ReplicatedStore::open(log.clone(), copy.clone(), clock.clone(), options.clone())
    });
    let store = opened
        .await
        .with_context(|| format!("cannot open the store {url}"))?;
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

/// Opens something until it goes well, until it fails for good, or until `wait` is over: servers of the shared log may be
/// starting, or electing a leader.
async fn retry<T, E: Display>(
    wait: Duration,
    is_retryable: impl Fn(&E) -> bool,
    open: impl AsyncFn() -> Result<T, E>,
) -> Result<T, E> {
    let until = Instant::now() + wait;
    let mut logged = String::new();
    loop {
        match open().await {
            Err(error) if is_retryable(&error) && Instant::now() < until => {
                let cause = error.to_string();
                if cause != logged {
                    let seconds = (until - Instant::now()).as_secs();
                    tracing::warn!("{cause}; trying again for {seconds} s");
                    logged = cause;
                }
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
            opened => return opened,
        }
    }
}
