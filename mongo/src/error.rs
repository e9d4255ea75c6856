//! The facts that can go wrong, one small type each, and one enum per operation.

use mongodb::error::{
    ErrorKind, TRANSIENT_TRANSACTION_ERROR, UNKNOWN_TRANSACTION_COMMIT_RESULT, WriteFailure,
};
pub use prombus::error::InvalidField;
pub use prombus_connect::error::{
    BadColumn, BadName, BadRecord, HandlerFailed, OtherDefinition, SourceError, TopicReplaced,
};
use prombus_connect::outbox::ClaimError;
use prombus_connect::{ProjectionError, TaskLost};
use thiserror::Error;

/// The server's codes for "not the primary", "shutting down", "interrupted by a change of state", "too late" and
/// "somebody else wrote the same document": each of them passes.
const TRANSIENT_CODES: [i32; 10] = [50, 89, 91, 112, 189, 10107, 11600, 11602, 13435, 13436];
/// A unique index holds the value already.
const DUPLICATE_KEY: i32 = 11000;

/// Why MongoDB did not do something.
#[derive(Debug, Clone, Error)]
pub enum MongoError {
    /// The URL is not one.
    #[error("invalid MongoDB URL: {why}")]
    BadUrl {
        /// What is wrong with it.
        why: String,
    },
    /// The URL names no database.
    #[error("the MongoDB URL names no database: expected mongodb://HOST:PORT/DATABASE")]
    NoDatabase,
    /// The server is a single one without an oplog.
    #[error(
        "{what} need a replica set or a sharded cluster, and this MongoDB server is neither. A single server becomes \
         one with --replSet and rs.initiate()"
    )]
    NotReplicated {
        /// What needs it.
        what: &'static str,
    },
    /// It cannot be reached, has no primary, or two writers met; it may succeed later.
    #[error("MongoDB: {why}")]
    Transient {
        /// What the driver said.
        why: String,
    },
    /// A unique index holds the value already.
    #[error("MongoDB: {why}")]
    Duplicate {
        /// What the server said.
        why: String,
    },
    /// Everything else, in the server's own words.
    #[error("MongoDB: {why}")]
    Failed {
        /// The server's number for it, where it gave one.
        code: Option<i32>,
        /// What the server said.
        why: String,
    },
}

/// A collection is there that is not what the projector would have made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the collection {collection} does not fit: {why}. Choose another collection, or drop it to build it anew"
)]
pub struct CollectionMismatch {
    /// The collection.
    pub collection: String,
    /// The first difference.
    pub why: String,
}

/// Why a projector could not be set up, or stopped.
#[derive(Debug, Clone, Error)]
#[allow(
    missing_docs,
    reason = "each variant is the fact it carries, which says it all"
)]
pub enum ProjectError {
    #[error(transparent)]
    BadName(#[from] BadName),
    #[error(transparent)]
    BadColumn(#[from] BadColumn),
    #[error(transparent)]
    CollectionMismatch(#[from] CollectionMismatch),
    #[error(transparent)]
    OtherDefinition(#[from] OtherDefinition),
    #[error(transparent)]
    TopicReplaced(#[from] TopicReplaced),
    #[error(transparent)]
    HandlerFailed(#[from] HandlerFailed),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Mongo(#[from] MongoError),
    #[error(transparent)]
    TaskLost(#[from] TaskLost),
}

/// Why something could not be done with an outbox.
#[derive(Debug, Clone, Error)]
#[allow(
    missing_docs,
    reason = "each variant is the fact it carries, which says it all"
)]
pub enum OutboxError {
    #[error("the database has no outbox; `Outbox::init` or `prombus outbox init` makes one")]
    NoOutbox,
    #[error(transparent)]
    InvalidField(#[from] InvalidField),
    #[error(transparent)]
    Mongo(#[from] MongoError),
    #[error(transparent)]
    TaskLost(#[from] TaskLost),
}

/// Why a changefeed could not be set up, or stopped.
#[derive(Debug, Clone, Error)]
pub enum FeedError {
    /// The topic cannot be one, or is too long for the topic of its progress.
    #[error("invalid topic name {topic:?}: {why}")]
    BadTopic {
        /// The topic.
        topic: String,
        /// What is wrong with it.
        why: String,
    },
    /// The oplog no longer reaches back to the last change that was published.
    #[error(
        "the oplog of MongoDB no longer holds the changes of {collection} since the last one that was published; begin \
         anew with a snapshot (`restart`)"
    )]
    HistoryLost {
        /// The collection.
        collection: String,
    },
    /// The collection was dropped, renamed, or its database was dropped.
    #[error(
        "the collection {collection} was {what}; everything before is published. Begin anew with a snapshot \
         (`restart`)"
    )]
    Invalidated {
        /// The collection.
        collection: String,
        /// What happened to it.
        what: &'static str,
    },
    /// The server gives no token to resume from.
    #[error("this MongoDB server gives change streams no resume token; version 4.2 or later does")]
    NoToken,
    /// A document cannot be an event.
    #[error("the document {key} of {collection} cannot be published ({code}): {why}")]
    Refused {
        /// The collection.
        collection: String,
        /// The event's key.
        key: String,
        /// The bus's code.
        code: String,
        /// What the bus said.
        why: String,
    },
    /// What the bus holds as this feed's progress is something else.
    #[error("the topic {topic} holds no progress of a changefeed: {why}")]
    BadProgress {
        /// The topic of the progress.
        topic: String,
        /// What is wrong with it.
        why: String,
    },
    /// The bus could not be read or written.
    #[error("the bus failed: {why}")]
    Bus {
        /// What it said.
        why: String,
        /// Whether it may succeed later.
        is_transient: bool,
    },
    /// MongoDB did not do something.
    #[error(transparent)]
    Mongo(#[from] MongoError),
}

impl MongoError {
    /// Whether the same may succeed later without anybody doing anything about it.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Transient { .. })
    }

    /// An error by the server's number for it.
    pub(crate) fn of_code(code: i32, message: &str) -> Self {
        let why = format!("{message} (code {code})");
        match code {
            DUPLICATE_KEY => Self::Duplicate { why },
            code if TRANSIENT_CODES.contains(&code) => Self::Transient { why },
            code => Self::Failed {
                code: Some(code),
                why,
            },
        }
    }

    /// The server's number for it.
    pub(crate) fn code(&self) -> Option<i32> {
        match self {
            Self::Failed { code, .. } => *code,
            _ => None,
        }
    }
}

impl From<mongodb::error::Error> for MongoError {
    fn from(error: mongodb::error::Error) -> Self {
        let is_transient = error.contains_label(TRANSIENT_TRANSACTION_ERROR)
            || error.contains_label(UNKNOWN_TRANSACTION_COMMIT_RESULT);
        let why = error.kind.to_string();
        if is_transient {
            return Self::Transient { why };
        }
        match &*error.kind {
            ErrorKind::Command(command) => Self::of_code(command.code, &command.message),
            ErrorKind::Write(WriteFailure::WriteError(write)) => {
                Self::of_code(write.code, &write.message)
            }
            ErrorKind::Write(WriteFailure::WriteConcernError(_))
            | ErrorKind::Io(_)
            | ErrorKind::ServerSelection { .. }
            | ErrorKind::ConnectionPoolCleared { .. } => Self::Transient { why },
            _ => Self::Failed { code: None, why },
        }
    }
}

impl From<mongodb::error::Error> for ProjectError {
    fn from(error: mongodb::error::Error) -> Self {
        Self::Mongo(error.into())
    }
}

impl From<mongodb::error::Error> for OutboxError {
    fn from(error: mongodb::error::Error) -> Self {
        Self::Mongo(error.into())
    }
}

impl From<mongodb::error::Error> for FeedError {
    fn from(error: mongodb::error::Error) -> Self {
        Self::Mongo(error.into())
    }
}

impl ProjectionError for ProjectError {
    fn is_transient(&self) -> bool {
        matches!(self, Self::Mongo(error) if error.is_transient())
    }
}

impl ClaimError for OutboxError {
    fn is_transient(&self) -> bool {
        matches!(self, Self::Mongo(error) if error.is_transient())
    }
}

impl FeedError {
    /// Whether the same may succeed later without anybody doing anything about it.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Mongo(error) => error.is_transient(),
            Self::Bus { is_transient, .. } => *is_transient,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_told_from_what_stays() {
        assert!(MongoError::of_code(112, "WriteConflict").is_transient());
        assert!(MongoError::of_code(10107, "not primary").is_transient());
        let unauthorized = MongoError::of_code(13, "not authorized");
        assert!(!unauthorized.is_transient());
        assert_eq!(unauthorized.code(), Some(13));
        assert!(matches!(
            MongoError::of_code(11000, "E11000 duplicate key"),
            MongoError::Duplicate { .. }
        ));
    }
}
