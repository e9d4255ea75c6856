//! What can go wrong when state is read, now or as it was.

use super::facts::{InvalidField, InvalidTopic};
use prombus_store::{ReadError, StoreFailed, UnknownTopic};
use std::sync::Arc;
use thiserror::Error;

/// A topic was deleted and re-created while it was followed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("topic {topic} was re-created: it ends at seq {tail_seq}, expected seq {next_seq}")]
pub struct TopicReplaced {
    /// The topic.
    pub topic: Arc<str>,
    /// What was to be read next.
    pub next_seq: u64,
    /// Where the new one ends.
    pub tail_seq: u64,
}

/// What a key was at a time is not known any more.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the state of {} of topic {topic} at {at_ts} is gone: compaction or retention removed it",
    key.as_ref().map_or("the table".to_owned(), |key| format!("key {key:?}"))
)]
pub struct HistoryGone {
    /// The topic.
    pub topic: Arc<str>,
    /// The key, where it is about one.
    pub key: Option<String>,
    /// The time that was asked for.
    pub at_ts: u64,
}

/// There are too many keys for one answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("more than {max_keys} keys or {max_bytes} bytes; read them in pages")]
pub struct TooManyKeys {
    /// How many there may be.
    pub max_keys: usize,
    /// About how many bytes.
    pub max_bytes: usize,
}

/// What was being loaded was begun anew meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the state of topic {topic} was replaced while it was loaded; load it again")]
pub struct StateMoved {
    /// The topic.
    pub topic: Arc<str>,
}

/// Why state cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(
    missing_docs,
    reason = "each variant is the fact it carries, which says it all"
)]
pub enum StateError {
    #[error(transparent)]
    InvalidTopic(#[from] InvalidTopic),
    #[error(transparent)]
    InvalidField(#[from] InvalidField),
    #[error(transparent)]
    UnknownTopic(#[from] UnknownTopic),
    #[error(transparent)]
    TooManyKeys(#[from] TooManyKeys),
    #[error(transparent)]
    HistoryGone(#[from] HistoryGone),
    #[error(transparent)]
    StateMoved(#[from] StateMoved),
    #[error("reading failed: {cause}")]
    ReadFailed { cause: Arc<str> },
    #[error(transparent)]
    StoreFailed(#[from] StoreFailed),
}

/// Why a topic cannot be followed, or not any further.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(
    missing_docs,
    reason = "each variant is the fact it carries, which says it all"
)]
pub enum FollowError {
    #[error(transparent)]
    InvalidTopic(#[from] InvalidTopic),
    #[error(transparent)]
    InvalidField(#[from] InvalidField),
    #[error(transparent)]
    UnknownTopic(#[from] UnknownTopic),
    #[error(transparent)]
    TopicReplaced(#[from] TopicReplaced),
    #[error("reading failed: {cause}")]
    ReadFailed { cause: Arc<str> },
}

impl StateError {
    /// Whether the same read may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::StateMoved(_) | Self::ReadFailed { .. } | Self::StoreFailed(_) => true,
            Self::InvalidTopic(_)
            | Self::InvalidField(_)
            | Self::UnknownTopic(_)
            | Self::TooManyKeys(_)
            | Self::HistoryGone(_) => false,
        }
    }
}

impl From<ReadError> for StateError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::UnknownTopic(error) => Self::UnknownTopic(error),
            ReadError::Failed { cause } => Self::ReadFailed { cause },
        }
    }
}

impl FollowError {
    /// Whether following the topic again may succeed.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::ReadFailed { .. } => true,
            Self::InvalidTopic(_)
            | Self::InvalidField(_)
            | Self::UnknownTopic(_)
            | Self::TopicReplaced(_) => false,
        }
    }
}

impl From<ReadError> for FollowError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::UnknownTopic(error) => Self::UnknownTopic(error),
            ReadError::Failed { cause } => Self::ReadFailed { cause },
        }
    }
}
