//! Why schemas could not be registered, read or removed.

use super::facts::{InvalidField, InvalidTopic, UnknownSchema};
use super::operations::{AdminError, GroupError};
use prombus_schema::{Incompatible, InvalidSchema};
use prombus_store::{CommitError, LimitReached, ReadError, StoreFailed, UnknownTopic};
use std::sync::Arc;
use thiserror::Error;

/// Why something could not be done with the schemas of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(
    missing_docs,
    reason = "each variant is the fact it carries, which says it all"
)]
pub enum SchemaError {
    #[error(transparent)]
    InvalidTopic(#[from] InvalidTopic),
    #[error(transparent)]
    InvalidSchema(#[from] InvalidSchema),
    #[error(transparent)]
    InvalidField(#[from] InvalidField),
    #[error(transparent)]
    Incompatible(#[from] Incompatible),
    #[error(transparent)]
    UnknownTopic(#[from] UnknownTopic),
    #[error(transparent)]
    UnknownSchema(#[from] UnknownSchema),
    #[error(transparent)]
    LimitReached(#[from] LimitReached),
    #[error("the schemas of topic {topic} are being changed by others; try again")]
    Contended { topic: Arc<str> },
    #[error(transparent)]
    StoreFailed(#[from] StoreFailed),
    #[error("reading failed: {cause}")]
    ReadFailed { cause: Arc<str> },
    #[error("the bus is closed")]
    Closed,
}

impl SchemaError {
    /// Whether the same operation may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::LimitReached(_)
            | Self::Contended { .. }
            | Self::StoreFailed(_)
            | Self::ReadFailed { .. }
            | Self::Closed => true,
            Self::InvalidTopic(_)
            | Self::InvalidSchema(_)
            | Self::InvalidField(_)
            | Self::Incompatible(_)
            | Self::UnknownTopic(_)
            | Self::UnknownSchema(_) => false,
        }
    }
}

impl From<AdminError> for SchemaError {
    fn from(error: AdminError) -> Self {
        match error {
            AdminError::InvalidTopic(error) => error.into(),
            AdminError::InvalidField(error) => error.into(),
            AdminError::UnknownTopic(error) => error.into(),
            AdminError::LimitReached(error) => error.into(),
            AdminError::StoreFailed(error) => error.into(),
            AdminError::ReadFailed { cause } => Self::ReadFailed { cause },
            AdminError::Closed => Self::Closed,
            AdminError::TopicExists(error) => Self::Contended { topic: error.topic },
        }
    }
}

impl From<CommitError> for SchemaError {
    fn from(error: CommitError) -> Self {
        AdminError::from(error).into()
    }
}

impl From<ReadError> for SchemaError {
    fn from(error: ReadError) -> Self {
        AdminError::from(error).into()
    }
}

impl From<GroupError> for SchemaError {
    fn from(error: GroupError) -> Self {
        match error {
            GroupError::UnknownTopic(error) => error.into(),
            GroupError::InvalidTopic(error) => error.into(),
            GroupError::StoreFailed(error) => error.into(),
            GroupError::Closed => Self::Closed,
            error => Self::ReadFailed {
                cause: error.to_string().into(),
            },
        }
    }
}
