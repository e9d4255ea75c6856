//! An outbox: events that a service writes to its own database in the transaction of what they are about, and that a
//! drainer publishes afterwards. A connector keeps the rows; claiming, publishing and settling are the same everywhere.

mod add;
mod drainer;
mod publish;

pub use add::{AddError, check_added, to_json};
pub use drainer::{Drained, Drainer, DrainerOptions};
pub use publish::{Publish, PublishFailure, SentAt};

use crate::projection::TaskLost;
use serde::Serialize;

/// An event that waits to be published, with its place in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxRow<P> {
    /// Where it is in the database.
    pub place: P,
    /// The event's id, under which the bus stores it once.
    pub id: String,
    /// Where it goes.
    pub topic: String,
    /// Its payload as JSON.
    pub payload: String,
    /// For compaction, ordering and partitioning.
    pub key: Option<String>,
    /// Its own time in epoch milliseconds.
    pub ts: Option<u64>,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// Free labels.
    pub tags: Vec<String>,
    /// Ids of the events that caused this one.
    pub caused_by: Vec<String>,
    /// Boot or session id of the publisher.
    pub sid: Option<String>,
    /// How often it has been claimed, this time included.
    pub attempts: u32,
}

/// How many rows there are of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct OutboxCounts {
    /// Waiting to be published, also those that wait for their next attempt.
    pub pending: u64,
    /// In the hands of a drainer.
    pub claimed: u64,
    /// Published.
    pub sent: u64,
    /// Given up, because they can never be published as they are.
    pub failed: u64,
}

/// What became of claimed rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settled {
    /// Published.
    pub sent: u64,
    /// Of them, those that the topic held already.
    pub duplicates: u64,
    /// To be tried again later.
    pub retried: u64,
    /// Given up.
    pub failed: u64,
}

/// The rows that one worker holds: claimed with a lease, settled when they are published. Each of these is atomic, and
/// what was begun is completed also if the caller has stopped waiting.
pub trait ClaimStore: Send + Sync + 'static {
    /// Where a row is.
    type Place: Send + Sync + 'static;
    /// Why something could not be done.
    type Error: ClaimError;

    /// Takes up to `max_rows` rows that are due, and about `max_bytes` of payloads, in the order of the rows. Rows that
    /// cannot be events are given up at once, and counted.
    fn claim(
        &self,
        now_ms: u64,
        max_rows: usize,
        max_bytes: usize,
    ) -> impl Future<Output = Result<Claimed<Self::Place>, Self::Error>> + Send;

    /// Writes down what became of rows; those without a result are tried again.
    fn settle(
        &self,
        now_ms: u64,
        rows: Vec<OutboxRow<Self::Place>>,
        results: Vec<Result<SentAt, PublishFailure>>,
    ) -> impl Future<Output = Result<Settled, Self::Error>> + Send;

    /// Removes up to `limit` rows that were sent at or before a time, the oldest first; how many.
    fn prune(
        &self,
        sent_until_ms: u64,
        limit: usize,
    ) -> impl Future<Output = Result<u64, Self::Error>> + Send;

    /// How many rows there are.
    fn counts(&self) -> impl Future<Output = Result<OutboxCounts, Self::Error>> + Send;
}

/// Rows that were claimed, and what became of those that could not be.
pub type Claimed<P> = (Vec<OutboxRow<P>>, Settled);

/// An error of an outbox.
pub trait ClaimError: From<TaskLost> + Send {
    /// Whether the same may succeed later without anybody doing anything about it.
    fn is_transient(&self) -> bool;
}
