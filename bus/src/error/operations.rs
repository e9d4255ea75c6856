//! One enum per operation. Each says whether the operation may succeed when it is tried again.

use super::facts::*;
use prombus_store::{
    CommitError, IdConflict, LimitReached, ReadError, SeqMismatch, StoreFailed, UnknownTopic,
};
use std::sync::Arc;
use thiserror::Error;

/// Why a bus could not be opened.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OpenError {
    /// An option makes no sense.
    #[error(transparent)]
    InvalidField(#[from] InvalidField),
    /// A topic default's pattern is not one.
    #[error(transparent)]
    InvalidPattern(#[from] InvalidPattern),
    /// The bus runs its groups as tasks and needs a runtime to put them on.
    #[error("a bus must be opened inside a tokio runtime")]
    NoRuntime,
}

/// Why a bus could not be opened by the URL of its store.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OpenUrlError {
    /// No store of this kind is built in.
    #[error(
        "{url:?} is no store of this build; use memory: or file:PATH with the features `memory` and `file`, \
         or open another store and give it to Bus::open"
    )]
    UnknownStore {
        /// The URL.
        url: String,
    },
    /// The store could not be opened.
    #[error("cannot open the store: {cause}")]
    Store {
        /// What the store said.
        cause: String,
    },
    /// The bus could not be opened on it.
    #[error(transparent)]
    Bus(#[from] OpenError),
}

/// Why an event was not published.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(
    missing_docs,
    reason = "each variant is the fact it carries, which says it all"
)]
pub enum PublishError {
    #[error(transparent)]
    InvalidTopic(#[from] InvalidTopic),
    #[error(transparent)]
    InvalidJson(#[from] InvalidJson),
    #[error(transparent)]
    InvalidPayload(#[from] InvalidPayload),
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    #[error(transparent)]
    InvalidField(#[from] InvalidField),
    #[error(transparent)]
    SchemaInvalid(#[from] SchemaInvalid),
    #[error(transparent)]
    UnknownTopic(#[from] UnknownTopic),
    #[error(transparent)]
    IdConflict(#[from] IdConflict),
    #[error(transparent)]
    SeqMismatch(#[from] SeqMismatch),
    #[error(transparent)]
    LimitReached(#[from] LimitReached),
    #[error(transparent)]
    StoreFailed(#[from] StoreFailed),
    #[error("the bus is closed")]
    Closed,
}

/// Why a subscription was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(
    missing_docs,
    reason = "each variant is the fact it carries, which says it all"
)]
pub enum SubscribeError {
    #[error(transparent)]
    InvalidTopic(#[from] InvalidTopic),
    #[error(transparent)]
    InvalidPattern(#[from] InvalidPattern),
    #[error(transparent)]
    InvalidGroup(#[from] InvalidGroup),
    #[error(transparent)]
    InvalidField(#[from] InvalidField),
    #[error(transparent)]
    UnknownTopic(#[from] UnknownTopic),
    #[error(transparent)]
    Group(#[from] GroupError),
}

/// Why something could not be done with a group.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GroupError {
    /// The topic's name is not one.
    #[error(transparent)]
    InvalidTopic(#[from] InvalidTopic),
    /// The group's name is not one.
    #[error(transparent)]
    InvalidGroup(#[from] InvalidGroup),
    /// A position makes no sense.
    #[error(transparent)]
    InvalidField(#[from] InvalidField),
    /// There is no such topic.
    #[error(transparent)]
    UnknownTopic(#[from] UnknownTopic),
    /// There is no such group.
    #[error(transparent)]
    UnknownGroup(#[from] UnknownGroup),
    /// The topic holds no event with the id that names the position.
    #[error(transparent)]
    UnknownId(#[from] UnknownId),
    /// Another bus on the same store has the group now.
    #[error(transparent)]
    TakenOver(#[from] TakenOver),
    /// Another node serves the group.
    #[error(transparent)]
    OwnedElsewhere(#[from] OwnedElsewhere),
    /// An option belongs to the group, which has another.
    #[error(transparent)]
    GroupMismatch(#[from] GroupMismatch),
    /// There is no seek to undo.
    #[error(transparent)]
    NothingToUndo(#[from] NothingToUndo),
    /// Too much was settled since the seek.
    #[error(transparent)]
    TooMuchSettled(#[from] TooMuchSettled),
    /// What is stored of the group cannot be understood. It is left as it is.
    #[error("the stored state of group {group} of topic {topic} is damaged: {reason}")]
    Damaged {
        /// The topic.
        topic: Arc<str>,
        /// The group.
        group: Arc<str>,
        /// What its reader said.
        reason: Arc<str>,
    },
    /// The store could not be read.
    #[error("reading failed: {cause}")]
    ReadFailed {
        /// What the system said.
        cause: Arc<str>,
    },
    /// The store takes no writes.
    #[error(transparent)]
    StoreFailed(#[from] StoreFailed),
    /// The bus is closed.
    #[error("the bus is closed")]
    Closed,
}

/// Why a topic could not be made, changed or removed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(
    missing_docs,
    reason = "each variant is the fact it carries, which says it all"
)]
pub enum AdminError {
    #[error(transparent)]
    InvalidTopic(#[from] InvalidTopic),
    #[error(transparent)]
    InvalidField(#[from] InvalidField),
    #[error(transparent)]
    TopicExists(#[from] TopicExists),
    #[error(transparent)]
    UnknownTopic(#[from] UnknownTopic),
    #[error(transparent)]
    LimitReached(#[from] LimitReached),
    #[error(transparent)]
    StoreFailed(#[from] StoreFailed),
    #[error("reading failed: {cause}")]
    ReadFailed { cause: Arc<str> },
    #[error("the bus is closed")]
    Closed,
}

/// Why an acknowledgement, its opposite or an extension settled nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SettleError {
    /// Another member holds the event.
    #[error(transparent)]
    LeaseLost(#[from] LeaseLost),
    /// The topic has no such event, or no member holds a lease on the one to be extended.
    #[error(transparent)]
    UnknownId(#[from] UnknownId),
    /// The store does not take the group's record, so that the event will be delivered again after a restart.
    #[error("{cause}")]
    NotWritten {
        /// What the store said, and of which group.
        cause: Arc<str>,
    },
    /// The group's owner is gone, with the bus or with the topic.
    #[error("the group is no longer served")]
    Gone,
}

/// Why events were not acknowledged and nothing was published with them.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AckPublishError {
    /// An event may not be published, or was not.
    #[error(transparent)]
    NotPublished(#[from] NotPublished),
    /// An event is settled, or being settled by another transaction.
    #[error(transparent)]
    AlreadySettled(#[from] AlreadySettled),
    /// Another member holds an event, or the cursor was set since it was delivered.
    #[error(transparent)]
    LeaseLost(#[from] LeaseLost),
    /// The topic holds no such event.
    #[error(transparent)]
    UnknownId(#[from] UnknownId),
    /// A transaction acknowledges events of one group: these are of several, or there are none.
    #[error("acknowledge at least one event, and only events of one group")]
    NotOneGroup,
    /// Another bus on the same store has the group now.
    #[error(transparent)]
    TakenOver(#[from] TakenOver),
    /// The store rejected the transaction. Where it failed while writing, only a reopened store knows whether
    /// it was committed.
    #[error(transparent)]
    StoreFailed(#[from] StoreFailed),
    /// A limit of the store was reached.
    #[error(transparent)]
    LimitReached(#[from] LimitReached),
    /// The bus is closed.
    #[error("the bus is closed")]
    Closed,
    /// The group's owner is gone, with the bus or with the topic.
    #[error("the group is no longer served")]
    Gone,
}

impl PublishError {
    /// Whether publishing the same event again may succeed.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::LimitReached(_) | Self::StoreFailed(_) | Self::Closed => true,
            Self::InvalidTopic(_)
            | Self::InvalidJson(_)
            | Self::InvalidPayload(_)
            | Self::TooLarge(_)
            | Self::InvalidField(_)
            | Self::SchemaInvalid(_)
            | Self::UnknownTopic(_)
            | Self::IdConflict(_)
            | Self::SeqMismatch(_) => false,
        }
    }
}

impl SubscribeError {
    /// Whether the same subscription may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Group(error) => error.is_retryable(),
            Self::InvalidTopic(_)
            | Self::InvalidPattern(_)
            | Self::InvalidGroup(_)
            | Self::InvalidField(_)
            | Self::UnknownTopic(_) => false,
        }
    }
}

impl GroupError {
    /// Whether the same operation may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::TakenOver(_)
            | Self::OwnedElsewhere(_)
            | Self::ReadFailed { .. }
            | Self::StoreFailed(_)
            | Self::Closed => true,
            Self::InvalidTopic(_)
            | Self::InvalidGroup(_)
            | Self::InvalidField(_)
            | Self::UnknownTopic(_)
            | Self::UnknownGroup(_)
            | Self::UnknownId(_)
            | Self::GroupMismatch(_)
            | Self::NothingToUndo(_)
            | Self::TooMuchSettled(_)
            | Self::Damaged { .. } => false,
        }
    }
}

impl AdminError {
    /// Whether the same operation may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::LimitReached(_)
            | Self::StoreFailed(_)
            | Self::ReadFailed { .. }
            | Self::Closed => true,
            Self::InvalidTopic(_)
            | Self::InvalidField(_)
            | Self::TopicExists(_)
            | Self::UnknownTopic(_) => false,
        }
    }
}

impl SettleError {
    /// Whether settling the same event again may succeed.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::NotWritten { .. } | Self::Gone => true,
            Self::LeaseLost(_) | Self::UnknownId(_) => false,
        }
    }
}

impl AckPublishError {
    /// Whether the same transaction may succeed when it is tried again.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::NotPublished(rejected) => rejected.error.is_retryable(),
            Self::StoreFailed(_) | Self::LimitReached(_) | Self::Closed | Self::Gone => true,
            Self::AlreadySettled(_)
            | Self::LeaseLost(_)
            | Self::UnknownId(_)
            | Self::NotOneGroup
            | Self::TakenOver(_) => false,
        }
    }
}

impl From<CommitError> for PublishError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::UnknownTopic(error) => Self::UnknownTopic(error),
            CommitError::IdConflict(error) => Self::IdConflict(error),
            CommitError::SeqMismatch(error) => Self::SeqMismatch(error),
            CommitError::LimitReached(error) => Self::LimitReached(error),
            CommitError::StoreFailed(error) => Self::StoreFailed(error),
            CommitError::Unavailable { cause } | CommitError::Unknown { cause } => {
                Self::StoreFailed(StoreFailed { cause })
            }
            // A publish expects nothing of keyed records, so this would be the store's own mistake.
            CommitError::VersionMismatch(error) => Self::StoreFailed(StoreFailed {
                cause: error.to_string().into(),
            }),
            CommitError::Closed => Self::Closed,
        }
    }
}

impl From<CommitError> for AdminError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::UnknownTopic(error) => Self::UnknownTopic(error),
            CommitError::LimitReached(error) => Self::LimitReached(error),
            CommitError::StoreFailed(error) => Self::StoreFailed(error),
            CommitError::Unavailable { cause } | CommitError::Unknown { cause } => {
                Self::StoreFailed(StoreFailed { cause })
            }
            CommitError::VersionMismatch(_)
            | CommitError::IdConflict(_)
            | CommitError::SeqMismatch(_) => Self::StoreFailed(StoreFailed {
                cause: error.to_string().into(),
            }),
            CommitError::Closed => Self::Closed,
        }
    }
}

impl From<ReadError> for AdminError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::UnknownTopic(error) => Self::UnknownTopic(error),
            ReadError::Failed { cause } => Self::ReadFailed { cause },
        }
    }
}

impl From<ReadError> for GroupError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::UnknownTopic(error) => Self::UnknownTopic(error),
            ReadError::Failed { cause } => Self::ReadFailed { cause },
        }
    }
}
