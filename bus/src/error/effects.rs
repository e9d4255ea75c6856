//! The errors of what is built on topics and groups: dedupe marks and projectors.

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
