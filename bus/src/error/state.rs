//! What can go wrong when state is read, now or as it was.

use super::facts::{BadOption, BadTopic};
use prombus_store::{ReadError, UnknownTopic};
use std::sync::Arc;
use thiserror::Error;

/// A topic was removed and made again while somebody followed it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("topic {topic} was made again: it ends at seq {tail_seq}, and seq {next_seq} was to come")]
pub struct TopicReplaced {
    /// The topic.
    pub topic: Arc<str>,
    /// What was to be read next.
    pub next_seq: u64,
    /// Where the new one ends.
    pub tail_seq: u64,
}

/// Why a topic cannot be followed, or not any further.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(
    missing_docs,
    reason = "each variant is the fact it carries, which says it all"
)]
pub enum FollowError {
    #[error(transparent)]
    BadTopic(#[from] BadTopic),
    #[error(transparent)]
    BadOption(#[from] BadOption),
    #[error(transparent)]
    UnknownTopic(#[from] UnknownTopic),
    #[error(transparent)]
    TopicReplaced(#[from] TopicReplaced),
    #[error("reading failed: {cause}")]
    ReadFailed { cause: Arc<str> },
}

impl FollowError {
    /// The word that the wire uses for it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadTopic(_) => "bad_topic",
            Self::BadOption(_) => "bad_frame",
            Self::UnknownTopic(_) | Self::TopicReplaced(_) => "unknown_topic",
            Self::ReadFailed { .. } => "read_failed",
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
