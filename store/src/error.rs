//! The facts that can go wrong, one small type each, and one enum per operation.

use std::fmt;
use std::sync::Arc;

/// There is no such topic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no topic {topic}")]
pub struct UnknownTopic {
    /// The name that was asked for.
    pub topic: Arc<str>,
}

/// A keyed record was not what the write expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the keyed record {key} is at version {found:?}, not as expected")]
pub struct VersionMismatch {
    /// The record's key.
    pub key: Arc<str>,
    /// The version that is there.
    pub found: Option<u64>,
}

/// The topic holds this id with another payload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("topic {topic} already holds id {id} at seq {seq} with another payload")]
pub struct IdConflict {
    /// The topic.
    pub topic: Arc<str>,
    /// The id.
    pub id: String,
    /// Where the first one is.
    pub seq: u64,
}

/// Whose position an event expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PositionOf {
    /// The last one of its topic.
    Topic,
    /// That of the last event of its key.
    Key,
}

/// What is stored is not what an event expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PositionMismatch {
    /// Whose position.
    pub of: PositionOf,
    /// What the event expected.
    pub expected: u64,
    /// What is there; 0 where nothing is.
    pub actual: u64,
}

impl fmt::Display for PositionMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = match self.of {
            PositionOf::Topic => "last seq",
            PositionOf::Key => "last seq of the key",
        };
        write!(f, "the {of} is {}, expected {}", self.actual, self.expected)
    }
}

/// An event was not published because what is stored is not what it expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("topic {topic}: {mismatch}")]
pub struct SeqMismatch {
    /// The topic.
    pub topic: Arc<str>,
    /// What was expected and what is there.
    pub mismatch: PositionMismatch,
    /// Which event of its batch it was.
    pub event: usize,
}

/// A limit with a name was reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("limit {name} of {limit} reached")]
pub struct LimitReached {
    /// The limit's name.
    pub name: &'static str,
    /// Its value.
    pub limit: u64,
}

/// The store cannot take writes. Nothing that was not acknowledged before may be assumed durable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the store takes no writes: {cause}")]
pub struct StoreFailed {
    /// What failed first.
    pub cause: Arc<str>,
}

/// Why a batch was not committed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// A change names a topic that does not exist, or an event of an atomic batch does.
    #[error(transparent)]
    UnknownTopic(#[from] UnknownTopic),
    /// A compare-and-set lost.
    #[error(transparent)]
    VersionMismatch(#[from] VersionMismatch),
    /// An event of an atomic batch conflicts.
    #[error(transparent)]
    IdConflict(#[from] IdConflict),
    /// What is stored is not what an event of an atomic batch expected.
    #[error(transparent)]
    SeqMismatch(#[from] SeqMismatch),
    /// The batch does not fit.
    #[error(transparent)]
    LimitReached(#[from] LimitReached),
    /// The store failed, now or earlier. It takes commits again once it has recovered, which it does by itself.
    #[error(transparent)]
    StoreFailed(#[from] StoreFailed),
    /// The store cannot be reached. Nothing of the batch has happened or will; it may be committed again.
    #[error("the store is unavailable: {cause}")]
    Unavailable {
        /// What failed.
        cause: Arc<str>,
    },
    /// The store could not be heard of in time: the batch may have happened, may still happen, or not. After a
    /// [`Store::barrier`](crate::Store::barrier) reading tells.
    #[error("it is unknown whether the batch was committed: {cause}")]
    Unknown {
        /// What failed.
        cause: Arc<str>,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

impl CommitError {
    /// Whether the store is to blame and not the batch: committing it again later may work.
    pub fn is_store_failure(&self) -> bool {
        matches!(
            self,
            Self::StoreFailed(_) | Self::Unavailable { .. } | Self::Unknown { .. }
        )
    }

    /// Whether the batch may have been committed, or may yet be, although this error was returned.
    pub fn is_ambiguous(&self) -> bool {
        matches!(self, Self::StoreFailed(_) | Self::Unknown { .. })
    }
}

/// Why a read failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// There is no such topic.
    #[error(transparent)]
    UnknownTopic(#[from] UnknownTopic),
    /// The bytes could not be read.
    #[error("reading failed: {cause}")]
    Failed {
        /// What the system said.
        cause: Arc<str>,
    },
}

impl From<std::io::Error> for ReadError {
    fn from(error: std::io::Error) -> Self {
        Self::Failed {
            cause: error.to_string().into(),
        }
    }
}
