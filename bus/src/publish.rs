//! Publishing: what a publisher may say about an event, batches of events, and their answers.
//!
//! Everything up to the store's commit happens in the call itself, so events are stored in the order of the calls;
//! awaiting the answer only waits until they are durable.

mod atomic_batch;
mod batch;
mod future;
mod validate;

pub(crate) use atomic_batch::AtomicBatch;
pub use batch::PublishBatch;
pub use future::{BatchFuture, PublishFuture};
pub use validate::is_tombstone;
pub(crate) use validate::{MAX_TS, checked_payload, draft};

use prombus_store::Id;

/// What a publisher may say about an event. Borrowed, so that publishing in a loop allocates nothing for it.
#[derive(Debug, Clone, Copy, Default)]
pub struct PublishOptions<'a> {
    /// The publisher's own id, 1 to 64 printable ASCII characters. Publishing it again stores nothing.
    pub id: Option<&'a str>,
    /// The publisher's own time in epoch milliseconds.
    pub ts: Option<u64>,
    /// For compaction, ordering and partitioning.
    pub key: Option<&'a str>,
    /// Names and values.
    pub headers: &'a [(String, String)],
    /// Free labels.
    pub tags: &'a [String],
    /// Ids of the events that caused this one.
    pub caused_by: &'a [String],
    /// Boot or session id of the publisher.
    pub sid: Option<&'a str>,
    /// Publish only if this is the topic's last position; 0 where it has never had an event. Else it is a
    /// [`SeqMismatch`](crate::error::SeqMismatch). A duplicate is one whatever is expected.
    pub expect_seq: Option<u64>,
    /// Publish only if the last event of the key is at this position; 0 where there is none.
    pub expect_key_seq: Option<u64>,
}

/// The position of a published event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// Its id.
    pub id: Id,
    /// Its position in the topic.
    pub seq: u64,
    /// Its time in epoch milliseconds.
    pub ts: u64,
    /// Whether the topic held this id already: then nothing was stored, and this is the first event.
    pub duplicate: bool,
}
