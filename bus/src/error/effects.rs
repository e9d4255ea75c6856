//! The errors of what is built on topics and groups: dedupe marks and projectors.

use super::facts::{InvalidField, InvalidTopic};
use prombus_store::{CommitError, LimitReached, ReadError};
use std::sync::Arc;
use thiserror::Error;

/// Why a mark could not be looked up or made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DedupeError {
    /// A mark does not fit, or there are too many.
    #[error(transparent)]
    LimitReached(#[from] LimitReached),
    /// The place where marks are kept could not be read or written.
    #[error("the dedupe marks cannot be used: {cause}")]
    Failed {
        /// What it said.
        cause: Arc<str>,
    },
}

/// Why a projector was not started.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProjectorError {
    /// A topic's name is not one.
    #[error(transparent)]
    InvalidTopic(#[from] InvalidTopic),
    /// What the projector says of itself makes no sense.
    #[error(transparent)]
    InvalidField(#[from] InvalidField),
    /// A projector is a task, and needs a runtime to be put on.
    #[error("a projector must be started inside a tokio runtime")]
    NoRuntime,
    /// The bus is closed.
    #[error("the bus is closed")]
    Closed,
}

impl DedupeError {
    /// The place where marks are kept failed.
    pub fn failed(cause: impl ToString) -> Self {
        Self::Failed {
            cause: cause.to_string().into(),
        }
    }
}

impl From<ReadError> for DedupeError {
    fn from(error: ReadError) -> Self {
        Self::failed(error)
    }
}

impl From<CommitError> for DedupeError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::LimitReached(limit) => limit.into(),
            other => Self::failed(other),
        }
    }
}
