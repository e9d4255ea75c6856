//! What a commit answers, and what a read returns.

use crate::error::PositionMismatch;
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
    Stored(EventRef),
    /// The topic already holds this id with this payload; nothing was stored, this is the first one.
    Duplicate(EventRef),
    /// The topic already holds this id with another payload; nothing was stored, this is the first one.
    IdConflict(EventRef),
    /// What is stored is not what the event expected; nothing was stored.
    SeqMismatch(PositionMismatch),
    /// There is no such topic; nothing was stored.
    UnknownTopic,
}

/// Where an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRef {
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

/// From where, and in which order, a topic is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadFrom<'a> {
    /// In the order of positions, from this one on. Go on with [`Page::next_seq`].
    Seq(u64),
    /// In the order of (ts, seq). Go on with [`Page::next_time`].
    Time(TimeRange),
    /// The latest event of each key behind this one, in the order of keys (bytes), tombstones included. Go on behind the
    /// key of the last event; an empty page is the end.
    Key(Option<&'a str>),
}

/// A part of a topic.
#[derive(Debug, Clone)]
pub struct Page {
    /// The events. Positions may be missing where retention, compaction or damage took them.
    pub events: Vec<StoredEvent>,
    /// Read by position: where to read on. Everything before it is in this page, in an earlier one, or gone.
    pub next_seq: u64,
    /// Read by time: pass this as [`TimeRange::after`] to read on; `None` where the range is exhausted.
    pub next_time: Option<(u64, u64)>,
    /// The oldest position the topic keeps.
    pub first_seq: u64,
    /// The newest position that readers see.
    pub tail_seq: u64,
}

/// What a topic knows of a key, now or as of a time.
#[derive(Debug, Clone, Default)]
pub struct LatestEvent {
    /// The latest event that the topic still holds; a tombstone is returned like any other.
    pub event: Option<StoredEvent>,
    /// Whether it was the latest then: nothing that compaction or damage took can have come behind it. Always true of
    /// what is asked as of now.
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
