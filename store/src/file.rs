//! The store on the embedded log: `file:PATH`. What the log can answer from memory is answered at once; the rest goes
//! to tokio's blocking threads, so that no task waits for the disk.

use crate::tails::Tails;
use crate::{
    Answer, Batch, Clock, CommitError, Find, Keyed, MovedTopics, Page, Past, ReadError, ReadLimit,
    Receipt, Store, StoreStatus, StoredEvent, SystemClock, TailWatch, TimePage, TimeRange,
    TopicInfo, TopicsWatch,
};
use prombus_log::{Files, Listener, Log, LogOptions, OpenReport, OsFiles};
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::{Handle, RuntimeFlavor};

pub use prombus_log::OpenError;

/// A store in a folder.
pub struct FileStore {
    log: Arc<Log>,
    tails: Arc<Tails>,
    url: String,
}

impl FileStore {
    /// Opens the folder at `path`, or makes it, on the machine's clock.
    pub fn open(path: &Path) -> Result<(Self, OpenReport), OpenError> {
        Self::open_with(path, Arc::new(SystemClock), LogOptions::default())
    }

    /// Opens a folder with other limits or another clock.
    pub fn open_with(
        path: &Path,
        clock: Arc<dyn Clock>,
        options: LogOptions,
    ) -> Result<(Self, OpenReport), OpenError> {
        let url = format!("file:{}", path.display());
        let options = LogOptions {
            clock,
            entropy: RandomState::new().hash_one(&url),
            ..options
        };
        let files = Arc::new(OsFiles::open(path)?);
        Self::on_files(files, options, url)
    }

    /// Opens a store on any files, for tests with a disk that fails.
    pub fn on_files(
        files: Arc<dyn Files>,
        options: LogOptions,
        url: String,
    ) -> Result<(Self, OpenReport), OpenError> {
        let tails = Arc::new(Tails::new());
        let options = LogOptions {
            listener: Some(Arc::new(TellTails(tails.clone()))),
            ..options
        };
        let (log, report) = Log::open(files, options)?;
        let log = Arc::new(log);
        Ok((Self { log, tails, url }, report))
    }

    /// The log behind the store.
    pub fn log(&self) -> &Arc<Log> {
        &self.log
    }

    /// What there is once all commits under way are durable or have failed. Whoever reads a record to change it would
    /// otherwise be refused because of one that was asked for before.
    fn synced<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Answer<T, ReadError> {
        let synced = self.log.sync();
        Box::pin(async move {
            // After a failure the record is as it was before.
            let _ = synced.await;
            Ok(read())
        })
    }

    /// Runs a read on a thread that may block.
    fn reading<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Log) -> Result<T, ReadError> + Send + 'static,
    ) -> Answer<T, ReadError> {
        let log = self.log.clone();
        Box::pin(async move {
            match tokio::task::spawn_blocking(move || read(&log)).await {
                Ok(answer) => answer,
                Err(error) => Err(ReadError::Failed {
                    cause: error.to_string().into(),
                }),
            }
        })
    }
}

impl Store for FileStore {
    fn commit(&self, batch: Batch) -> Answer<Receipt, CommitError> {
        Box::pin(self.log.append(&batch))
    }

    fn commit_here(&self, batch: Batch) -> Answer<Receipt, CommitError> {
        let runtime = Handle::try_current().map(|runtime| runtime.runtime_flavor());
        match runtime {
            // Other tasks of this thread are taken over by another one while it waits for the disk.
            Ok(RuntimeFlavor::MultiThread) => Box::pin(
                self.log
                    .append_here(&batch, |sync| tokio::task::block_in_place(sync)),
            ),
            _ => self.commit(batch),
        }
    }

    fn read(&self, topic: &Arc<str>, from_seq: u64, limit: ReadLimit) -> Answer<Page, ReadError> {
        match self.log.read_recent(topic, from_seq, limit) {
            Ok(Some(page)) => answered(Ok(page)),
            Err(error) => answered(Err(error)),
            Ok(None) => {
                let topic = topic.clone();
                self.reading(move |log| log.read(&topic, from_seq, limit))
            }
        }
    }

    fn read_by_time(
        &self,
        topic: &Arc<str>,
        range: TimeRange,
        limit: ReadLimit,
    ) -> Answer<TimePage, ReadError> {
        let topic = topic.clone();
        self.reading(move |log| log.read_by_time(&topic, range, limit))
    }

    fn find(&self, topic: &Arc<str>, what: Find<'_>) -> Answer<Option<u64>, ReadError> {
        let topic = topic.clone();
        match what {
            Find::Id(id) => {
                let id = id.to_owned();
                self.reading(move |log| log.find_id(&topic, &id))
            }
            Find::Ts(ts) => self.reading(move |log| log.find_ts(&topic, ts)),
        }
    }

    fn latest(&self, topic: &Arc<str>, key: &str) -> Answer<Option<StoredEvent>, ReadError> {
        match self.log.latest_recent(topic, key) {
            Ok(Some(event)) => answered(Ok(Some(event))),
            Err(error) => answered(Err(error)),
            Ok(None) => {
                let (topic, key) = (topic.clone(), key.to_owned());
                self.reading(move |log| log.latest(&topic, &key))
            }
        }
    }

    fn latest_keys(
        &self,
        topic: &Arc<str>,
        after: Option<&str>,
        limit: ReadLimit,
    ) -> Answer<Vec<StoredEvent>, ReadError> {
        let (topic, after) = (topic.clone(), after.map(str::to_owned));
        self.reading(move |log| log.latest_keys(&topic, after.as_deref(), limit))
    }

    fn latest_at(
        &self,
        topic: &Arc<str>,
        keys: Vec<String>,
        at_ts: u64,
    ) -> Answer<Vec<Past>, ReadError> {
        let topic = topic.clone();
        self.reading(move |log| log.latest_at(&topic, &keys, at_ts))
    }

    fn watch(&self, topic: &Arc<str>) -> TailWatch {
        self.tails.watch(topic, || self.log.tail_seq(topic))
    }

    fn watch_topics(&self) -> TopicsWatch {
        self.tails.watch_topics()
    }

    fn watch_moved(&self) -> MovedTopics {
        self.tails.watch_moved()
    }

    fn topic(&self, topic: &str) -> Option<TopicInfo> {
        self.log.topic(topic)
    }

    fn incarnation(&self, topic: &str) -> Option<u64> {
        self.log.incarnation(topic)
    }

    fn topics(&self) -> Vec<TopicInfo> {
        self.log.topics()
    }

    fn get(&self, key: &str) -> Answer<Option<Keyed>, ReadError> {
        if !self.log.is_changing(key) {
            return answered(Ok(self.log.get(key)));
        }
        let (log, key) = (self.log.clone(), key.to_owned());
        self.synced(move || log.get(&key))
    }

    fn list(&self, prefix: &str) -> Answer<Vec<(Arc<str>, Keyed)>, ReadError> {
        if !self.log.is_any_changing(prefix) {
            return answered(Ok(self.log.list(prefix)));
        }
        let (log, prefix) = (self.log.clone(), prefix.to_owned());
        self.synced(move || log.list(&prefix))
    }

    fn maintain(&self) -> Answer<(), CommitError> {
        let log = self.log.clone();
        Box::pin(async move {
            let upkeep = tokio::task::spawn_blocking({
                let log = log.clone();
                move || log.maintain()
            });
            let failed = |cause: String| {
                let cause = cause.into();
                CommitError::StoreFailed(crate::StoreFailed { cause })
            };
            match upkeep.await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Err(failed(error.to_string())),
                Err(error) => return Err(failed(error.to_string())),
            }
            // Retention goes through the log like any batch, so whoever looks behind it waits for the log.
            log.sync().await
        })
    }

    fn status(&self) -> StoreStatus {
        let stats = self.log.stats();
        StoreStatus {
            url: self.url.clone(),
            durability: "fsync: answered after fdatasync, shared by everyone waiting".into(),
            failed: self.log.failure().map(|failure| failure.cause),
            bytes: stats.bytes,
            syncs: stats.syncs,
            sync_micros: stats.sync_micros,
            damage: self.log.damage(),
        }
    }

    fn close(&self) -> Answer<(), CommitError> {
        let log = self.log.clone();
        Box::pin(async move {
            match tokio::task::spawn_blocking(move || log.close()).await {
                Ok(outcome) => outcome,
                Err(error) => Err(CommitError::StoreFailed(crate::StoreFailed {
                    cause: error.to_string().into(),
                })),
            }
        })
    }
}

/// Passes on what the log says of its tails.
struct TellTails(Arc<Tails>);

impl Listener for TellTails {
    fn tail_moved(&self, topic: &str, tail_seq: u64) {
        self.0.moved(topic, tail_seq);
    }

    fn is_followed(&self) -> bool {
        self.0.is_followed()
    }

    fn topics_changed(&self) {
        self.0.topics_changed();
    }
}

fn answered<T: Send + 'static, E: Send + 'static>(answer: Result<T, E>) -> Answer<T, E> {
    Box::pin(std::future::ready(answer))
}
