//! The write buffer: where batches get their positions. Everything here happens under one lock, in the caller's
//! thread, so that by the time the writer comes a group is one run of bytes.
//!
//! What is applied here is ahead of the disk. That is safe because a failed write poisons the whole log: nothing
//! after it is ever acknowledged. Readers see nothing of it before it is on the disk.

mod admit;
mod admit_run;
mod encoders;
mod keyed;
mod keyed_budget;
mod topics;
mod unsealed_ids;
mod watched_keys;

pub(crate) use admit::Known;
pub(crate) use encoders::Encoders;
pub(crate) use keyed::{KeyedChange, KeyedRecords};
pub(crate) use topics::Topics;
pub(crate) use unsealed_ids::{Held, UnsealedIds};
pub(crate) use watched_keys::{SeenKey, WatchedKeys};

use crate::completion::Completion;
use crate::options::Role;
use crate::record::TopicRecord;
use prombus_store::{CommitError, StoreFailed};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// State of the log as of the last batch taken in.
pub(crate) struct WriteBuffer {
    pub(crate) topics: Topics,
    pub(crate) encoders: Encoders,
    pub(crate) keyed: KeyedRecords,
    /// Publishers' client ids in segments that are not sealed yet, and in what is still waiting.
    pub(crate) unsealed_ids: UnsealedIds,
    /// Keys that batches on their way expect something of.
    pub(crate) watched_keys: WatchedKeys,
    /// What waits to be written.
    pub(crate) pending: CommitGroup,
    /// The segment that the pending group will go to.
    pub(crate) segment: u64,
    /// Someone waits for an fsync.
    pub(crate) sync_wanted: bool,
    /// Something waits to be written, and no one but the sync thread will do it. It need not be synced.
    pub(crate) write_wanted: bool,
    /// The sync thread sleeps and must be woken.
    pub(crate) sync_thread_sleeps: bool,
    /// Once set, every batch is refused.
    pub(crate) refusal: Option<CommitError>,
    /// While this is set, batches with events are refused: the disk is full, and what is left is for everything else.
    pub(crate) full: Option<StoreFailed>,
    pub(crate) limits: Limits,
    pub(crate) role: Role,
}

/// Limits that admission checks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) max_pending_bytes: usize,
    pub(crate) max_keyed_bytes: usize,
}

/// Records that are written and synced together.
#[derive(Default)]
pub(crate) struct CommitGroup {
    pub(crate) bytes: Vec<u8>,
    pub(crate) events: Vec<NewEvent>,
    pub(crate) changes: Vec<ViewChange>,
    /// Readers see them after the sync.
    pub(crate) keyed: Vec<KeyedChange>,
    /// Completes when the group is written.
    pub(crate) written: Arc<Completion>,
    /// Completes when the group is synced.
    pub(crate) synced: Arc<Completion>,
    /// Someone waits for one of the completions, so the group must be processed even without bytes.
    pub(crate) awaited: bool,
    /// Batches in it that wait for the sync.
    pub(crate) batches_to_sync: usize,
    /// A batch in it is acknowledged as soon as the group is written.
    pub(crate) acknowledged_on_write: bool,
}

/// An event on its way to the readers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewEvent {
    pub(crate) topic: u32,
    pub(crate) seq: u64,
    pub(crate) ts: u64,
    /// Offset within the group's bytes.
    pub(crate) at: u32,
    pub(crate) bytes: u32,
    /// Readers see it after the sync; otherwise after the write.
    pub(crate) after_sync: bool,
    pub(crate) keyed: bool,
    pub(crate) has_client_id: bool,
    /// When it was stored, where its publisher gave the ts.
    pub(crate) client_ts_stored_ms: Option<u64>,
}

/// A change to topics on its way to the readers.
#[derive(Debug, Clone)]
pub(crate) enum ViewChange {
    Put {
        record: TopicRecord,
        tail: Arc<AtomicU64>,
    },
    Delete {
        number: u32,
    },
    Trim {
        number: u32,
        first_seq: u64,
    },
}

impl WriteBuffer {
    /// Takes what is pending to write it. The next group is gathered in `spare`.
    pub(crate) fn take_pending(&mut self, spare: Vec<u8>) -> CommitGroup {
        let next = CommitGroup {
            bytes: spare,
            ..CommitGroup::default()
        };
        let mut group = std::mem::replace(&mut self.pending, next);
        // The bytes are kept for readers, and what is kept may not be mostly air.
        if group.bytes.len() < group.bytes.capacity() / 2 {
            group.bytes.shrink_to_fit();
        }
        group
    }

    /// Refuses all further batches. A failure weighs more than a log being closed; of several the first one counts.
    pub(crate) fn refuse(&mut self, refusal: CommitError) {
        match (&self.refusal, &refusal) {
            (None, _) | (Some(CommitError::Closed), CommitError::StoreFailed(_)) => {
                self.refusal = Some(refusal);
            }
            _ => {}
        }
    }

    /// Whether a write or a sync failed, after which nothing may be written any more.
    pub(crate) fn has_failed(&self) -> bool {
        matches!(self.refusal, Some(CommitError::StoreFailed(_)))
    }

    /// Fails everyone whose records were not written.
    pub(crate) fn fail_pending(&mut self, failure: &StoreFailed) {
        let group = std::mem::take(&mut self.pending);
        group.written.complete(Err(failure.clone()));
        group.synced.complete(Err(failure.clone()));
    }
}

impl CommitGroup {
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && !self.awaited
    }
}
