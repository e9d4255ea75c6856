//! The facts that can go wrong, one small type each, and one enum per operation.

use rusqlite::ErrorCode;
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;

/// The most characters of a caller's text that an error repeats.
const QUOTED_CHARS: usize = 80;

/// The name of a table, a column or a projector is not one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the name {name:?} cannot be used: {why}")]
pub struct BadName {
    /// The name, cut where it is long.
    pub name: String,
    /// What is wrong with it.
    pub why: &'static str,
}

/// A column, a version or a path is not written as it has to be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text:?}: {why}")]
pub struct BadColumn {
    /// What was given, cut where it is long.
    pub text: String,
    /// What is wrong with it.
    pub why: &'static str,
}

/// A table is there that is not what the projector would have made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the table {table} does not fit: {why}. Choose another table, or drop it to build it anew")]
pub struct TableMismatch {
    /// The table.
    pub table: String,
    /// The first difference.
    pub why: String,
}

/// A projector's position belongs to something else than what is asked of it now.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the projector {projector} was set up otherwise before ({was}). Choose another table, or drop this one to build it \
     anew"
)]
pub struct OtherDefinition {
    /// The projector.
    pub projector: String,
    /// How it was set up.
    pub was: String,
}

/// The topic is not the one that was projected: it was deleted, and perhaps made again.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "topic {topic} is not the one that was projected up to seq {seq}: {why}. Drop the table, or use another file, to \
     begin anew"
)]
pub struct TopicReplaced {
    /// The topic.
    pub topic: String,
    /// The position that was reached before.
    pub seq: u64,
    /// What gave it away.
    pub why: String,
}

/// A handler failed as often as it may.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the handler failed {attempts} times at seq {seq} (event {id}): {why}")]
pub struct HandlerFailed {
    /// The event's position; everything before it is committed.
    pub seq: u64,
    /// The event's id.
    pub id: String,
    /// How often it was tried.
    pub attempts: u32,
    /// What the handler said last, or the text of its panic.
    pub why: String,
}

/// A record that a source gave is none.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("not the record of an event: {why}")]
pub struct BadRecord {
    /// What its reader said.
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

/// Why a source has no events.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SourceError {
    /// There is no such topic.
    #[error("there is no topic {topic}")]
    UnknownTopic {
        /// The topic.
        topic: String,
    },
    /// It could not be read.
    #[error("reading the topic failed: {why}")]
    Failed {
        /// What the source said.
        why: String,
    },
    /// The bus is gone.
    #[error("the bus is closed")]
    Closed,
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
    #[error("the thread that writes to the database was lost")]
    ThreadLost,
}

/// Why something could not be done with an outbox.
#[derive(Debug, Clone, Error)]
pub enum OutboxError {
    /// The table is missing, or is not an outbox of this version.
    #[error("the database has no outbox; `Outbox::init` or `prombus outbox init` makes one")]
    NoOutbox,
    /// An option makes no sense.
    #[error("{name}: {why}")]
    BadOption {
        /// The option.
        name: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// SQLite refused.
    #[error(transparent)]
    Sqlite(#[from] SqliteError),
    /// The thread that talks to the database is gone.
    #[error("the thread that writes to the database was lost")]
    ThreadLost,
}

impl BadName {
    pub(crate) fn new(name: &str, why: &'static str) -> Self {
        let name = cut(name);
        Self { name, why }
    }
}

impl BadColumn {
    pub(crate) fn new(text: &str, why: &'static str) -> Self {
        let text = cut(text);
        Self { text, why }
    }
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
        match is_about_table {
            true => Self::NoOutbox,
            false => Self::Sqlite(error.into()),
        }
    }
}

fn cut(text: &str) -> String {
    text.chars().take(QUOTED_CHARS).collect()
}
