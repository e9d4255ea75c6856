//! The embedded log of prombus: one commit stream for all topics.
//!
//! It knows bytes and positions, not groups: events in topics, small keyed records beside them, and atomic batches
//! over both. It is synchronous and brings no runtime; a commit's answer is a plain [`std::future::Future`] that can
//! also be waited for on a thread.

mod append;
mod background;
mod client_ids;
mod closed_mark;
mod committer;
mod completion;
mod copy;
mod damage;
mod files;
mod filter;
mod hashing;
pub mod image;
mod key_index;
mod log;
mod maintainer;
mod maintenance;
mod options;
mod pace;
mod prepare;
mod read;
mod reader;
mod record;
mod recovery;
mod reopen;
mod reserve;
mod segment;
mod segment_set;
mod state_runs;
#[cfg(feature = "file")]
mod store;
mod sync_thread;
mod tail_cache;
mod verify;
mod view;
mod write_buffer;
mod writer;

pub use completion::Commit;
pub use copy::Applied;
pub use damage::MAX_FINDINGS;
#[cfg(any(test, feature = "fault"))]
pub use files::fault;
pub use files::{FencedFiles, File, Files, OsFiles, OverlayFiles, TrackedFiles};
pub use log::{Log, LogStats};
pub use options::{Listener, LogOptions, Role};
pub use recovery::{CutTail, OpenError, OpenReport};
#[cfg(feature = "file")]
pub use store::FileStore;
pub use verify::{VerifyReport, verify};
