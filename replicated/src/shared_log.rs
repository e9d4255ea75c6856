//! What an engine has to do to carry a cluster: keep one ordered log of messages. Everything else, from positions in
//! topics to compare-and-set, follows from its order and is decided by whoever applies it.

use crate::snapshot::Snapshots;
use bytes::Bytes;
use prombus_store::{Answer, Durability};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// One ordered log that all nodes of a cluster append to and follow.
///
/// Obligations of a driver:
///
/// 1. **Order.** Messages have the positions 1, 2, 3 … without gaps, the same for everyone. A message that was
///    acknowledged stays at its position until it is trimmed.
/// 2. **Durability.** `append` answers `Ok` only when the message is as durable as [`Description::durability`] says.
/// 3. **Honesty.** `append` answers `Rejected` only when the message is not stored and never will be. Whatever is not
///    known is `Unknown`: the node finds out by following the log, and may append the same message again, because the
///    second copy of a message is void.
/// 4. **Following.** A follower gets every message once and in order. It reconnects by itself for as long as it takes;
///    only what cannot mend itself ends it.
pub trait SharedLog: Send + Sync + 'static {
    /// Appends a message of at most [`Description::max_message_bytes`] and returns its position. A node has up to
    /// [`Description::max_in_flight`] appends under way at a time; they may be stored in any order. A driver gives up on its own after a few seconds without an answer (`Unknown`).
    fn append(&self, message: Bytes, durability: Durability) -> Answer<u64, AppendError>;

    /// Follows the log from the message behind `after` on: what is there, then what is appended by anyone.
    fn follow(&self, after: u64) -> Follower;

    /// Where the log begins and ends now, as whoever decides about it says; not from a cache. It also serves as the
    /// probe of whether the log can be reached.
    fn bounds(&self) -> Answer<Bounds, Unavailable>;

    /// Forgets all messages up to and with `through`.
    fn trim(&self, through: u64) -> Answer<(), Unavailable>;

    /// How many bytes the log takes, where the engine says so.
    fn bytes(&self) -> Answer<Option<u64>, Unavailable> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Where snapshots of copies are kept beside the log. Without them it is never trimmed.
    fn snapshots(&self) -> Option<Arc<dyn Snapshots>> {
        None
    }

    /// What the log is. It does not change while it is open.
    fn description(&self) -> &Description;
}

/// What a shared log is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// What a user sees at start-up, without credentials, e.g. `nats://127.0.0.1:4222/prombus`.
    pub url: String,
    /// What an acknowledged commit has survived, in words.
    pub durability: String,
    /// Said once at start-up: how an acknowledged commit could still be lost, if it could.
    pub warning: Option<String>,
    /// A number that was drawn when the log was made and is kept with it. A copy belongs to the log of one number; ids
    /// that are generated while applying carry it.
    pub log_id: u64,
    /// The largest message that the log takes. Larger commits are sent in parts.
    pub max_message_bytes: usize,
    /// How many appends a node has under way at a time at most.
    pub max_in_flight: usize,
}

/// The first and the last message that the log holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The position of the oldest message; `last + 1` where there is none.
    pub first: u64,
    /// The position of the newest message that was ever appended; 0 before the first.
    pub last: u64,
}

/// One message of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its position.
    pub position: u64,
    /// Its bytes as they were appended.
    pub message: Bytes,
}

/// The log cannot be reached, or does not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct Unavailable {
    /// What failed.
    pub cause: Arc<str>,
}

/// Why a message was not acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// It is not stored and will not be: the log is full, read-only or closed, or the request never left.
    #[error("{cause}")]
    Rejected {
        /// What the engine said.
        cause: Arc<str>,
    },
    /// It may be stored, now or later.
    #[error("{cause}")]
    Unknown {
        /// What failed.
        cause: Arc<str>,
    },
}

/// Why following ended. None of this mends itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FollowError {
    /// What comes next was trimmed or purged.
    #[error("the shared log begins at {first}, but {wanted} is needed next")]
    Trimmed {
        /// The position that comes next.
        wanted: u64,
        /// The oldest one that the log holds.
        first: u64,
    },
    /// The log ends before what was read from it: it was made anew, or lost what it had acknowledged.
    #[error("the shared log ends at {last}, but {applied} was read from it before")]
    Behind {
        /// The last position that was read.
        applied: u64,
        /// Where the log ends.
        last: u64,
    },
    /// A message in the middle is gone, or cannot be read.
    #[error("the shared log has no message at {position}: {cause}")]
    Missing {
        /// Its position.
        position: u64,
        /// What the engine said.
        cause: Arc<str>,
    },
}

/// The messages of a shared log as they come. Dropping it ends the task that reads them.
#[derive(Debug)]
pub struct Follower {
    entries: mpsc::Receiver<Result<Entry, FollowError>>,
    reader: JoinHandle<()>,
}

impl Follower {
    /// How many messages a reader may be ahead.
    pub const MAX_AHEAD: usize = 32;

    /// Starts a reader, which sends what it reads and ends when the channel is closed.
    pub fn spawn<F>(reader: impl FnOnce(mpsc::Sender<Result<Entry, FollowError>>) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (sender, entries) = mpsc::channel(Self::MAX_AHEAD);
        let reader = tokio::spawn(reader(sender));
        Self { entries, reader }
    }

    /// The next message. Nothing comes behind an error; `None` where the log was closed. It can be cancelled without
    /// losing a message.
    pub async fn next(&mut self) -> Option<Result<Entry, FollowError>> {
        self.entries.recv().await
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.reader.abort();
    }
}
