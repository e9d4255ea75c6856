//! What changelogs and transactional projectors have in common: they take events in order, and know how far they are.

use crate::error::{HandlerFailed, SourceError, TopicReplaced};
use crate::event::Event;
use crate::position::Position;
use prombus::{Backoff, ReadLimit};
use std::sync::Arc;
use thiserror::Error;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

/// How much goes into one transaction unless something else is asked for.
pub const BATCH: ReadLimit = ReadLimit {
    events: 4_096,
    bytes: 4 << 20,
};

/// Something that takes a topic's events in order into a database, with its position in the same transaction.
pub trait Projection: Send + Sized + 'static {
    /// Why it stops.
    type Error: ProjectionError;

    /// The topic.
    fn topic(&self) -> &str;

    /// The last event that is in the database.
    fn position(&self) -> &Position;

    /// How much goes into one transaction.
    fn batch(&self) -> ReadLimit;

    /// Takes events, all behind the position and in order, in one transaction, on a task or thread of its own: what was
    /// begun is completed also if the caller has stopped waiting.
    fn start(
        this: Arc<Mutex<Self>>,
        events: Vec<Event>,
    ) -> JoinHandle<Result<Applied, Self::Error>>;
}

/// An error of a projection, which may also be that of its source.
pub trait ProjectionError: From<SourceError> + From<TopicReplaced> + From<TaskLost> + Send {
    /// Whether the same may succeed later without anybody doing anything about it.
    fn is_transient(&self) -> bool;
}

/// The task that writes to the database ended in the middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the task that writes to the database was lost")]
pub struct TaskLost;

/// What became of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Applied {
    /// How many were taken.
    pub events: u64,
    /// Of them, how many wrote a row. A transactional projector does not know.
    pub upserts: u64,
    /// How many removed one, or would have if it had been there.
    pub deletes: u64,
    /// How many were older than the row that is there.
    pub outdated: u64,
    /// How many have no key, and so no place in a table.
    pub keyless: u64,
    /// Try the rest again after this many milliseconds: the next event failed.
    pub retry_after_ms: Option<u64>,
}

impl Applied {
    /// Adds the counts of another one.
    pub(crate) fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.upserts += other.upserts;
        self.deletes += other.deletes;
        self.outdated += other.outdated;
        self.keyless += other.keyless;
    }
}

/// How often the handler failed at the event that is next.
#[derive(Debug, Default)]
pub struct Attempts {
    failed: Option<(u64, u32)>,
}

impl Attempts {
    /// The event that failed last.
    pub fn failed_seq(&self) -> Option<u64> {
        self.failed.map(|(seq, _)| seq)
    }

    /// Counts a failure of this event, and says after how many milliseconds to try again.
    pub fn fail(
        &mut self,
        event: &Event,
        why: String,
        max_attempts: u32,
        backoff: &Backoff,
    ) -> Result<u64, HandlerFailed> {
        let seq = event.seq();
        let before = self.failed.filter(|(failed, _)| *failed == seq);
        let attempts = before.map_or(0, |(_, attempts)| attempts) + 1;
        self.failed = Some((seq, attempts));
        if attempts >= max_attempts {
            return Err(HandlerFailed {
                seq,
                id: event.id().into_owned(),
                attempts,
                why,
            });
        }
        Ok(backoff.wait_ms(attempts))
    }
}
