//! Dedupe marks: which effects are done already, so that an event that comes again does not have them again.
//!
//! A mark is (scope, id): the scope is whose effect it is, the id is the event's. Marks are kept for a time to live
//! and then forgotten. `EmbeddedDedupe` of the bus keeps them beside the events; others may keep them where the effects
//! are, in the same transaction, which is what makes an effect happen exactly once.

use prombus_store::{Answer, CommitError, LimitReached, ReadError};
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// How long a mark is kept unless something else is asked for: 7 days.
pub const DEFAULT_DEDUPE_TTL_MS: u64 = 7 * 24 * 60 * 60 * 1_000;

/// A place that remembers what was done.
///
/// Once `mark` has returned `Ok`, `seen` returns `true` until the time to live is over, after a crash too. A place
/// that is full says in its own documentation whether it forgets its oldest marks or refuses new ones; it never
/// answers `true` for what was not marked.
pub trait DedupeStore: Send + Sync + 'static {
    /// Whether `id` is marked in `scope`, and its mark has not run out.
    fn seen(&self, scope: &str, id: &str) -> Answer<bool, DedupeError>;

    /// Marks `id` in `scope` for `ttl_ms` from now. Marking it again renews the time.
    fn mark(&self, scope: &str, id: &str, ttl_ms: u64) -> Answer<(), DedupeError>;
}

/// Where marks are kept, and for how long.
#[derive(Clone)]
pub struct Dedupe {
    /// Where they are kept.
    pub store: Arc<dyn DedupeStore>,
    /// How long each is kept; an event that comes again later than this is handled again.
    pub ttl_ms: u64,
}

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

impl Dedupe {
    /// Marks that are kept for [`DEFAULT_DEDUPE_TTL_MS`].
    pub fn new(store: impl DedupeStore) -> Self {
        Self {
            store: Arc::new(store),
            ttl_ms: DEFAULT_DEDUPE_TTL_MS,
        }
    }
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

impl fmt::Debug for Dedupe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dedupe")
            .field("ttl_ms", &self.ttl_ms)
            .finish_non_exhaustive()
    }
}
