//! The embedded log of prombus: one commit stream for all topics.
//!
//! It knows bytes and positions, not groups: events in topics, small keyed records beside them, and atomic batches
//! over both. It is synchronous and brings no runtime; a commit's answer is a plain [`std::future::Future`] that can
//! also be waited for on a thread.

mod batch;
mod clock;
mod error;
mod event_id;
mod json_text;
mod receipt;
mod record;
mod topic;

pub use batch::{Batch, Change, Draft, EncodedEvent, Expect};
pub use clock::{Clock, ManualClock, SystemClock};
pub use error::{
    CommitError, IdConflict, LimitReached, ReadError, StoreFailed, UnknownTopic, VersionMismatch,
};
pub use event_id::{Id, MAX_ID_BYTES, MAX_SEQ, MadeId, TAG_BITS};
pub use receipt::{EventOutcome, Keyed, Page, Placed, ReadLimit, Receipt, TimePage, TimeRange};
pub use record::StoredEvent;
pub use topic::{Durability, TopicInfo, TopicOptions};
