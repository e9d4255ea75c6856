//! Publishing: what a publisher may say about an event, batches of events, and their answers.
//!
//! A publish that finds room is on its way when the call returns, in the order of the calls.

mod batch;
mod encode;
mod future;
pub(crate) mod outbox;
mod slots;

pub use batch::PublishBatch;
pub(crate) use encode::{Encoded, encode, encode_value};
pub use future::{BatchFuture, PublishFuture};

use crate::id::Id;

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
}

/// Where a published event lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// Its id.
    pub id: Id,
    /// Its position in the topic.
    pub seq: u64,
    /// Whether the topic held this id already: then nothing was stored, and this is the first event.
    pub duplicate: bool,
}
