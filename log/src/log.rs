//! The log as its users see it.

use crate::append::SyncBy;
use crate::background::Background;
use crate::closed_mark::ClosedMark;
use crate::committer::Committer;
use crate::completion::Commit;
use crate::copy::POSITION_KEY;
use crate::files::Files;
use crate::maintainer::Maintainer;
use crate::options::LogOptions;
use crate::reader::Reader;
use crate::record::StoredEvent;
use crate::recovery::{self, OpenError, OpenReport};
use crate::segment_set::SegmentSet;
use crate::verify::Checked;
use crate::writer::Roll;
use prombus_store::LockExt;
use prombus_store::{
    Batch, CommitError, Damage, Keyed, LatestEvent, Page, ReadError, ReadLimit, StoreFailed,
    SyncTimeCounts, TimeRange, TopicInfo,
};
use std::future::Future;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// An open log. All methods may be called from any thread; those that read block on the disk.
pub struct Log {
    pub(crate) reader: Arc<Reader>,
    pub(crate) committer: Arc<Committer>,
    pub(crate) maintainer: Arc<Maintainer>,
    background: Arc<Background>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// How a log is doing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogStats {
    /// Fsyncs since it was opened.
    pub syncs: u64,
    /// How long they took together.
    pub sync_micros: u64,
    /// Bytes of all its segments and indexes.
    pub bytes: u64,
    /// Segments, the one being written included.
    pub segments: u64,
    /// Why the last maintenance run failed, if it did; it is tried again.
    pub maintenance_failure: Option<String>,
    /// Bytes of records appended since it was opened.
    pub appended_bytes: u64,
    /// Bytes written to segments in commit order: the same and what the log adds.
    pub active_bytes: u64,
    /// Bytes written to state runs, merging included.
    pub state_bytes: u64,
    /// Bytes written to sealed segments and indexes, rewriting included.
    pub sealed_bytes: u64,
}

impl Log {
    /// Opens the log in `files`, or makes one if the folder is empty.
    pub fn open(
        files: Arc<dyn Files>,
        options: LogOptions,
    ) -> Result<(Self, OpenReport), OpenError> {
        let (recovered, report) = recovery::open(files, options)?;
        let background = Arc::new(Background::default());
        let reader = Reader::new(recovered.files, background.clone(), recovered.reader);
        let reader = Arc::new(reader);
        let committer = Committer::new(reader.clone(), background.clone(), recovered.committer);
        let committer = Arc::new(committer);
        let maintainer = Maintainer::new(
            (reader.clone(), committer.clone()),
            background.clone(),
            recovered.removed_files,
            recovered.state_runs,
            recovered.segments,
        );
        let log = Self {
            reader,
            committer,
            maintainer: Arc::new(maintainer),
            background,
            threads: Mutex::default(),
        };
        if log.committer.options.threads {
            let committer = log.committer.clone();
            log.start("prombus-sync", move || committer.run_sync_thread())?;
            log.start_in_background("prombus-seal", Maintainer::run_sealing_thread)?;
            log.start_in_background("prombus-maintain", Maintainer::run_maintenance_thread)?;
            log.start_in_background("prombus-prepare", Maintainer::run_preparing_thread)?;
            log.maintainer.removed_files.serve();
            log.start_in_background("prombus-free", Maintainer::run_freeing_thread)?;
        }
        Ok((log, report))
    }

    /// Commits a batch. Its place in the order is fixed when this returns; the answer comes when it is durable.
    pub fn append(&self, batch: &Batch) -> Commit {
        self.append_with(batch, |work| work())
    }

    /// The same for a caller that may not block: `block` gets the work that needs the disk, such as looking for a client
    /// id that memory cannot rule out, and has to do it before it returns.
    pub fn append_with(&self, batch: &Batch, block: impl Fn(&mut dyn FnMut())) -> Commit {
        self.committer.append(batch, SyncBy::Thread, &block).0
    }

    /// The same for a caller that does nothing else until it has the answer: if no one is syncing, the sync that the
    /// batch needs is done on this thread, which spares waking another one and being woken by it. `block` gets the work
    /// that blocks, if there is any, and has to do it.
    pub fn append_inline(&self, batch: &Batch, block: impl Fn(&mut dyn FnMut())) -> Commit {
        // Looking up keys may have to wait for a cycle of the sync thread.
        if batch.has_expected_key_positions() {
            return self.append_with(batch, block);
        }
        let cycle = self.committer.idle_cycle();
        let committer = &self.committer;
        // Where publishers are throttled, the sync thread waits for all of them.
        let is_idle = cycle.is_some()
            && committer.options.threads
            && !self.background.pacer.is_throttled()
            && !committer.lone_syncs.are_shared();
        let sync_by = if is_idle {
            SyncBy::Caller
        } else {
            SyncBy::Thread
        };
        let (commit, is_left_to_caller) = self.committer.append(batch, sync_by, &block);
        if is_left_to_caller {
            block(&mut || self.committer.write_and_sync(Roll::LeaveToSyncThread));
        }
        commit
    }

    /// Waits until everything appended so far is synced.
    pub fn sync(&self) -> impl Future<Output = Result<(), CommitError>> + Send + 'static {
        let commit = self.committer.barrier();
        async move { commit.await.map(drop) }
    }

    /// Writes and syncs what was appended. Only needed without threads; with them it waits until they have done it.
    pub fn commit_now(&self) {
        if self.committer.options.threads {
            // Two cycles at once could show events after their segment is sealed.
            drop(self.committer.barrier().wait())
        } else {
            self.committer.commit_cycle()
        }
    }

    /// Writes what was appended, and syncs only where somebody waits for that or a segment is full. Only needed without
    /// threads.
    pub fn write_now(&self) {
        self.committer.write_if_idle();
        let buffer = self.committer.buffer();
        let needs_sync = buffer.sync_wanted || !buffer.pending.is_empty();
        drop(buffer);
        if needs_sync {
            self.commit_now();
        }
    }

    /// Does all maintenance that is due, on this thread and without pauses: seals full segments, applies retention and
    /// compaction, frees space.
    pub fn maintain(&self) -> io::Result<()> {
        let _no_pauses = self.background.pacer.hurry();
        self.maintainer.seal_full_segments()?;
        self.maintainer.maintain()
    }

    /// Reads a topic from a position on.
    pub fn read(&self, topic: &str, from_seq: u64, limit: ReadLimit) -> Result<Page, ReadError> {
        self.reader.read(topic, from_seq, limit)
    }

    /// The same, as far as it can be done from memory; `None` where the disk is needed.
    pub fn read_cached(
        &self,
        topic: &str,
        from_seq: u64,
        limit: ReadLimit,
    ) -> Result<Option<Page>, ReadError> {
        self.reader.read_cached(topic, from_seq, limit)
    }

    /// Reads a topic in the order of (ts, seq).
    pub fn read_by_time(
        &self,
        topic: &str,
        range: TimeRange,
        limit: ReadLimit,
    ) -> Result<Page, ReadError> {
        self.reader.read_by_time(topic, range, limit)
    }

    /// The position of the event with this id.
    pub fn find_id(&self, topic: &str, id: &str) -> Result<Option<u64>, ReadError> {
        self.committer.find_id(topic, id)
    }

    /// The first position whose event has this ts or a later one.
    pub fn find_ts(&self, topic: &str, ts: u64) -> Result<Option<u64>, ReadError> {
        self.reader.find_ts(topic, ts)
    }

    /// The latest event of a key, tombstones included.
    pub fn latest(&self, topic: &str, key: &str) -> Result<Option<StoredEvent>, ReadError> {
        self.reader.latest(topic, key)
    }

    /// The latest event of a key if it is in memory; `None` where the disk has to be asked.
    pub fn latest_cached(&self, topic: &str, key: &str) -> Result<Option<StoredEvent>, ReadError> {
        self.reader.latest_cached(topic, key)
    }

    /// For each key, its latest event in the order of positions among those with this ts or an earlier one.
    pub fn latest_at(
        &self,
        topic: &str,
        keys: &[String],
        at_ts: u64,
    ) -> Result<Vec<LatestEvent>, ReadError> {
        self.reader.latest_at(topic, keys, at_ts)
    }

    /// Reads the latest event of each key behind `after`, in the order of keys.
    pub fn read_by_key(
        &self,
        topic: &str,
        after: Option<&str>,
        limit: ReadLimit,
    ) -> Result<Page, ReadError> {
        self.reader.read_by_key(topic, after, limit)
    }

    /// A topic as it is now.
    pub fn topic(&self, topic: &str) -> Option<TopicInfo> {
        let view = self.reader.view();
        Some(view.info(view.topic(topic)?))
    }

    /// The newest position of a topic that readers see; 0 where there is no such topic.
    pub fn tail_seq(&self, topic: &str) -> u64 {
        let view = self.reader.view();
        view.topic(topic).map_or(0, |topic| topic.tail_seq())
    }

    /// What tells a topic from every earlier one of its name.
    pub fn incarnation(&self, topic: &str) -> Option<u64> {
        let view = self.reader.view();
        view.topic(topic).map(|topic| u64::from(topic.number))
    }

    /// All topics in the order of their names.
    pub fn topics(&self) -> Vec<TopicInfo> {
        let view = self.reader.view();
        let topics = view.names.keys().filter_map(|name| view.topic(name));
        topics.map(|topic| view.info(topic)).collect()
    }

    /// A keyed record as the last durable batch left it. The caller that sees it sees the events of that batch too.
    pub fn get(&self, key: &str) -> Option<Keyed> {
        self.committer.buffer().keyed.seen(key).cloned()
    }

    /// All keyed records whose key starts with `prefix`, in the order of keys, as durable batches left them.
    pub fn list(&self, prefix: &str) -> Vec<(Arc<str>, Keyed)> {
        let mut records = self.committer.buffer().keyed.all_seen(prefix);
        records.retain(|(key, _)| &**key != POSITION_KEY);
        records
    }

    /// Whether a batch that changes the record is not durable yet. After [`Self::sync`] it is, or has failed.
    pub fn is_changing(&self, key: &str) -> bool {
        self.committer.buffer().keyed.is_changing(key)
    }

    /// The same for all keyed records whose key starts with `prefix`.
    pub fn is_any_changing(&self, prefix: &str) -> bool {
        self.committer.buffer().keyed.is_any_changing(prefix)
    }

    /// Why the log takes no more batches, if a write or an fsync failed, or none with events because the disk is full.
    pub fn failure(&self) -> Option<StoreFailed> {
        self.committer.failure()
    }

    /// All damage that is known, up to [`crate::MAX_FINDINGS`].
    pub fn damage(&self) -> Vec<Damage> {
        self.reader.damage.all()
    }

    /// How many findings of damage there are, also beyond those that are remembered.
    pub fn damage_count(&self) -> u64 {
        self.reader.damage.count()
    }

    /// Reads every record of every segment and every index.
    pub(crate) fn check(&self) -> io::Result<Checked> {
        self.reader.check()
    }

    /// How the log is doing.
    pub fn stats(&self) -> LogStats {
        let stats = &self.committer.stats;
        let (active_segments, sealed_bytes, sealed) = {
            let view = self.reader.view();
            let active_segments = view
                .active_segments
                .iter()
                .map(|active| active.file.clone());
            let sealed = view.sealed.values();
            let sealed_bytes = sealed.map(|segment| segment.data_bytes + segment.index.bytes());
            let active_segments: Vec<_> = active_segments.collect();
            (
                active_segments,
                sealed_bytes.sum::<u64>(),
                view.sealed.len(),
            )
        };
        // The size of what is sealed does not change; only of the few other segments the system is asked.
        let active_bytes = active_segments.iter().map(|file| file.bytes().unwrap_or(0));
        let failure_of = |failure: &Mutex<Option<String>>| {
            let failure = failure.guard();
            failure.clone()
        };
        let [appended, active, state, sealed_written] = stats.written.all();
        LogStats {
            appended_bytes: appended,
            active_bytes: active,
            state_bytes: state,
            sealed_bytes: sealed_written,
            syncs: stats.syncs.load(Ordering::Relaxed),
            sync_micros: stats.sync_micros.load(Ordering::Relaxed),
            bytes: sealed_bytes + active_bytes.sum::<u64>(),
            segments: (active_segments.len() + sealed) as u64,
            maintenance_failure: failure_of(&stats.seal_failure)
                .or_else(|| failure_of(&stats.maintenance_failure)),
        }
    }

    /// How long fsyncs took since it was opened.
    pub fn sync_times(&self) -> SyncTimeCounts {
        self.committer.stats.sync_times.counts()
    }

    /// Commits what was appended, leaves the mark of a clean stop and ends the threads. Later appends are refused;
    /// reading goes on.
    pub fn close(&self) -> Result<(), CommitError> {
        self.committer.buffer().refuse(CommitError::Closed);
        self.stop_threads();
        self.committer.discard_prepared();
        self.committer.commit_cycle();
        if let Some(failure) = self.committer.failure().filter(|_| self.has_failed()) {
            return Err(failure.into());
        }
        let failed = |error: io::Error| {
            let cause = format!("closing failed: {error}").into();
            CommitError::StoreFailed(StoreFailed { cause })
        };
        let mark = {
            let mut writer = self.committer.writer();
            writer.trim_preallocation().map_err(failed)?;
            let buffer = self.committer.buffer();
            let records = buffer.topics.iter().map(|topic| &topic.record);
            ClosedMark {
                log_id: Some(self.committer.log_id),
                segment: writer.number,
                segment_bytes: writer.bytes,
                next_seqs: records
                    .map(|topic| (topic.number, topic.next_seq))
                    .collect(),
            }
        };
        let last = mark.segment;
        let record = |set: &mut SegmentSet| set.highest = set.highest.max(last);
        self.maintainer.record_segments(record).map_err(failed)?;
        mark.write(&*self.reader.files).map_err(failed)
    }

    /// Starts a thread that yields the processor to publishers and readers.
    fn start_in_background(&self, name: &str, run: fn(&Maintainer)) -> io::Result<()> {
        let maintainer = self.maintainer.clone();
        self.start(name, move || {
            lower_priority();
            run(&maintainer);
        })
    }

    fn start(&self, name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let thread = std::thread::Builder::new().name(name.into()).spawn(run)?;
        self.threads.guard().push(thread);
        Ok(())
    }

    fn stop_threads(&self) {
        self.background.stop();
        self.committer.preparation.stop();
        self.maintainer.removed_files.stop();
        self.committer.want_sync(&mut self.committer.buffer());
        self.committer.sync_wake.notify_all();
        let threads = std::mem::take(&mut *self.threads.guard());
        for thread in threads {
            // A thread that panicked has nothing left to stop.
            let _ = thread.join();
        }
    }
}

/// Lowers the scheduling priority of this thread. Where the system refuses that, background work just competes more.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    {
        /// Enough to be preempted by whoever wakes up, and not so much that a lock held in background work is held for
        /// long while all processors are busy.
        const NICENESS: i32 = 5;
        // On Linux the "process" of this call is a thread.
        let thread = rustix::thread::gettid();
        let _ = rustix::process::setpriority_process(Some(thread), NICENESS);
    }
}

impl Drop for Log {
    /// What was appended is still committed, so that no one waits for ever; the mark of a clean stop is left only by
    /// [`Log::close`].
    fn drop(&mut self) {
        self.committer.buffer().refuse(CommitError::Closed);
        self.stop_threads();
        self.committer.commit_cycle();
    }
}
