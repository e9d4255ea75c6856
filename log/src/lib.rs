//! The embedded log of prombus: one commit stream for all topics.
//!
//! It knows bytes and positions, not groups: events in topics, small keyed records beside them, and atomic batches
//! over both. It is synchronous and brings no runtime; a commit's answer is a plain [`std::future::Future`] that can
//! also be waited for on a thread.

mod batch;
mod client_ids;
mod clock;
mod closed_mark;
mod damage;
mod error;
mod event_id;
mod files;
mod filter;
mod front;
mod gate;
mod hashing;
mod json_text;
mod log;
mod maintain;
mod names;
mod options;
mod pace;
mod prepare;
mod read;
mod receipt;
mod recent;
mod record;
mod recovery;
mod reopen;
mod reserve;
mod segment;
mod segment_set;
mod shared;
mod state_runs;
mod sync_thread;
mod topic;
mod verify;
mod view;
mod writer;

pub use batch::{Batch, Change, Draft, EncodedEvent, Expect};
pub use clock::{Clock, ManualClock, SystemClock};
pub use damage::{Damage, DamageKind, DamagedEvent, LostSeqs, MAX_FINDINGS, MAX_NAMED};
pub use error::{
    CommitError, IdConflict, LimitReached, ReadError, StoreFailed, UnknownTopic, VersionMismatch,
};
pub use event_id::{Id, MAX_ID_BYTES, MAX_SEQ, MadeId, TAG_BITS};
pub use files::{FencedFiles, File, Files, OsFiles, OverlayFiles, fault};
pub use gate::Commit;
pub use log::{Log, LogStats};
pub use options::{Listener, LogOptions, TOMBSTONE_MS};
pub use receipt::{
    EventOutcome, Keyed, Page, Past, Placed, ReadLimit, Receipt, TimePage, TimeRange,
};
pub use record::{EventBlock, MAX_RECORD_BYTES, StoredEvent};
pub use recovery::{CutTail, OpenError, OpenReport};
pub use topic::{Durability, TopicInfo, TopicOptions};
pub use verify::{VerifyReport, verify};
