//! The log as its users see it.

use crate::batch::Batch;
use crate::closed_mark::ClosedMark;
use crate::damage::Damage;
use crate::error::{CommitError, ReadError, StoreFailed};
use crate::files::Files;
use crate::gate::Commit;
use crate::options::LogOptions;
use crate::receipt::{Keyed, Page, Past, ReadLimit, TimePage, TimeRange};
use crate::record::StoredEvent;
use crate::recovery::{self, OpenError, OpenReport};
use crate::segment_set::SegmentSet;
use crate::shared::Shared;
use crate::topic::TopicInfo;
use crate::verify::Checked;
use crate::writer::Roll;
use std::future::Future;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// An open log. All methods may be called from any thread; those that read block on the disk.
pub struct Log {
    pub(crate) shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Who does the sync that a batch needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SyncBy {
    Thread,
    Caller,
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
    /// Why the last round of upkeep failed, if it did; it is tried again.
    pub upkeep_failure: Option<String>,
    /// Bytes of records appended since it was opened.
    pub appended_bytes: u64,
    /// Bytes written to segments in commit order: the same and what the log adds.
    pub stream_bytes: u64,
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
        let (parts, report) = recovery::open(files, options)?;
        let shared = Arc::new(Shared::new(parts));
        let log = Self {
            shared,
            threads: Mutex::default(),
        };
        if log.shared.options.threads {
            log.start("prombus-sync", Shared::run_sync_thread)?;
            log.start("prombus-seal", Shared::run_sealing_thread)?;
            log.start("prombus-upkeep", Shared::run_maintenance_thread)?;
            log.start("prombus-prepare", Shared::run_preparing_thread)?;
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
        self.shared.append(batch, SyncBy::Thread, &block).0
    }

    /// The same for a caller that does nothing else until it has the answer: if nobody is syncing, the sync that the
    /// batch needs is done on this thread, which spares waking another one and being woken by it. `block` gets the work
    /// that blocks, if there is any, and has to do it.
    pub fn append_here(&self, batch: &Batch, block: impl Fn(&mut dyn FnMut())) -> Commit {
        let round = self.shared.idle_round();
        let shared = &self.shared;
        // Where publishers are throttled, the sync thread waits for all of them.
        let is_idle = round.is_some() && shared.options.threads && !shared.pacer.is_throttled();
        let sync_by = match is_idle {
            true => SyncBy::Caller,
            false => SyncBy::Thread,
        };
        let (commit, is_left_to_caller) = self.shared.append(batch, sync_by, &block);
        if is_left_to_caller {
            block(&mut || self.shared.write_and_sync(Roll::LeaveToSyncThread));
        }
        commit
    }

    /// Waits until everything appended so far is synced.
    pub fn sync(&self) -> impl Future<Output = Result<(), CommitError>> + Send + 'static {
        let commit = self.shared.barrier();
        async move { commit.await.map(drop) }
    }

    /// Writes and syncs what was appended. Only needed without threads; with them it waits until they have done it.
    pub fn commit_now(&self) {
        match self.shared.options.threads {
            // Two rounds at once could show events after their segment is sealed.
            true => drop(self.shared.barrier().wait()),
            false => self.shared.commit_round(),
        }
    }

    /// Does all upkeep that is due, on this thread and without pauses: seals full segments, applies retention and
    /// compaction, frees space.
    pub fn maintain(&self) -> io::Result<()> {
        let _no_pauses = self.shared.pacer.hurry();
        self.shared.seal_full_segments()?;
        self.shared.maintain()
    }

    /// Reads a topic from a position on.
    pub fn read(&self, topic: &str, from_seq: u64, limit: ReadLimit) -> Result<Page, ReadError> {
        self.shared.read(topic, from_seq, limit)
    }

    /// The same, as far as it can be done from memory; `None` where the disk is needed.
    pub fn read_recent(
        &self,
        topic: &str,
        from_seq: u64,
        limit: ReadLimit,
    ) -> Result<Option<Page>, ReadError> {
        self.shared.read_recent(topic, from_seq, limit)
    }

    /// Reads a topic in the order of (ts, seq).
    pub fn read_by_time(
        &self,
        topic: &str,
        range: TimeRange,
        limit: ReadLimit,
    ) -> Result<TimePage, ReadError> {
        self.shared.read_by_time(topic, range, limit)
    }

    /// The position of the event with this id.
    pub fn find_id(&self, topic: &str, id: &str) -> Result<Option<u64>, ReadError> {
        self.shared.find_id(topic, id)
    }

    /// The first position whose event has this ts or a later one.
    pub fn find_ts(&self, topic: &str, ts: u64) -> Result<Option<u64>, ReadError> {
        self.shared.find_ts(topic, ts)
    }

    /// The latest event of a key, tombstones included.
    pub fn latest(&self, topic: &str, key: &str) -> Result<Option<StoredEvent>, ReadError> {
        self.shared.latest(topic, key)
    }

    /// The latest event of a key if it is in memory; `None` where the disk has to be asked.
    pub fn latest_recent(&self, topic: &str, key: &str) -> Result<Option<StoredEvent>, ReadError> {
        self.shared.latest_recent(topic, key)
    }

    /// For each key, its latest event in the order of positions among those with this ts or an earlier one.
    pub fn latest_at(
        &self,
        topic: &str,
        keys: &[String],
        at_ts: u64,
    ) -> Result<Vec<Past>, ReadError> {
        self.shared.latest_at(topic, keys, at_ts)
    }

    /// The latest events of all keys behind `after`, in the order of keys.
    pub fn latest_keys(
        &self,
        topic: &str,
        after: Option<&str>,
        limit: ReadLimit,
    ) -> Result<Vec<StoredEvent>, ReadError> {
        self.shared.latest_keys(topic, after, limit)
    }

    /// A topic as it stands.
    pub fn topic(&self, topic: &str) -> Option<TopicInfo> {
        let view = self.shared.view();
        Some(view.info(view.topic(topic)?))
    }

    /// The newest position of a topic that readers see; 0 where there is no such topic.
    pub fn tail_seq(&self, topic: &str) -> u64 {
        let view = self.shared.view();
        view.topic(topic).map_or(0, |topic| topic.tail_seq())
    }

    /// What tells a topic from every earlier one of its name.
    pub fn incarnation(&self, topic: &str) -> Option<u64> {
        let view = self.shared.view();
        view.topic(topic).map(|topic| u64::from(topic.number))
    }

    /// All topics in the order of their names.
    pub fn topics(&self) -> Vec<TopicInfo> {
        let view = self.shared.view();
        let topics = view.names.keys().filter_map(|name| view.topic(name));
        topics.map(|topic| view.info(topic)).collect()
    }

    /// A keyed record as the last durable batch left it. Whoever sees it sees the events of that batch too.
    pub fn get(&self, key: &str) -> Option<Keyed> {
        self.shared.front().keyed.seen(key).cloned()
    }

    /// All keyed records whose key starts with `prefix`, in the order of keys, as durable batches left them.
    pub fn list(&self, prefix: &str) -> Vec<(Arc<str>, Keyed)> {
        self.shared.front().keyed.all_seen(prefix)
    }

    /// Whether a batch that changes the record is not durable yet. After [`Self::sync`] it is, or has failed.
    pub fn is_changing(&self, key: &str) -> bool {
        self.shared.front().keyed.is_changing(key)
    }

    /// The same for all keyed records whose key starts with `prefix`.
    pub fn is_any_changing(&self, prefix: &str) -> bool {
        self.shared.front().keyed.is_any_changing(prefix)
    }

    /// Why the log takes no more batches, if a write or an fsync failed, or none with events because the disk is full.
    pub fn failure(&self) -> Option<StoreFailed> {
        self.shared.failure()
    }

    /// All damage that is known, up to [`crate::MAX_FINDINGS`].
    pub fn damage(&self) -> Vec<Damage> {
        self.shared.damage.all()
    }

    /// How many findings of damage there are, also beyond those that are remembered.
    pub fn damage_count(&self) -> u64 {
        self.shared.damage.count()
    }

    /// Reads every record of every segment and every index.
    pub(crate) fn check(&self) -> io::Result<Checked> {
        self.shared.check()
    }

    /// How the log is doing.
    pub fn stats(&self) -> LogStats {
        let stats = &self.shared.stats;
        let (streams, sealed_bytes, sealed) = {
            let view = self.shared.view();
            let streams = view.streams.iter().map(|stream| stream.file.clone());
            let sealed = view.sealed.values();
            let sealed_bytes = sealed.map(|segment| segment.data_bytes + segment.index.bytes());
            let streams: Vec<_> = streams.collect();
            (streams, sealed_bytes.sum::<u64>(), view.sealed.len())
        };
        // The size of what is sealed does not change; only of the few other segments the system is asked.
        let stream_bytes = streams.iter().map(|file| file.bytes().unwrap_or(0));
        let failure_of = |failure: &Mutex<Option<String>>| {
            let failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.clone()
        };
        let [appended, stream, state, sealed_written] = stats.written.all();
        LogStats {
            appended_bytes: appended,
            stream_bytes: stream,
            state_bytes: state,
            sealed_bytes: sealed_written,
            syncs: stats.syncs.load(Ordering::Relaxed),
            sync_micros: stats.sync_micros.load(Ordering::Relaxed),
            bytes: sealed_bytes + stream_bytes.sum::<u64>(),
            segments: (streams.len() + sealed) as u64,
            upkeep_failure: failure_of(&stats.seal_failure)
                .or_else(|| failure_of(&stats.upkeep_failure)),
        }
    }

    /// Commits what was appended, leaves the mark of a clean stop and ends the threads. Later appends are refused;
    /// reading goes on.
    pub fn close(&self) -> Result<(), CommitError> {
        self.shared.front().refuse(CommitError::Closed);
        self.stop_threads();
        self.shared.discard_prepared();
        self.shared.commit_round();
        if let Some(failure) = self.shared.failure().filter(|_| self.has_failed()) {
            return Err(failure.into());
        }
        let failed = |error: io::Error| {
            let cause = format!("closing failed: {error}").into();
            CommitError::StoreFailed(StoreFailed { cause })
        };
        let mark = {
            let mut writer = self.shared.writer();
            writer.cut_room().map_err(failed)?;
            let front = self.shared.front();
            let records = front.topics.iter().map(|topic| &topic.record);
            ClosedMark {
                log_id: Some(self.shared.log_id),
                segment: writer.number,
                segment_bytes: writer.bytes,
                next_seqs: records
                    .map(|topic| (topic.number, topic.next_seq))
                    .collect(),
            }
        };
        let last = mark.segment;
        let record = |set: &mut SegmentSet| set.highest = set.highest.max(last);
        self.shared.record_segments(record).map_err(failed)?;
        mark.write(&*self.shared.files).map_err(failed)
    }

    fn start(&self, name: &str, run: fn(&Shared)) -> io::Result<()> {
        let shared = self.shared.clone();
        let thread = std::thread::Builder::new()
            .name(name.into())
            .spawn(move || run(&shared))?;
        self.threads
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(thread);
        Ok(())
    }

    fn stop_threads(&self) {
        self.shared.upkeep().stopping = true;
        self.shared.upkeep_wake.notify_all();
        self.shared.pacer.stop();
        self.shared.preparation.stop();
        self.shared.want_sync(&mut self.shared.front());
        self.shared.sync_wake.notify_all();
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A thread that panicked has nothing left to stop.
            let _ = thread.join();
        }
    }
}

impl Drop for Log {
    /// What was appended is still committed, so that nobody waits for ever; the mark of a clean stop is left only by
    /// [`Log::close`].
    fn drop(&mut self) {
        self.shared.front().refuse(CommitError::Closed);
        self.stop_threads();
        self.shared.commit_round();
    }
}

impl Shared {
    /// A commit of nothing, durable when all before it is.
    fn barrier(&self) -> Commit {
        let mut front = self.front();
        if let Some(refusal) = &front.refusal {
            return Commit::settled(Err(refusal.clone()));
        }
        front.pending.awaited = true;
        self.want_sync(&mut front);
        Commit::at_gate(
            crate::receipt::Receipt::default(),
            front.pending.synced.clone(),
        )
    }

    /// Takes a batch in, and writes it at once where nobody has to wait for an fsync. True if a round of commits is
    /// left to the caller, who has to have the right to it.
    fn append(
        &self,
        batch: &Batch,
        sync_by: SyncBy,
        block: &dyn Fn(&mut dyn FnMut()),
    ) -> (Commit, bool) {
        if batch.is_empty() {
            let receipt = crate::receipt::Receipt::default();
            return (Commit::settled(Ok(receipt)), false);
        }
        let has_own_ids = batch.has_own_ids();
        let (admitted, wants_sync) = loop {
            // Own ids are looked up before the lock is taken. If a segment was sealed meanwhile its ids may have
            // been missed, and the look-up is repeated.
            let epoch = match has_own_ids {
                true => self.front().own_ids.epoch,
                false => 0,
            };
            let looked_up = match self.look_up_in_memory(batch) {
                Some(held) => Ok(held),
                None => {
                    let mut looked_up = Ok(Vec::new());
                    block(&mut || looked_up = self.look_up_own_ids(batch));
                    looked_up
                }
            };
            let held = match looked_up {
                Ok(held) => held,
                Err(error) => {
                    let cause = error.to_string().into();
                    return (Commit::settled(Err(StoreFailed { cause }.into())), false);
                }
            };
            let now_ms = self.options.clock.now_ms();
            let mut front = self.front();
            if has_own_ids && front.own_ids.epoch != epoch {
                continue;
            }
            match front.admit(batch, &held, now_ms) {
                Ok(admitted) => {
                    let wants_sync = admitted.wants_sync;
                    if wants_sync && sync_by == SyncBy::Thread {
                        self.want_sync(&mut front);
                    }
                    break (admitted, wants_sync);
                }
                Err(error) => return (Commit::settled(Err(error)), false),
            }
        };
        if !wants_sync && self.options.threads {
            self.write_if_idle();
        }
        let commit = Commit::at_gate(admitted.receipt, admitted.gate);
        (commit, wants_sync && sync_by == SyncBy::Caller)
    }
}
