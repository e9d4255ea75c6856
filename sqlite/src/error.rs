//! The facts that can go wrong, one small type each, and one enum per operation.

pub use prombus::error::InvalidField;
pub use prombus_connect::error::{
    BadColumn, BadName, BadRecord, HandlerFailed, OtherDefinition, SourceError, TopicReplaced,
};
use prombus_connect::outbox::ClaimError;
use prombus_connect::{ProjectionError, TaskLost};
use rusqlite::ErrorCode;
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;

/// A table is there that is not what the projector would have made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the table {table} does not fit: {why}. Choose another table, or drop it to build it anew")]
pub struct TableMismatch {
    /// The table.
    pub table: String,
    /// The first difference.
    pub why: String,
}

/// Why SQLite did not do something.
#[derive(Debug, Clone, Error)]
pub enum SqliteError {
    /// Another process or connection holds the lock for longer than this one waits.
    #[error("the database is locked: another program has been writing to it for too long")]
    Locked,
    /// The file is something else.
    #[error("the file is not an SQLite database")]
    NotADatabase,
    /// Everything else, in SQLite's own words.
    #[error("SQLite: {0}")]
    Failed(Arc<rusqlite::Error>),
}

/// Why a database file could not be opened.
#[derive(Debug, Clone, Error)]
pub enum OpenError {
    /// There is no such file, and it was not to be made.
    #[error("there is no file {}", path.display())]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// It could not be opened.
    #[error("cannot open {}: {cause}", path.display())]
    Failed {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: SqliteError,
    },
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
    TableMismatch(#[from] TableMismatch),
    #[error(transparent)]
    OtherDefinition(#[from] OtherDefinition),
    #[error(transparent)]
    TopicReplaced(#[from] TopicReplaced),
    #[error(transparent)]
    HandlerFailed(#[from] HandlerFailed),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Sqlite(#[from] SqliteError),
    #[error(transparent)]
    TaskLost(#[from] TaskLost),
}

/// Why something could not be done with an outbox.
#[derive(Debug, Clone, Error)]
pub enum OutboxError {
    /// The table is missing, or is not an outbox of this version.
    #[error("the database has no outbox; `Outbox::init` or `prombus outbox init` makes one")]
    NoOutbox,
    /// An option makes no sense.
    #[error(transparent)]
    InvalidField(#[from] InvalidField),
    /// SQLite refused.
    #[error(transparent)]
    Sqlite(#[from] SqliteError),
    /// The thread that talks to the database is gone.
    #[error(transparent)]
    TaskLost(#[from] TaskLost),
}

impl From<rusqlite::Error> for SqliteError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked,
            Some(ErrorCode::NotADatabase) => Self::NotADatabase,
            _ => Self::Failed(Arc::new(error)),
        }
    }
}

impl From<rusqlite::Error> for ProjectError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error.into())
    }
}

impl From<rusqlite::Error> for OutboxError {
    fn from(error: rusqlite::Error) -> Self {
        let text = error.to_string();
        let is_about_table =
            text.contains("no such table: prombus_outbox") || text.contains("no such column");
        if is_about_table {
            Self::NoOutbox
        } else {
            Self::Sqlite(error.into())
        }
    }
}

impl ProjectionError for ProjectError {
    fn is_transient(&self) -> bool {
        // Another program's transaction ends some day.
        matches!(self, Self::Sqlite(SqliteError::Locked))
    }
}

impl ClaimError for OutboxError {
    fn is_transient(&self) -> bool {
        matches!(self, Self::Sqlite(SqliteError::Locked))
    }
}
