//! What changelogs and transactional projectors have in common: they take events in order, and know how far they are.

use crate::error::ProjectError;
use crate::event::Event;
use crate::positions::Position;
use prombus::ReadLimit;

/// How much goes into one transaction unless something else is asked for.
pub const BATCH: ReadLimit = ReadLimit {
    events: 4_096,
    bytes: 4 << 20,
};

/// Something that takes a topic's events in order into a database, with its position in the same transaction.
pub trait Projection: Send + 'static {
    /// The topic.
    fn topic(&self) -> &str;

    /// The last event that is in the database.
    fn position(&self) -> &Position;

    /// How much goes into one transaction.
    fn batch(&self) -> ReadLimit;

    /// Takes events, all behind the position and in order, in one transaction. Blocks while SQLite works.
    fn apply(&mut self, events: &[Event]) -> Result<Applied, ProjectError>;
}

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
