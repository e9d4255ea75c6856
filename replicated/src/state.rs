//! What a node's task lets others see, and how it is told to run.

use crate::applier::Applier;
use crate::shared_log::Bounds;
use prombus_store::LockExt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::watch;

/// How a node runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// Callers hear after so long without an acknowledgement that their commit failed. It may happen all the same.
    pub patience: Duration,
    /// How often a node marks that retention and compaction are to be applied, where there may be something to do.
    pub maintenance_interval: Duration,
    /// A snapshot is made when the messages since the last one take so many bytes.
    pub snapshot_bytes: u64,
    /// A node that was not heard of for so long does not keep the log from being trimmed.
    pub absent_after: Duration,
    /// A number that no other start of any node has.
    pub boot: u64,
    /// Which node this is, where starts of the same node can be told; else a number of its own.
    pub node: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(2),
            maintenance_interval: Duration::from_secs(60),
            snapshot_bytes: 256 << 20,
            absent_after: Duration::from_secs(60),
            boot: RandomState::new().hash_one("boot"),
            node: None,
        }
    }
}

/// How far a node is, and how the shared log is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Replication {
    /// The last position of the shared log that this node has applied.
    pub applied: u64,
    /// The last one that it has heard of.
    pub last: u64,
    /// The oldest one that the shared log held when it was last asked.
    pub first: u64,
    /// The digest of what was applied. Nodes that are equally far have the same.
    pub digest: u64,
    /// How long the last commit took to be acknowledged.
    pub round_trip_micros: u64,
    /// Messages that had no effect since the start, most of them sent again after a lost answer.
    pub void: u64,
    /// The position of the newest durable snapshot; 0 where there is none.
    pub snapshot: u64,
    /// When it became durable, in epoch milliseconds by the clock of the node that made it.
    pub snapshot_at_ms: u64,
    /// Bytes of the messages since the last snapshot was begun.
    pub bytes_since_snapshot: u64,
    /// What the shared log takes, where its engine says so.
    pub log_bytes: Option<u64>,
}

/// Shared by the task and the store.
#[derive(Debug)]
pub(crate) struct SharedState {
    applied: watch::Sender<u64>,
    replication: Mutex<Replication>,
    is_away: AtomicBool,
    is_ended: AtomicBool,
    rejection: Mutex<Option<Arc<str>>>,
    round_trip_micros: AtomicU64,
}

impl SharedState {
    pub(crate) fn new() -> Self {
        Self {
            applied: watch::Sender::new(0),
            replication: Mutex::default(),
            is_away: AtomicBool::new(false),
            is_ended: AtomicBool::new(false),
            rejection: Mutex::default(),
            round_trip_micros: AtomicU64::new(0),
        }
    }

    pub(crate) fn note_applied(&self, applier: &Applier) {
        let progress = applier.progress();
        let mut replication = self.lock();
        replication.applied = progress.position;
        replication.digest = progress.digest;
        replication.void = applier.void();
        let marks = applier.marks();
        replication.snapshot = marks.durable;
        replication.snapshot_at_ms = marks.durable_at_ms;
        replication.bytes_since_snapshot = marks.bytes;
        replication.last = replication.last.max(progress.position);
        drop(replication);
        self.applied.send_replace(progress.position);
    }

    pub(crate) fn note_last(&self, position: u64) {
        let mut replication = self.lock();
        replication.last = replication.last.max(position);
    }

    pub(crate) fn note_bounds(&self, bounds: Bounds) {
        let mut replication = self.lock();
        replication.first = bounds.first;
        replication.last = replication.last.max(bounds.last);
    }

    pub(crate) fn note_log_bytes(&self, bytes: u64) {
        self.lock().log_bytes = Some(bytes);
    }

    pub(crate) fn note_round_trip(&self, took: Duration) {
        let micros = took.as_micros() as u64;
        self.round_trip_micros.store(micros, Ordering::Relaxed);
    }

    pub(crate) fn replication(&self) -> Replication {
        Replication {
            round_trip_micros: self.round_trip_micros.load(Ordering::Relaxed),
            ..*self.lock()
        }
    }

    /// Waits until the node has applied this position; `false` where it never will.
    pub(crate) async fn wait_for(&self, position: u64) -> bool {
        let mut applied = self.applied.subscribe();
        let reached = applied.wait_for(|applied| *applied >= position || self.is_ended());
        reached.await.is_ok_and(|applied| *applied >= position)
    }

    pub(crate) fn set_away(&self, is_away: bool) {
        self.is_away.store(is_away, Ordering::SeqCst);
    }

    pub(crate) fn is_away(&self) -> bool {
        self.is_away.load(Ordering::SeqCst)
    }

    pub(crate) fn set_ended(&self) {
        self.is_ended.store(true, Ordering::SeqCst);
        // Whoever waits for a position looks again.
        self.applied.send_modify(|_| {});
    }

    fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::SeqCst)
    }

    pub(crate) fn set_rejection(&self, cause: Option<Arc<str>>) {
        *self.rejection.guard() = cause;
    }

    pub(crate) fn rejection(&self) -> Option<Arc<str>> {
        self.rejection.guard().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Replication> {
        self.replication.guard()
    }
}
