//! Publishing: batches of events, and their answers.
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

pub use prombus_interface::PublishOptions;
use prombus_store::Id;

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
