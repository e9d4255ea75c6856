//! Errors as they travel between nodes. What only the other node could say more about becomes its sentence.

use crate::error::{
    AckPublishError, AlreadySettled, GroupError, GroupMismatch, IdConflict, InvalidField,
    LeaseLost, NotPublished, NothingToUndo, PositionMismatch, PositionOf, PublishError,
    SeqMismatch, SettleError, StoreFailed, TooMuchSettled, UnknownGroup, UnknownId, UnknownTopic,
};
use crate::group::registry::GroupName;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Names of options in errors, which are fixed.
const FIELDS: &[&str] = &[
    "ack_timeout_ms",
    "max_attempts",
    "ordering",
    "filter",
    "partitioned",
    "seq",
    "ts",
    "after_id",
    "id",
];

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WireGroupError {
    UnknownTopic,
    UnknownGroup,
    UnknownId {
        id: String,
    },
    InvalidField {
        field: String,
        reason: String,
    },
    Mismatch {
        field: String,
    },
    NothingToUndo,
    TooMuchSettled {
        settled: u64,
        limit: u64,
    },
    /// It may succeed later.
    Other {
        cause: String,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WireSettleError {
    LeaseLost { seq: u64 },
    UnknownId { id: String },
    NotWritten { cause: String },
    Gone,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WireAckPublishError {
    AlreadySettled {
        seq: u64,
    },
    LeaseLost {
        seq: u64,
    },
    UnknownId {
        id: String,
    },
    IdConflict {
        at: usize,
        topic: Arc<str>,
        id: String,
        seq: u64,
    },
    UnknownTopic {
        at: usize,
        topic: Arc<str>,
    },
    SeqMismatch {
        at: usize,
        topic: Arc<str>,
        is_of_key: bool,
        expected: u64,
        actual: u64,
    },
    /// An event was refused for another reason.
    NotPublished {
        at: usize,
        cause: String,
    },
    StoreFailed {
        cause: String,
    },
    Gone,
}

fn field(name: &str) -> &'static str {
    FIELDS
        .iter()
        .find(|known| **known == name)
        .copied()
        .unwrap_or("option")
}

impl WireGroupError {
    pub(crate) fn of(error: &GroupError) -> Self {
        match error {
            GroupError::UnknownTopic(_) => Self::UnknownTopic,
            GroupError::UnknownGroup(_) => Self::UnknownGroup,
            GroupError::UnknownId(unknown) => Self::UnknownId {
                id: unknown.id.clone(),
            },
            GroupError::InvalidField(invalid) => Self::InvalidField {
                field: invalid.field.to_owned(),
                reason: invalid.reason.clone(),
            },
            GroupError::GroupMismatch(mismatch) => Self::Mismatch {
                field: mismatch.field.to_owned(),
            },
            GroupError::NothingToUndo(_) => Self::NothingToUndo,
            GroupError::TooMuchSettled(error) => Self::TooMuchSettled {
                settled: error.settled,
                limit: error.limit,
            },
            error => Self::Other {
                cause: error.to_string(),
            },
        }
    }

    pub(crate) fn into_error(self, name: &GroupName) -> GroupError {
        let (topic, group) = (name.topic.clone(), name.group.clone());
        match self {
            Self::UnknownTopic => UnknownTopic { topic }.into(),
            Self::UnknownGroup => UnknownGroup { topic, group }.into(),
            Self::UnknownId { id } => UnknownId { topic, id }.into(),
            Self::InvalidField {
                field: name,
                reason,
            } => InvalidField::new(field(&name), reason).into(),
            Self::Mismatch { field: name } => {
                let field = field(&name);
                GroupMismatch {
                    topic,
                    group,
                    field,
                }
                .into()
            }
            Self::NothingToUndo => NothingToUndo { topic, group }.into(),
            Self::TooMuchSettled { settled, limit } => TooMuchSettled {
                topic,
                group,
                settled,
                limit,
            }
            .into(),
            Self::Other { cause } => StoreFailed {
                cause: cause.into(),
            }
            .into(),
        }
    }
}

impl WireSettleError {
    pub(crate) fn of(error: &SettleError) -> Self {
        match error {
            SettleError::LeaseLost(lost) => Self::LeaseLost { seq: lost.seq },
            SettleError::UnknownId(unknown) => Self::UnknownId {
                id: unknown.id.clone(),
            },
            SettleError::NotWritten { cause } => Self::NotWritten {
                cause: cause.to_string(),
            },
            SettleError::Gone => Self::Gone,
        }
    }

    pub(crate) fn into_error(self, topic: &Arc<str>) -> SettleError {
        match self {
            Self::LeaseLost { seq } => LeaseLost { seq }.into(),
            Self::UnknownId { id } => UnknownId {
                topic: topic.clone(),
                id,
            }
            .into(),
            Self::NotWritten { cause } => SettleError::NotWritten {
                cause: cause.into(),
            },
            Self::Gone => SettleError::Gone,
        }
    }
}

impl WireAckPublishError {
    pub(crate) fn of(error: &AckPublishError) -> Self {
        match error {
            AckPublishError::AlreadySettled(one) => Self::AlreadySettled { seq: one.seq },
            AckPublishError::LeaseLost(one) => Self::LeaseLost { seq: one.seq },
            AckPublishError::UnknownId(one) => Self::UnknownId { id: one.id.clone() },
            AckPublishError::NotPublished(NotPublished { at, error }) => match error {
                PublishError::IdConflict(conflict) => Self::IdConflict {
                    at: *at,
                    topic: conflict.topic.clone(),
                    id: conflict.id.clone(),
                    seq: conflict.seq,
                },
                PublishError::UnknownTopic(unknown) => Self::UnknownTopic {
                    at: *at,
                    topic: unknown.topic.clone(),
                },
                PublishError::SeqMismatch(SeqMismatch {
                    topic, mismatch, ..
                }) => Self::SeqMismatch {
                    at: *at,
                    topic: topic.clone(),
                    is_of_key: mismatch.of == PositionOf::Key,
                    expected: mismatch.expected,
                    actual: mismatch.actual,
                },
                error => Self::NotPublished {
                    at: *at,
                    cause: error.to_string(),
                },
            },
            AckPublishError::StoreFailed(error) => Self::StoreFailed {
                cause: error.to_string(),
            },
            AckPublishError::LimitReached(error) => Self::StoreFailed {
                cause: error.to_string(),
            },
            AckPublishError::NotOneGroup
            | AckPublishError::TakenOver(_)
            | AckPublishError::Closed
            | AckPublishError::Gone => Self::Gone,
        }
    }

    pub(crate) fn into_error(self, topic: &Arc<str>) -> AckPublishError {
        let refused = |at, error: PublishError| NotPublished { at, error }.into();
        match self {
            Self::AlreadySettled { seq } => AlreadySettled { seq }.into(),
            Self::LeaseLost { seq } => LeaseLost { seq }.into(),
            Self::UnknownId { id } => UnknownId {
                topic: topic.clone(),
                id,
            }
            .into(),
            Self::IdConflict { at, topic, id, seq } => {
                refused(at, IdConflict { topic, id, seq }.into())
            }
            Self::UnknownTopic { at, topic } => refused(at, UnknownTopic { topic }.into()),
            Self::SeqMismatch {
                at,
                topic,
                is_of_key,
                expected,
                actual,
            } => {
                let of = if is_of_key {
                    PositionOf::Key
                } else {
                    PositionOf::Topic
                };
                let mismatch = PositionMismatch {
                    of,
                    expected,
                    actual,
                };
                let error = SeqMismatch {
                    topic,
                    mismatch,
                    event: at,
                };
                refused(at, error.into())
            }
            Self::NotPublished { at, cause } => {
                let cause = cause.into();
                refused(at, StoreFailed { cause }.into())
            }
            Self::StoreFailed { cause } => StoreFailed {
                cause: cause.into(),
            }
            .into(),
            Self::Gone => AckPublishError::Gone,
        }
    }
}
