//! The store of several nodes. A commit is one message of a shared log; every node follows that log and applies message
//! after message to its own copy, from which it reads.
//!
//! ```text
//!   commit(batch) ─► gather ─► one message ─► shared log (a JetStream stream, a MongoDB collection)
//!                                                │ acknowledged
//!   every node: follow ─► apply to its copy ◄────┘   the commit is acknowledged when this node has applied it
//! ```

mod applier;
mod boots;
mod copy;
mod digest;
mod flight;
mod marks;
pub mod message;
#[cfg(feature = "mongo")]
pub mod mongo;
#[cfg(feature = "nats")]
pub mod nats;
mod queue;
mod runner;
mod shared_log;
#[cfg(any(test, feature = "simulated"))]
pub mod simulated;
mod snapshot;
mod state;
mod store;
mod trims;
mod upkeep;
#[cfg(any(feature = "nats", feature = "mongo"))]
mod url_options;
mod window;

pub use copy::folder::{FolderCopy, OpenCopyError, Rebuilt};
pub use copy::log::{LogCopy, Place, Shelf};
pub use copy::{LocalCopy, MemoryCopy, Outcomes, StagedCopy};
pub use shared_log::{
    AppendError, Bounds, Description, Entry, FollowError, Follower, SharedLog, Unavailable,
};
pub use snapshot::Snapshots;
pub use state::{Options, Replication};
pub use store::{OpenError, ReplicatedStore};
pub use trims::Trim;
#[cfg(any(feature = "nats", feature = "mongo"))]
pub use url_options::UrlOptions;
