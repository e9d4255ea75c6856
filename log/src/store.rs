//! The store on the embedded log: `file:PATH`. What the log can answer from memory is answered at once; the rest goes
//! to tokio's blocking threads, so that no task waits for the disk. When the log fails it is opened anew underneath.

mod supervisor;

use crate::files::{Files, OsFiles};
use crate::log::Log;
use crate::options::LogOptions;
use crate::recovery::{OpenError, OpenReport};
use prombus_store::{
    Answer, Batch, Clock, CommitError, Find, Keyed, LatestEvent, Page, ReadError, ReadFrom,
    ReadLimit, Receipt, Store, StoreFailed, StoreStatus, StoredEvent, SyncTimeCounts, SystemClock,
    TailAdvances, TailWatch, Tails, TopicInfo, TopicsWatch,
};
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use supervisor::Supervised;
use tokio::runtime::{Handle, RuntimeFlavor};

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
            log_id: options
                .log_id
                .or_else(|| Some(RandomState::new().hash_one(&url))),
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

    /// Goes on with the log in other files, for a copy that was made anew; if `check` finds it to be as it should. Whoever
    /// reads the old one finishes there, and all who watch hear of what is different.
    pub fn replace_files<E: From<OpenError>>(
        &self,
        files: Arc<dyn Files>,
        check: impl FnOnce(&Log, &OpenReport) -> Result<(), E>,
    ) -> Result<(), E> {
        self.supervised.replace(files, check)
    }

    /// What there is once all commits under way are durable or have failed. The caller that reads a record to change it would
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

    fn commit_inline(&self, batch: Batch) -> Answer<Receipt, CommitError> {
        let runtime = Handle::try_current().map(|runtime| runtime.runtime_flavor());
        match runtime {
            // Other tasks of this thread are taken over by another one while it waits for the disk.
            Ok(RuntimeFlavor::MultiThread) => {
                Box::pin(self.log().append_inline(&batch, block_in_place))
            }
            _ => self.commit(batch),
        }
    }

    fn read(
        &self,
        topic: &Arc<str>,
        from: ReadFrom<'_>,
        limit: ReadLimit,
    ) -> Answer<Page, ReadError> {
        let name = topic.clone();
        match from {
            ReadFrom::Seq(from_seq) => match self.log().read_cached(topic, from_seq, limit) {
                Ok(Some(page)) => ready(Ok(page)),
                Err(error) => ready(Err(error)),
                Ok(None) => self.reading(move |log| log.read(&name, from_seq, limit)),
            },
            ReadFrom::Time(range) => self.reading(move |log| log.read_by_time(&name, range, limit)),
            ReadFrom::Key(after) => {
                let after = after.map(str::to_owned);
                self.reading(move |log| log.read_by_key(&name, after.as_deref(), limit))
            }
        }
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

    fn latest(
        &self,
        topic: &Arc<str>,
        keys: Vec<String>,
        at_ts: Option<u64>,
    ) -> Answer<Vec<LatestEvent>, ReadError> {
        let topic = topic.clone();
        if let Some(at_ts) = at_ts {
            return self.reading(move |log| log.latest_at(&topic, &keys, at_ts));
        }
        // One key is asked for most often, and its event is often in memory.
        if let [key] = &keys[..] {
            match self.log().latest_cached(&topic, key) {
                Ok(None) => {}
                Ok(event) => return ready(Ok(vec![latest_now(event)])),
                Err(error) => return ready(Err(error)),
            }
        }
        self.reading(move |log| {
            let latest = keys.iter().map(|key| log.latest(&topic, key));
            latest.map(|event| event.map(latest_now)).collect()
        })
    }

    fn watch(&self, topic: &Arc<str>) -> TailWatch {
        self.tails.watch(topic, || self.log().tail_seq(topic))
    }

    fn watch_topics(&self) -> TopicsWatch {
        self.tails.watch_topics()
    }

    fn watch_tails(&self) -> TailAdvances {
        self.tails.watch_tails()
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
            return ready(Ok(log.get(key)));
        }
        let key = key.to_owned();
        self.synced(move || log.get(&key))
    }

    fn list(&self, prefix: &str) -> Answer<Vec<(Arc<str>, Keyed)>, ReadError> {
        let log = self.log();
        if !log.is_any_changing(prefix) {
            return ready(Ok(log.list(prefix)));
        }
        let prefix = prefix.to_owned();
        self.synced(move || log.list(&prefix))
    }

    fn maintain(&self) -> Answer<(), CommitError> {
        let log = self.log();
        if let Some(failure) = log.failure().filter(|_| log.has_failed()) {
            return ready(Err(failure.into()));
        }
        Box::pin(async move {
            let maintenance = tokio::task::spawn_blocking({
                let log = log.clone();
                move || log.maintain()
            });
            let failed = |cause: String| {
                let cause = cause.into();
                CommitError::StoreFailed(StoreFailed { cause })
            };
            match maintenance.await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Err(failed(error.to_string())),
                Err(error) => return Err(failed(error.to_string())),
            }
            // Retention goes through the log like any batch, so readers behind it wait for the log.
            log.sync().await
        })
    }

    fn status(&self) -> StoreStatus {
        let log = self.log();
        let stats = log.stats();
        StoreStatus {
            url: self.url.clone(),
            durability: "fsync: acknowledged after fdatasync, which concurrent commits share"
                .into(),
            failed: log.failure().map(|failure| failure.cause),
            bytes: stats.bytes,
            syncs: stats.syncs,
            sync_micros: stats.sync_micros,
            damage: log.damage(),
            damage_count: log.damage_count(),
            copy: None,
        }
    }

    fn sync_times(&self) -> SyncTimeCounts {
        self.log().sync_times()
    }

    fn close(&self) -> Answer<(), CommitError> {
        let supervised = self.supervised.clone();
        Box::pin(async move {
            match tokio::task::spawn_blocking(move || supervised.close()).await {
                Ok(outcome) => outcome,
                Err(error) => Err(CommitError::StoreFailed(StoreFailed {
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

/// The latest event of a key as of now, which compaction keeps.
fn latest_now(event: Option<StoredEvent>) -> LatestEvent {
    LatestEvent {
        event,
        is_certain: true,
    }
}

fn ready<T: Send + 'static, E: Send + 'static>(answer: Result<T, E>) -> Answer<T, E> {
    Box::pin(std::future::ready(answer))
}
