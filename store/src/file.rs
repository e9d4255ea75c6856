//! The store on the embedded log: `file:PATH`. What the log can answer from memory is answered at once; the rest goes
//! to tokio's blocking threads, so that no task waits for the disk. When the log fails it is opened anew underneath.

mod supervisor;

use crate::tails::Tails;
use crate::{
    Answer, Batch, Clock, CommitError, Find, Keyed, MovedTopics, Page, Past, ReadError, ReadLimit,
    Receipt, Store, StoreStatus, StoredEvent, SystemClock, TailWatch, TimePage, TimeRange,
    TopicInfo, TopicsWatch,
};
use prombus_log::{Files, Log, LogOptions, OpenReport, OsFiles};
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use supervisor::Supervised;
use tokio::runtime::{Handle, RuntimeFlavor};

pub use prombus_log::OpenError;

/// A store in a folder.
pub struct FileStore {
    supervised: Arc<Supervised>,
    supervisor: Option<JoinHandle<()>>,
    tails: Arc<Tails>,
    url: String,
}

impl FileStore {
    /// Opens the folder at `path`, or makes it, on the machine's clock. Where the disk takes no writes the store can be
    /// read, says so in its status, and takes commits once it does.
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

    /// Opens a store on any files, for tests with a disk that fails. A listener among the options hears of damage.
    pub fn on_files(
        files: Arc<dyn Files>,
        options: LogOptions,
        url: String,
    ) -> Result<(Self, OpenReport), OpenError> {
        let tails = Arc::new(Tails::new());
        let (supervised, report) = Supervised::open(files, options, tails.clone())?;
        let store = Self {
            supervisor: Some(supervised.start()?),
            supervised,
            tails,
            url,
        };
        Ok((store, report))
    }

    /// The log behind the store, until it fails and another takes its place.
    pub fn log(&self) -> Arc<Log> {
        self.supervised.log()
    }

    /// What there is once all commits under way are durable or have failed. Whoever reads a record to change it would
    /// otherwise be refused because of one that was asked for before.
    fn synced<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Answer<T, ReadError> {
        let synced = self.log().sync();
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
        let log = self.log();
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
        Box::pin(self.log().append_with(&batch, block_in_place))
    }

    fn commit_here(&self, batch: Batch) -> Answer<Receipt, CommitError> {
        let runtime = Handle::try_current().map(|runtime| runtime.runtime_flavor());
        match runtime {
            // Other tasks of this thread are taken over by another one while it waits for the disk.
            Ok(RuntimeFlavor::MultiThread) => {
                Box::pin(self.log().append_here(&batch, block_in_place))
            }
            _ => self.commit(batch),
        }
    }

    fn read(&self, topic: &Arc<str>, from_seq: u64, limit: ReadLimit) -> Answer<Page, ReadError> {
        match self.log().read_recent(topic, from_seq, limit) {
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
        match self.log().latest_recent(topic, key) {
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
        self.tails.watch(topic, || self.log().tail_seq(topic))
    }

    fn watch_topics(&self) -> TopicsWatch {
        self.tails.watch_topics()
    }

    fn watch_moved(&self) -> MovedTopics {
        self.tails.watch_moved()
    }

    fn topic(&self, topic: &str) -> Option<TopicInfo> {
        self.log().topic(topic)
    }

    fn incarnation(&self, topic: &str) -> Option<u64> {
        self.log().incarnation(topic)
    }

    fn topics(&self) -> Vec<TopicInfo> {
        self.log().topics()
    }

    fn get(&self, key: &str) -> Answer<Option<Keyed>, ReadError> {
        let log = self.log();
        if !log.is_changing(key) {
            return answered(Ok(log.get(key)));
        }
        let key = key.to_owned();
        self.synced(move || log.get(&key))
    }

    fn list(&self, prefix: &str) -> Answer<Vec<(Arc<str>, Keyed)>, ReadError> {
        let log = self.log();
        if !log.is_any_changing(prefix) {
            return answered(Ok(log.list(prefix)));
        }
        let prefix = prefix.to_owned();
        self.synced(move || log.list(&prefix))
    }

    fn maintain(&self) -> Answer<(), CommitError> {
        let log = self.log();
        if let Some(failure) = log.failure().filter(|_| log.has_failed()) {
            return answered(Err(failure.into()));
        }
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
        let log = self.log();
        let stats = log.stats();
        StoreStatus {
            url: self.url.clone(),
            durability: "fsync: answered after fdatasync, shared by everyone waiting".into(),
            failed: log.failure().map(|failure| failure.cause),
            bytes: stats.bytes,
            syncs: stats.syncs,
            sync_micros: stats.sync_micros,
            damage: log.damage(),
            damage_count: log.damage_count(),
        }
    }

    fn close(&self) -> Answer<(), CommitError> {
        let supervised = self.supervised.clone();
        Box::pin(async move {
            match tokio::task::spawn_blocking(move || supervised.close()).await {
                Ok(outcome) => outcome,
                Err(error) => Err(CommitError::StoreFailed(crate::StoreFailed {
                    cause: error.to_string().into(),
                })),
            }
        })
    }
}

/// Does work that may block. The order of commits is that of the calls, so it stays on this thread; the other tasks of the
/// thread are taken over by another one, where the runtime has one.
fn block_in_place(work: &mut dyn FnMut()) {
    let runtime = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    if matches!(runtime, Ok(RuntimeFlavor::MultiThread)) {
        tokio::task::block_in_place(work);
    } else {
        work();
    }
}

impl Drop for FileStore {
    fn drop(&mut self) {
        self.supervised.stop();
        if let Some(supervisor) = self.supervisor.take() {
            // A thread that panicked has nothing left to stop.
            let _ = supervisor.join();
        }
    }
}

fn answered<T: Send + 'static, E: Send + 'static>(answer: Result<T, E>) -> Answer<T, E> {
    Box::pin(std::future::ready(answer))
}
