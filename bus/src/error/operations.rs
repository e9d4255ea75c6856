//! One enum per operation, with the word that the wire uses for each error.

use super::facts::*;
use prombus_store::{CommitError, IdConflict, LimitReached, ReadError, StoreFailed, UnknownTopic};
use std::sync::Arc;
use thiserror::Error;

/// Why a bus could not be opened.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OpenError {
    /// An option makes no sense.
    #[error(transparent)]
    BadOption(#[from] BadOption),
    /// A topic default's pattern is not one.
    #[error(transparent)]
    BadPattern(#[from] BadPattern),
    /// The bus runs its groups as tasks and needs a runtime to put them on.
    #[error("a bus has to be opened inside a tokio runtime")]
    NoRuntime,
}

/// Why an event was not published.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(
    missing_docs,
    reason = "each variant is the fact it carries, which says it all"
)]
pub enum PublishError {
    #[error(transparent)]
    BadTopic(#[from] BadTopic),
    #[error(transparent)]
    BadJson(#[from] BadJson),
    #[error(transparent)]
    BadValue(#[from] BadValue),
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    #[error(transparent)]
    BadId(#[from] BadId),
    #[error(transparent)]
    BadTs(#[from] BadTs),
    #[error(transparent)]
    BadKey(#[from] BadKey),
    #[error(transparent)]
    BadSid(#[from] BadSid),
    #[error(transparent)]
    BadHeader(#[from] BadHeader),
    #[error(transparent)]
    BadTag(#[from] BadTag),
    #[error(transparent)]
    BadCause(#[from] BadCause),
    #[error(transparent)]
    UnknownTopic(#[from] UnknownTopic),
    #[error(transparent)]
    IdConflict(#[from] IdConflict),
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
    BadTopic(#[from] BadTopic),
    #[error(transparent)]
    BadPattern(#[from] BadPattern),
    #[error(transparent)]
    BadGroup(#[from] BadGroup),
    #[error(transparent)]
    BadOption(#[from] BadOption),
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
    BadTopic(#[from] BadTopic),
    /// The group's name is not one.
    #[error(transparent)]
    BadGroup(#[from] BadGroup),
    /// A position makes no sense.
    #[error(transparent)]
    BadOption(#[from] BadOption),
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
    /// An option belongs to the group, which has another.
    #[error(transparent)]
    GroupMismatch(#[from] GroupMismatch),
    /// What is stored of the group cannot be understood. It is left as it is.
    #[error("the stored state of group {group} of topic {topic} is damaged: {why}")]
    Damaged {
        /// The topic.
        topic: Arc<str>,
        /// The group.
        group: Arc<str>,
        /// What its reader said.
        why: Arc<str>,
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
    BadTopic(#[from] BadTopic),
    #[error(transparent)]
    BadOption(#[from] BadOption),
    #[error(transparent)]
    AlreadyExists(#[from] AlreadyExists),
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
    /// The topic holds no such event, or nobody holds the one to be extended.
    #[error(transparent)]
    UnknownId(#[from] UnknownId),
    /// The store does not take the group's record, so that the event will be delivered again after a restart.
    #[error("{cause}")]
    NotWritten {
        /// What the store said, and of which group.
        cause: Arc<str>,
    },
    /// The group's owner is gone, with the bus or with the topic.
    #[error("the group is not served any more")]
    Gone,
}

/// Why events were not acknowledged and nothing was published with them.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StepError {
    /// An event may not be published, or was not.
    #[error(transparent)]
    NotPublished(#[from] NotPublished),
    /// An event is settled, or another step that settles it is under way.
    #[error(transparent)]
    AlreadySettled(#[from] AlreadySettled),
    /// Another member holds an event, or the cursor was set since it was delivered.
    #[error(transparent)]
    LeaseLost(#[from] LeaseLost),
    /// The topic holds no such event.
    #[error(transparent)]
    UnknownId(#[from] UnknownId),
    /// One step acknowledges events of one group: these are of several, or there are none.
    #[error("a step acknowledges one event at least, and all of them have to be of one group")]
    NotOneGroup,
    /// Another bus on the same store has the group now.
    #[error(transparent)]
    TakenOver(#[from] TakenOver),
    /// The store did not take the step. Where it failed while writing, only a store that is opened again knows whether
    /// the whole step is in it or nothing.
    #[error(transparent)]
    StoreFailed(#[from] StoreFailed),
    /// A limit of the store was reached.
    #[error(transparent)]
    LimitReached(#[from] LimitReached),
    /// The bus is closed.
    #[error("the bus is closed")]
    Closed,
    /// The group's owner is gone, with the bus or with the topic.
    #[error("the group is not served any more")]
    Gone,
}

impl PublishError {
    /// The word that the wire uses for it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadTopic(_) => "bad_topic",
            Self::BadJson(_) | Self::BadValue(_) => "bad_json",
            Self::TooLarge(_)
            | Self::BadKey(_)
            | Self::BadHeader(BadHeader::TooMany { .. } | BadHeader::TooLong { .. }) => "too_large",
            Self::BadId(_)
            | Self::BadTs(_)
            | Self::BadSid(_)
            | Self::BadHeader(BadHeader::NoName | BadHeader::Twice { .. })
            | Self::BadTag(_)
            | Self::BadCause(_) => "bad_frame",
            Self::UnknownTopic(_) => "unknown_topic",
            Self::IdConflict(_) => "id_conflict",
            Self::LimitReached(_) | Self::StoreFailed(_) => "publish_failed",
            Self::Closed => "shutting_down",
        }
    }
}

impl SubscribeError {
    /// The word that the wire uses for it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadTopic(_) | Self::BadPattern(_) => "bad_topic",
            Self::BadGroup(_) => "bad_group",
            Self::BadOption(_) => "bad_frame",
            Self::UnknownTopic(_) => "unknown_topic",
            Self::Group(error) => error.code(),
        }
    }
}

impl GroupError {
    /// The word that the wire uses for it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadTopic(_) => "bad_topic",
            Self::BadGroup(_) | Self::UnknownGroup(_) => "bad_group",
            Self::BadOption(_) => "bad_frame",
            Self::UnknownTopic(_) => "unknown_topic",
            Self::UnknownId(_) => "unknown_id",
            Self::TakenOver(_) => "lease_lost",
            Self::GroupMismatch(_) => "group_mismatch",
            Self::Damaged { .. } | Self::ReadFailed { .. } | Self::StoreFailed(_) => "ack_failed",
            Self::Closed => "shutting_down",
        }
    }
}

impl AdminError {
    /// The word that the wire uses for it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadTopic(_) => "bad_topic",
            Self::BadOption(_) | Self::AlreadyExists(_) => "bad_frame",
            Self::UnknownTopic(_) => "unknown_topic",
            Self::LimitReached(_) | Self::StoreFailed(_) | Self::ReadFailed { .. } => {
                "publish_failed"
            }
            Self::Closed => "shutting_down",
        }
    }
}

impl SettleError {
    /// The word that the wire uses for it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::LeaseLost(_) => "lease_lost",
            Self::UnknownId(_) => "unknown_id",
            Self::NotWritten { .. } | Self::Gone => "ack_failed",
        }
    }
}

impl StepError {
    /// The word that the wire uses for it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotPublished(refused) => refused.error.code(),
            Self::AlreadySettled(_) | Self::LeaseLost(_) | Self::TakenOver(_) => "lease_lost",
            Self::UnknownId(_) => "unknown_id",
            Self::NotOneGroup => "bad_frame",
            Self::StoreFailed(_) | Self::LimitReached(_) => "publish_failed",
            Self::Closed => "shutting_down",
            Self::Gone => "ack_failed",
        }
    }
}

impl From<CommitError> for PublishError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::UnknownTopic(error) => Self::UnknownTopic(error),
            CommitError::IdConflict(error) => Self::IdConflict(error),
            CommitError::LimitReached(error) => Self::LimitReached(error),
            CommitError::StoreFailed(error) => Self::StoreFailed(error),
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
            CommitError::VersionMismatch(_) | CommitError::IdConflict(_) => {
                Self::StoreFailed(StoreFailed {
                    cause: error.to_string().into(),
                })
            }
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
