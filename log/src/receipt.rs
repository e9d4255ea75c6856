//! What a commit answers, and what a read returns.

use crate::event_id::Id;
use crate::record::StoredEvent;

/// The answer to a committed batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Receipt {
    /// One outcome for each event of the batch, in its order.
    pub events: Vec<EventOutcome>,
    /// The new version of each [`crate::Change::Put`] of the batch, in its order.
    pub versions: Vec<u64>,
}

/// What became of one event of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventOutcome {
    /// It was stored.
    Stored(Placed),
    /// The topic already holds this id with this payload; nothing was stored, this is the first one.
    Duplicate(Placed),
    /// The topic already holds this id with another payload; nothing was stored, this is the first one.
    IdConflict(Placed),
    /// There is no such topic; nothing was stored.
    UnknownTopic,
}

/// Where an event lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// Its id.
    pub id: Id,
    /// Its position in the topic.
    pub seq: u64,
    /// Its time in epoch milliseconds.
    pub ts: u64,
}

/// How much one read may return. A read returns at least one event if there is one, however large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimit {
    /// At most this many events.
    pub events: usize,
    /// About this many bytes.
    pub bytes: usize,
}

/// A stretch of a topic in the order of its positions.
#[derive(Debug, Clone)]
pub struct Page {
    /// The events. Positions may be missing where retention, compaction or damage took them.
    pub events: Vec<StoredEvent>,
    /// Where to read on. Everything before it is in this page, in an earlier one, or gone.
    pub next_seq: u64,
    /// The oldest position the topic keeps.
    pub first_seq: u64,
    /// The newest position that readers see.
    pub tail_seq: u64,
}

/// A stretch of a topic in the order of (ts, seq).
#[derive(Debug, Clone, Default)]
pub struct TimePage {
    /// The events.
    pub events: Vec<StoredEvent>,
    /// Pass this as [`TimeRange::after`] to read on; `None` where the range is exhausted.
    pub next: Option<(u64, u64)>,
}

/// What a topic knows of a key at a time.
#[derive(Debug, Clone, Default)]
pub struct Past {
    /// The latest event that the topic still holds.
    pub event: Option<StoredEvent>,
    /// Whether it was the latest then: nothing that compaction or damage took can have come behind it.
    pub is_certain: bool,
}

/// Which events a read by time returns: `from_ts <= ts <= to_ts`, and behind `after` in (ts, seq) order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    /// The earliest time.
    pub from_ts: u64,
    /// The latest time.
    pub to_ts: u64,
    /// The (ts, seq) of the last event already read.
    pub after: Option<(u64, u64)>,
}

/// A keyed record with the version that a compare-and-set names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keyed {
    /// Grows with each write of the key, also where it was deleted in between, until the log is opened anew.
    pub version: u64,
    /// The bytes.
    pub value: std::sync::Arc<[u8]>,
}
