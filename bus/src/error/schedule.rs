//! Why something could not be done with schedules.

use super::{CommitError, PublishError, ReadError, StoreFailed, UnknownSchedule};
use std::sync::Arc;
use thiserror::Error;

/// Why schedules could not be listed, or one not removed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ScheduleError {
    /// There is no such schedule.
    #[error(transparent)]
    UnknownSchedule(#[from] UnknownSchedule),
    /// Others change it again and again.
    #[error("schedule {id:?} is being changed concurrently; try again")]
    Busy {
        /// Its id.
        id: Arc<str>,
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

impl ScheduleError {
    /// Whether the same operation may succeed later.
    pub fn is_retryable(&self) -> bool {
        !matches!(self, Self::UnknownSchedule(_))
    }
}

impl From<ReadError> for ScheduleError {
    fn from(error: ReadError) -> Self {
        Self::ReadFailed {
            cause: error.to_string().into(),
        }
    }
}

impl From<CommitError> for ScheduleError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Closed => Self::Closed,
            CommitError::StoreFailed(error) => error.into(),
            other => StoreFailed {
                cause: other.to_string().into(),
            }
            .into(),
        }
    }
}

impl From<ScheduleError> for PublishError {
    fn from(error: ScheduleError) -> Self {
        match error {
            ScheduleError::Closed => Self::Closed,
            ScheduleError::StoreFailed(error) => error.into(),
            other => StoreFailed {
                cause: other.to_string().into(),
            }
            .into(),
        }
    }
}
