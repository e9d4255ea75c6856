//! The errors of what is built on topics and groups.

use super::facts::{InvalidField, InvalidTopic};
use thiserror::Error;

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
