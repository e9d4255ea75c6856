//! The store contract of prombus: one thin trait, its obligations, a conformance suite, and the stores.
//!
//! A store keeps events in topics and small keyed records beside them, and commits both in one atomic step. It knows
//! nothing of groups: everything about delivery is written once, in the bus, and is the same on every store.

mod batch;
mod clock;
#[cfg(feature = "conformance")]
pub mod conformance;
mod damage;
mod error;
mod event_id;
mod json_text;
mod locks;
#[cfg(feature = "memory")]
pub mod memory;
mod receipt;
pub mod record;
mod sync_times;
mod tails;
mod topic;
mod wrapper;

pub use batch::{
    Batch, Change, Draft, EncodedEvent, Expect, ExpectedPosition, IfExists, InvalidBatch,
    KeyPosition,
};
pub use clock::{Clock, ManualClock, SystemClock};
pub use damage::{Damage, DamageKind, DamagedEvent, LostSeqs, MAX_NAMED};
pub use error::{
    CommitError, IdConflict, LimitReached, PositionMismatch, PositionOf, ReadError, SeqMismatch,
    StoreFailed, UnknownTopic, VersionMismatch,
};
pub use event_id::{GeneratedId, Id, IdGenerator, MAX_ID_BYTES, MAX_SEQ, TAG_BITS, tag_of};
pub use locks::{LockExt, RwLockExt};
pub use receipt::{
    EventOutcome, EventRef, Keyed, LatestEvent, Page, ReadFrom, ReadLimit, Receipt, TimeRange,
};
pub use record::{MAX_RECORD_BYTES, StoredEvent};
pub use sync_times::{SyncTimeCounts, SyncTimes};
pub use tails::{TailAdvances, TailWatch, Tails, TopicsWatch};
pub use topic::{Durability, TOMBSTONE_MS, TopicInfo, TopicOptions};
pub use wrapper::Wrapper;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// An answer that comes later.
pub type Answer<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'static>>;

/// Where to look for a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Find<'a> {
    /// The event with this id.
    Id(&'a str),
    /// The first event, in the order of positions, whose ts is this or later.
    Ts(u64),
}

/// How a store is doing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreStatus {
    /// What a user sees at start-up, e.g. `file:./prombus-data`.
    pub url: String,
    /// What `fsync` durability really means here, in words.
    pub durability: String,
    /// Why it takes no writes, if it does not.
    pub failed: Option<Arc<str>>,
    /// Bytes it takes on disk or in memory.
    pub bytes: u64,
    /// How many fsyncs it has done, and how long they took together.
    pub syncs: u64,
    /// Microseconds spent in them.
    pub sync_micros: u64,
    /// What was found damaged, with topics, positions and ids; a limited number.
    pub damage: Vec<Damage>,
    /// How many findings of damage there are, those that are not listed included.
    pub damage_count: u64,
    /// How far this node's copy is, where several nodes share the store.
    pub copy: Option<CopyProgress>,
}

/// How far a node's copy of a shared store is, in positions of the log of commits that the nodes share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CopyProgress {
    /// The last commit that is in the copy.
    pub applied: u64,
    /// The last one that the node has heard of.
    pub last: u64,
    /// The first one that the log held when it was last asked.
    pub first: u64,
    /// Bytes that the log takes, where its engine says so.
    pub log_bytes: Option<u64>,
    /// The position of the newest durable snapshot; 0 where there is none.
    pub snapshot: u64,
    /// When it became durable, in epoch milliseconds by the clock of the node that made it.
    pub snapshot_at_ms: u64,
    /// Bytes of commits since the last snapshot was begun.
    pub bytes_since_snapshot: u64,
    /// How long the last commit took to be acknowledged by the log.
    pub round_trip_micros: u64,
}

impl CopyProgress {
    /// How many commits the copy is behind what the node has heard of.
    pub fn lag(&self) -> u64 {
        self.last.saturating_sub(self.applied)
    }
}

/// A place that keeps events and keyed records.
///
/// ```text
///            commit(batch)                       read · find · latest
///                 │                                           ▲
///    ┌────────────▼───────────┐   durable   ┌─────────────────┴──────┐
///    │ seq, id, ts are given, │────────────▶│ visible: tail moves,   │──▶ watch
///    │ expectations checked   │             │ commit answers         │
///    └────────────────────────┘             └────────────────────────┘
/// ```
///
/// Obligations, checked by the conformance suite:
///
/// 1. **Order.** A topic's events get seq 1, 2, 3 … without gaps, in the order of their commits and of the batch. The
///    order of commits is that of the calls, for each handle on a store that has several.
///    Ids made by the store strictly increase within the topic, as text too; ts given by the store never falls.
/// 2. **Durability.** A commit answers `Ok` only when everything in it is durable at the strongest durability of the
///    topics it touches (keyed records alone: `fsync`). What a reader sees or a watcher is notified of is durable at its own
///    topic's durability.
/// 3. **Atomicity.** Of an atomic batch everything is there after a crash, or nothing. Changes come before events.
///    If an expectation fails nothing of the batch happens, atomic or not.
/// 4. **Idempotence.** An id that the topic still holds is stored once, across restarts; the outcome says so. This
///    also holds for ids the store made itself and that a publisher hands back, and within one batch.
///    What an event expects ([`ExpectedPosition`]) is compared with everything that was committed before it and with the
///    events before it in its batch, in the same step in which it gets its position. Of an atomic batch a failed
///    comparison refuses all, else only its own event. A duplicate is compared with nothing. A tombstone is its key's
///    last event for half of [`TOMBSTONE_MS`]; then the key has none.
/// 5. **Reading.** Every event with seq ≥ `from_seq` up to the tail is returned once, in order, except what
///    retention, compaction or damage took; `next_seq` skips what is gone. By time: once, in (ts, seq) order, also
///    when an event's ts is older than its predecessors'. Compaction keeps a
///    tombstone for [`TOMBSTONE_MS`] at least. What a key was at a time is certain unless something that
///    is gone may have come behind it; what retention took does not count, for it is before all that is kept.
/// 6. **Topics.** An event for a topic that does not exist is `UnknownTopic`. A topic made again after deletion
///    starts at seq 1, has another incarnation and shows nothing of the old one. `PutTopic` on an
///    existing topic changes only its options, or nothing where it is to be kept.
/// 7. **Keyed records.** Versions grow with each write of a key, also where it was deleted in between while the store
///    was open; on a store of several nodes also across nodes and openings. Reads see what has been committed, with its events: a reader that sees a record sees the events of the batch
///    that wrote it. A read that comes after a commit was asked for through the same handle sees that one
///    too, unless it fails.
/// 8. **Failure.** After a failed write commits fail (`StoreFailed`, or `Unavailable` where nothing happened and
///    `Unknown` where that cannot be told) until the store takes writes again, which it finds out by itself; reads and
///    watches go on throughout. What was acknowledged or shown stays where it was, and
///    a batch that failed happens once or not at all. A store that cannot write when it is opened can be read. Nothing
///    panics on damage.
/// 9. **Bounds.** Memory does not grow with the number of stored events (the memory store excepted: there it is the
///    point).
pub trait Store: Send + Sync + 'static {
    /// Commits a batch. The order of commits is the order of these calls, not of the answers; a dropped answer does
    /// not undo the commit.
    fn commit(&self, batch: Batch) -> Answer<Receipt, CommitError>;

    /// The same for a caller that does nothing else until it has the answer: a store that gains by it may do the work
    /// on the caller's thread.
    fn commit_inline(&self, batch: Batch) -> Answer<Receipt, CommitError> {
        self.commit(batch)
    }

    /// Waits until everything that was committed before this call, through whichever handle or node, can be read here.
    fn barrier(&self) -> Answer<(), ReadError> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Reads a topic by position, by time, or the latest event of each key.
    fn read(
        &self,
        topic: &Arc<str>,
        from: ReadFrom<'_>,
        limit: ReadLimit,
    ) -> Answer<Page, ReadError>;

    /// Finds a position, `None` where the topic holds no such event.
    fn find(&self, topic: &Arc<str>, what: Find<'_>) -> Answer<Option<u64>, ReadError>;

    /// For each of `keys`, in their order, its latest event in the order of positions; with `at_ts` among those with this
    /// ts or an earlier one. Each key is named once.
    fn latest(
        &self,
        topic: &Arc<str>,
        keys: Vec<String>,
        at_ts: Option<u64>,
    ) -> Answer<Vec<LatestEvent>, ReadError>;

    /// Follows a topic's tail, also of one that does not exist yet (its tail is 0).
    fn watch(&self, topic: &Arc<str>) -> TailWatch;

    /// Follows the set of topics: changes when one is made, changed or deleted.
    fn watch_topics(&self) -> TopicsWatch;

    /// Follows the tails of all topics: which have moved since it was asked last. For those who follow so many topics that
    /// a watch for each would cost too much.
    fn watch_tails(&self) -> TailAdvances;

    /// A topic as this node sees it: never behind what this handle has acknowledged or notified a watch of.
    fn topic(&self, topic: &str) -> Option<TopicInfo>;

    /// What tells a topic from every earlier one of its name; a number that the store gives to no other topic.
    fn incarnation(&self, topic: &str) -> Option<u64> {
        self.topic(topic).map(|info| info.incarnation)
    }

    /// All topics in the order of their names.
    fn topics(&self) -> Vec<TopicInfo>;

    /// A keyed record.
    fn get(&self, key: &str) -> Answer<Option<Keyed>, ReadError>;

    /// All keyed records whose key starts with `prefix`, in the order of keys.
    fn list(&self, prefix: &str) -> Answer<Vec<(Arc<str>, Keyed)>, ReadError>;

    /// Applies retention and compaction now, and frees what they let go. Stores also do this by themselves; where several
    /// nodes share one, one of them does.
    fn maintain(&self) -> Answer<(), CommitError>;

    /// How the store is doing.
    fn status(&self) -> StoreStatus;

    /// How long its fsyncs took since it was opened; nothing where it does none of its own.
    fn sync_times(&self) -> SyncTimeCounts {
        SyncTimeCounts::default()
    }

    /// Which node this is, where several share the store; `None` where this process has it for itself.
    fn shared_as(&self) -> Option<NodeBoot> {
        None
    }

    /// Finishes what was begun and lets go of the store's files. Later commits are `Closed`.
    fn close(&self) -> Answer<(), CommitError>;
}

/// A start of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NodeBoot {
    /// The node: at any time at most one process is this one, and it may be started again.
    pub node: u64,
    /// A number that no other start of any node has.
    pub boot: u64,
}

impl dyn Store {
    /// The latest event of a key; a tombstone is returned like any other.
    pub async fn latest_event(
        &self,
        topic: &Arc<str>,
        key: &str,
    ) -> Result<Option<StoredEvent>, ReadError> {
        let mut latest = self.latest(topic, vec![key.to_owned()], None).await?;
        Ok(latest.pop().and_then(|latest| latest.event))
    }
}
