//! The replicated store: commits go to the shared log, reads to the node's own copy.

use crate::applier::{Applier, HIDDEN};
use crate::copy::LocalCopy;
use crate::message::{Kind, OVERHEAD_BYTES};
use crate::queue::{Queue, Work};
use crate::runner::Runner;
use crate::shared_log::{Bounds, FollowError, SharedLog, Unavailable};
use crate::snapshot::load;
use crate::state::{Options, Replication, SharedState};
use crate::trims;
use prombus_store::LockExt;
use prombus_store::{
    Answer, Batch, Clock, CommitError, CopyProgress, Find, Keyed, LatestEvent, NodeBoot, Page,
    ReadError, ReadFrom, ReadLimit, Receipt, Store, StoreStatus, TailAdvances, TailWatch,
    TopicInfo, TopicsWatch,
};
use std::future::ready;
use std::sync::{Arc, Mutex};
use tokio::task::JoinHandle;

/// A store whose commits are the messages of a shared log.
pub struct ReplicatedStore {
    log: Arc<dyn SharedLog>,
    local: Arc<dyn LocalCopy>,
    copy: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    queue: Arc<Queue>,
    state: Arc<SharedState>,
    node: NodeBoot,
    runner: Mutex<Option<JoinHandle<()>>>,
}

/// Why a replicated store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The shared log does not answer.
    #[error("the shared log cannot be reached: {0}")]
    Unavailable(#[from] Unavailable),
    /// The copy does not fit the log: the log was purged, made anew, or lost something.
    #[error("the copy cannot follow the shared log: {0}")]
    Follow(#[from] FollowError),
    /// The copy cannot be read.
    #[error("the copy cannot be read: {0}")]
    Copy(#[from] ReadError),
    /// Something in the log cannot be applied by this version, or the copy failed.
    #[error("{cause}")]
    Ended {
        /// What it was.
        cause: Arc<str>,
    },
}

impl ReplicatedStore {
    /// Opens a store on a shared log and catches up with it.
    pub async fn open(
        log: Arc<dyn SharedLog>,
        copy: Arc<dyn LocalCopy>,
        clock: Arc<dyn Clock>,
        options: Options,
    ) -> Result<Self, OpenError> {
        let bounds = log.bounds().await?;
        let applier = open_copy(&log, &copy, bounds).await?;
        let room = log.description().max_message_bytes;
        let room = room.saturating_sub(OVERHEAD_BYTES);
        let (queue, state) = (Arc::new(Queue::new(room)), Arc::new(SharedState::new()));
        state.note_bounds(bounds);
        state.note_applied(&applier);
        let both = (queue.clone(), state.clone());
        let node = NodeBoot {
            node: options.node.unwrap_or(options.boot),
            boot: options.boot,
        };
        let store = copy.store().clone();
        let runner = Runner::new(
            log.clone(),
            applier,
            copy.clone(),
            clock.clone(),
            both,
            options,
        );
        let opened = Self {
            log,
            local: copy,
            copy: store,
            clock,
            queue,
            state,
            node,
            runner: Mutex::new(Some(tokio::spawn(runner.run()))),
        };
        if !opened.state.wait_for(bounds.last).await {
            let cause = opened.queue.failure();
            return Err(OpenError::Ended {
                cause: cause.unwrap_or_else(|| "the node's task has ended".into()),
            });
        }
        Ok(opened)
    }

    /// How far this node is.
    pub fn replication(&self) -> Replication {
        self.state.replication()
    }

    /// Ends the node's task without finishing anything, as a kill would.
    pub fn abort(&self) {
        let mut runner = self.runner.guard();
        if let Some(runner) = runner.take() {
            runner.abort();
        }
    }

    /// What there is behind all commits that were asked for.
    fn behind_commits<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Store) -> Answer<T, ReadError> + Send + 'static,
    ) -> Answer<T, ReadError> {
        if self.queue.is_settled() {
            return read(&*self.copy);
        }
        let settled = self.queue.behind_accepted();
        let copy = self.copy.clone();
        Box::pin(async move {
            settled.await;
            read(&*copy).await
        })
    }
}

/// The copy where it can follow the log: as it is, or made anew from a snapshot where it is empty or what it needs next was
/// trimmed.
async fn open_copy(
    log: &Arc<dyn SharedLog>,
    copy: &Arc<dyn LocalCopy>,
    bounds: Bounds,
) -> Result<Applier, OpenError> {
    let applier = Applier::open(copy.clone()).await?;
    let (applied, wanted) = (applier.progress().position, applier.follow_after() + 1);
    if applied > bounds.last {
        let last = bounds.last;
        return Err(FollowError::Behind { applied, last }.into());
    }
    let is_trimmed = wanted < bounds.first;
    if !is_trimmed && (applied > 0 || bounds.last == 0) {
        return Ok(applier);
    }
    match load::load(log.clone(), copy.clone(), bounds).await {
        Ok(snapshot) => {
            tracing::info!(snapshot, "the copy is made from a snapshot");
            Ok(Applier::open(copy.clone()).await?)
        }
        Err(error) if is_trimmed => {
            tracing::error!(%error, "no snapshot can be loaded");
            let first = bounds.first;
            Err(FollowError::Trimmed { wanted, first }.into())
        }
        Err(_) => Ok(applier),
    }
}

impl Store for ReplicatedStore {
    fn commit(&self, batch: Batch) -> Answer<Receipt, CommitError> {
        if let Err(limit) = batch.check_record_sizes() {
            return Box::pin(ready(Err(limit.into())));
        }
        self.queue.push(Work::Commit(batch))
    }

    fn barrier(&self) -> Answer<(), ReadError> {
        let bounds = self.log.bounds();
        let state = self.state.clone();
        Box::pin(async move {
            let bounds = bounds.await.map_err(|error| ReadError::Failed {
                cause: format!("the shared log cannot be reached: {error}").into(),
            })?;
            if state.wait_for(bounds.last).await {
                Ok(())
            } else {
                Err(ReadError::Failed {
                    cause: "the node does not follow the shared log any more".into(),
                })
            }
        })
    }

    fn read(
        &self,
        topic: &Arc<str>,
        from: ReadFrom<'_>,
        limit: ReadLimit,
    ) -> Answer<Page, ReadError> {
        self.copy.read(topic, from, limit)
    }

    fn find(&self, topic: &Arc<str>, what: Find<'_>) -> Answer<Option<u64>, ReadError> {
        self.copy.find(topic, what)
    }

    fn latest(
        &self,
        topic: &Arc<str>,
        keys: Vec<String>,
        at_ts: Option<u64>,
    ) -> Answer<Vec<LatestEvent>, ReadError> {
        self.copy.latest(topic, keys, at_ts)
    }

    fn watch(&self, topic: &Arc<str>) -> TailWatch {
        self.copy.watch(topic)
    }

    fn watch_topics(&self) -> TopicsWatch {
        self.copy.watch_topics()
    }

    fn watch_tails(&self) -> TailAdvances {
        self.copy.watch_tails()
    }

    fn topic(&self, topic: &str) -> Option<TopicInfo> {
        self.copy.topic(topic)
    }

    fn incarnation(&self, topic: &str) -> Option<u64> {
        self.copy.incarnation(topic)
    }

    fn topics(&self) -> Vec<TopicInfo> {
        self.copy.topics()
    }

    fn get(&self, key: &str) -> Answer<Option<Keyed>, ReadError> {
        if key.starts_with(HIDDEN) {
            return Box::pin(ready(Ok(None)));
        }
        let key = key.to_owned();
        self.behind_commits(move |copy| copy.get(&key))
    }

    fn list(&self, prefix: &str) -> Answer<Vec<(Arc<str>, Keyed)>, ReadError> {
        let prefix = prefix.to_owned();
        let listed = self.behind_commits(move |copy| copy.list(&prefix));
        Box::pin(async move {
            let mut records = listed.await?;
            records.retain(|(key, _)| !key.starts_with(HIDDEN));
            Ok(records)
        })
    }

    fn maintain(&self) -> Answer<(), CommitError> {
        let settled = self.queue.behind_accepted();
        let (copy, queue) = (self.local.clone(), self.queue.clone());
        let now_ms = self.clock.now_ms();
        Box::pin(async move {
            settled.await;
            let trims = copy.due_trims(now_ms).await?;
            let maintenance = Work::Mark(Kind::Maintenance, trims::encode(&trims));
            queue.push(maintenance).await.map(|_| ())
        })
    }

    fn status(&self) -> StoreStatus {
        let description = self.log.description();
        let replication = self.state.replication();
        StoreStatus {
            copy: Some(CopyProgress {
                applied: replication.applied,
                last: replication.last,
                first: replication.first,
                log_bytes: replication.log_bytes,
                snapshot: replication.snapshot,
                snapshot_at_ms: replication.snapshot_at_ms,
                bytes_since_snapshot: replication.bytes_since_snapshot,
                round_trip_micros: replication.round_trip_micros,
            }),
            url: description.url.clone(),
            durability: description.durability.clone(),
            failed: self.queue.failure().or_else(|| self.state.rejection()),
            ..self.copy.status()
        }
    }

    fn shared_as(&self) -> Option<NodeBoot> {
        Some(self.node)
    }

    fn close(&self) -> Answer<(), CommitError> {
        self.queue.close();
        let runner = self.runner.guard().take();
        let copy = self.copy.clone();
        Box::pin(async move {
            if let Some(runner) = runner {
                // A task that panicked has nothing left to finish.
                let _ = runner.await;
            }
            copy.close().await
        })
    }
}

impl Drop for ReplicatedStore {
    fn drop(&mut self) {
        self.abort();
    }
}
