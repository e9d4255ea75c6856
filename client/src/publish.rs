//! Publishing: what a publisher may say about an event, batches of events, and their answers.
//!
//! A publish that finds room is on its way when the call returns, in the order of the calls.

mod atomic;
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
    /// Publish only if this is the topic's last position; 0 where it has never had an event. Else the server answers
    /// `seq_mismatch` with the `actual` one.
    pub expect_seq: Option<u64>,
    /// Publish only if the last event of the key is at this position; 0 where there is none.
    pub expect_key_seq: Option<u64>,
    /// Publish at this time, in epoch milliseconds: until then the server keeps the event apart from its topic, and
    /// [`Published::due`] says when it is published.
    pub deliver_at: Option<u64>,
    /// Publish after so many milliseconds.
    pub delay_ms: Option<u64>,
    /// Publish again and again: an interval (`30s`) or a cron line with an optional time zone
    /// (`0 9 * * 1-5 Europe/Berlin`).
    pub every: Option<&'a str>,
    /// Of a repeated event: publish also for each time that was missed while the server was down, and not only for the
    /// last of them.
    pub catch_up: bool,
    /// Publish the event in other versions to other topics too, all or none: while consumers move from one version to the
    /// next, both get it. The others have the same id, key, headers and so on as the event itself.
    pub also_publish: &'a [AlsoPublish<'a>],
}

/// An event in another version, for another topic.
#[derive(Debug, Clone, Copy)]
pub struct AlsoPublish<'a> {
    /// Where to.
    pub topic: &'a str,
    /// The payload, as JSON.
    pub payload: &'a str,
}

/// The position of a published event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// Its id.
    pub id: Id,
    /// Its position in the topic; 0 where it is to be published later.
    pub seq: u64,
    /// When it is due, where it is to be published later.
    pub due: Option<u64>,
    /// Whether the topic held this id already: then nothing was stored, and this is the first event.
    pub duplicate: bool,
}
