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
use prombus_interface::Schedule;

/// What a publisher may say about an event.
pub type PublishOptions<'a> = prombus_interface::PublishOptions<'a, PublishExtras<'a>>;

/// What a server takes beside what a bus in process does.
#[derive(Debug, Clone, Copy, Default)]
pub struct PublishExtras<'a> {
    /// Publish later, where this says when: until then the server keeps the event apart from its topic, and
    /// [`Published::due`] says when it is published.
    pub schedule: Schedule<'a>,
    /// Publish the event in other versions to other topics too, all or none: while consumers move from one version to the
    /// next, both get it. The others have the same id, key, headers and so on as the event itself.
    pub also_publish: &'a [AlsoPublish<'a>],
}

impl<'a> From<Schedule<'a>> for PublishExtras<'a> {
    fn from(schedule: Schedule<'a>) -> Self {
        let also_publish = &[];
        Self {
            schedule,
            also_publish,
        }
    }
}

/// An event in another version, for another topic.
#[derive(Debug, Clone, Copy)]
pub struct AlsoPublish<'a> {
    /// Where to.
    pub topic: &'a str,
    /// The payload, as JSON.
    pub payload: &'a str,
}

/// The position of a published event. It is not the one of the bus in process: what a server publishes later has a due
/// time, and what it publishes with something else is reported without its own time.
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
