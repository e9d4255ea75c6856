//! The writing side of an open log: admission into the write buffer, the writer of the active segment, and the commit
//! cycle that makes batches durable. Its methods are in `writer/commit_cycle.rs`, `sync_thread.rs`, `prepare.rs`, `reserve.rs` and
//! `append.rs`.
//!
//! The order of a log's locks: sealing, rewriting, rebuilding, then cycle, then writer, then buffer, then view, then the
//! pacer's. Sealing and rewriting are never held together. No lock is held across an fsync except those of background work,
//! the cycle's and, only when a segment is full, the writer's; no one who holds cycle or writer waits for background work.

use crate::background::Background;
use crate::files::Files;
use crate::options::LogOptions;
use crate::prepare::Preparation;
use crate::reader::Reader;
use crate::view::View;
use crate::write_buffer::WriteBuffer;
use crate::writer::Writer;
use prombus_store::LockExt;
use prombus_store::{CommitError, StoreFailed};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, TryLockError};

/// Takes batches in and makes them durable.
pub(crate) struct Committer {
    pub(crate) files: Arc<dyn Files>,
    pub(crate) reader: Arc<Reader>,
    pub(crate) background: Arc<Background>,
    pub(crate) options: LogOptions,
    pub(crate) log_id: u64,
    buffer: Mutex<WriteBuffer>,
    /// Wakes the sync thread; goes with `buffer`.
    pub(crate) sync_wake: Condvar,
    writer: Mutex<Writer>,
    /// A thread did not get the writer and relies on the one that has it.
    write_promised: AtomicBool,
    /// Held while a commit cycle goes on. Comes before the writer.
    cycles: Mutex<()>,
    pub(crate) lone_syncs: LoneSyncs,
    pub(crate) stats: Stats,
    pub(crate) preparation: Preparation,
    /// The tail that this log left behind when it failed is settled; see `reopen.rs`.
    pub(crate) is_tail_settled: AtomicBool,
}

/// Whether several batches share the syncs. Then publishers leave syncing to the sync thread, under which more gather. Where
/// many publish, a batch is alone now and then; syncing that one on its publisher's thread would only make the threads of the
/// runtime change places, so several in a row have to be alone first.
pub(crate) struct LoneSyncs {
    /// How many there were in a row, up to [`Self::ENOUGH`].
    count: AtomicU32,
}

impl LoneSyncs {
    /// After so many syncs for one batch each, publishers do their own.
    const ENOUGH: u32 = 16;

    pub(crate) fn are_shared(&self) -> bool {
        self.count.load(Ordering::Relaxed) < Self::ENOUGH
    }

    /// Takes note of a sync for so many batches. The caller has the writer.
    pub(crate) fn note(&self, batches: usize) {
        let count = match batches {
            1 => Self::ENOUGH.min(1 + self.count.load(Ordering::Relaxed)),
            _ => 0,
        };
        self.count.store(count, Ordering::Relaxed);
    }
}

impl Default for LoneSyncs {
    /// The first publisher is alone.
    fn default() -> Self {
        Self {
            count: AtomicU32::new(Self::ENOUGH),
        }
    }
}

/// What committing needs, as opening the log has put it together.
pub(crate) struct CommitterParts {
    pub(crate) options: LogOptions,
    pub(crate) log_id: u64,
    pub(crate) buffer: WriteBuffer,
    pub(crate) writer: Writer,
}

/// Counts since the log was opened.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    pub(crate) syncs: AtomicU64,
    pub(crate) sync_micros: AtomicU64,
    pub(crate) sync_times: prombus_store::SyncTimes,
    pub(crate) written: WrittenBytes,
    /// Why sealing failed the last time, if it did.
    pub(crate) seal_failure: Mutex<Option<String>>,
    /// Why the last run of other maintenance failed, if it did.
    pub(crate) maintenance_failure: Mutex<Option<String>>,
}

/// Bytes that the log has written since it was opened, by what they are for.
#[derive(Debug, Default)]
pub(crate) struct WrittenBytes {
    appended: AtomicU64,
    active: AtomicU64,
    state: AtomicU64,
    sealed: AtomicU64,
}

impl WrittenBytes {
    /// Records that were appended.
    pub(crate) fn appended(&self, bytes: u64) {
        self.appended.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The same and all else in segments that are in commit order.
    pub(crate) fn active(&self, bytes: u64) {
        self.active.fetch_add(bytes, Ordering::Relaxed);
    }

    /// State runs, merging included.
    pub(crate) fn state(&self, bytes: u64) {
        self.state.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Sealed segments and indexes, rewriting included.
    pub(crate) fn sealed(&self, bytes: u64) {
        self.sealed.fetch_add(bytes, Ordering::Relaxed);
    }

    /// In the order of the fields.
    pub(crate) fn all(&self) -> [u64; 4] {
        let counters = [&self.appended, &self.active, &self.state, &self.sealed];
        counters.map(|counter| counter.load(Ordering::Relaxed))
    }
}

impl Committer {
    pub(crate) fn new(
        reader: Arc<Reader>,
        background: Arc<Background>,
        parts: CommitterParts,
    ) -> Self {
        Self {
            files: reader.files.clone(),
            reader,
            background,
            options: parts.options,
            log_id: parts.log_id,
            buffer: Mutex::new(parts.buffer),
            sync_wake: Condvar::new(),
            writer: Mutex::new(parts.writer),
            write_promised: AtomicBool::new(false),
            cycles: Mutex::default(),
            lone_syncs: LoneSyncs::default(),
            stats: Stats::default(),
            preparation: Preparation::default(),
            is_tail_settled: AtomicBool::new(false),
        }
    }

    pub(crate) fn buffer(&self) -> MutexGuard<'_, WriteBuffer> {
        self.buffer.guard()
    }

    pub(crate) fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.guard()
    }

    /// The writer, if no one has it. If somebody has, they are made to look for what is pending when they let go of it:
    /// `None` promises that.
    pub(crate) fn writer_or_promise(&self) -> Option<MutexGuard<'_, Writer>> {
        idle(&self.writer).or_else(|| {
            self.write_promised.store(true, Ordering::SeqCst);
            // Either this sees that the writer was let go of meanwhile, or who does that sees the promise.
            fence(Ordering::SeqCst);
            idle(&self.writer)
        })
    }

    /// Whether somebody was promised that what is pending is written. The caller that has had the writer has to ask, after
    /// letting go of it.
    pub(crate) fn is_write_promised(&self) -> bool {
        fence(Ordering::SeqCst);
        self.write_promised.load(Ordering::SeqCst)
            && self.write_promised.swap(false, Ordering::SeqCst)
    }

    /// The right to do a commit cycle: two at once could show events after their segment is sealed.
    pub(crate) fn cycle(&self) -> MutexGuard<'_, ()> {
        self.cycles.guard()
    }

    /// The same, if no round is going on.
    pub(crate) fn idle_cycle(&self) -> Option<MutexGuard<'_, ()>> {
        idle(&self.cycles)
    }

    /// Asks the sync thread to write and sync what is there.
    pub(crate) fn want_sync(&self, buffer: &mut WriteBuffer) {
        buffer.sync_wanted = true;
        self.wake_sync_thread(buffer);
    }

    /// Leaves what is pending to the sync thread, which need not sync it.
    pub(crate) fn hand_over_writing(&self) {
        let mut buffer = self.buffer();
        if self.is_write_promised() || !buffer.pending.is_empty() {
            buffer.write_wanted = true;
            self.wake_sync_thread(&mut buffer);
        }
    }

    fn wake_sync_thread(&self, buffer: &mut WriteBuffer) {
        if buffer.sync_thread_sleeps {
            buffer.sync_thread_sleeps = false;
            self.sync_wake.notify_all();
        }
    }

    /// Takes no more batches, because of `cause`. All waiters are notified.
    pub(crate) fn poison(&self, writer: &mut Writer, cause: &str) -> StoreFailed {
        let failure = StoreFailed {
            cause: cause.into(),
        };
        let mut buffer = self.buffer();
        buffer.refuse(CommitError::StoreFailed(failure.clone()));
        buffer.fail_pending(&failure);
        drop(buffer);
        writer.fail(&failure);
        if let Some(listener) = &self.options.listener {
            listener.failed();
        }
        failure
    }

    /// Throttles publishers while too many full segments wait. The caller must hold the view's lock and has changed
    /// how many there are, so that the last change counts.
    pub(crate) fn throttle_by_backlog(&self, view: &View) {
        let full_segments = view.active_segments.len().saturating_sub(1);
        let most = self.options.max_unsealed_segments.max(1);
        self.background
            .pacer
            .throttle(self.options.threads && full_segments >= most);
    }

    /// Why the log takes no more batches, or none with events, if it does not.
    pub(crate) fn failure(&self) -> Option<StoreFailed> {
        let buffer = self.buffer();
        match &buffer.refusal {
            Some(CommitError::StoreFailed(failure)) => Some(failure.clone()),
            _ => buffer.full.clone(),
        }
    }
}

/// What a lock guards, if no one has it.
fn idle<T>(lock: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match lock.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syncs_are_shared_until_many_in_a_row_were_for_one_batch() {
        let syncs = LoneSyncs::default();
        assert!(!syncs.are_shared());
        syncs.note(2);
        (1..LoneSyncs::ENOUGH).for_each(|_| syncs.note(1));
        assert!(syncs.are_shared());
        syncs.note(1);
        assert!(!syncs.are_shared());
        syncs.note(1);
        assert!(!syncs.are_shared());
        syncs.note(7);
        assert!(syncs.are_shared());
    }
}
