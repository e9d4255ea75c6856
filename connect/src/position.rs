//! How far a projector is in its topic, and whose position it is.

use crate::event::Event;

/// The last event of a topic that is in the database; `seq` 0 where none is yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Position {
    /// Its position in the topic.
    pub seq: u64,
    /// Its id, by which one sees whether the topic is still the same.
    pub id: String,
    /// Its time in epoch milliseconds.
    pub ts: u64,
}

/// Whose position it is.
#[derive(Debug, Clone)]
pub struct PositionOwner {
    /// The projector's name.
    pub projector: String,
    /// The topic that it reads.
    pub topic: String,
    /// What the projector makes of the events, as text that is compared.
    pub definition: String,
}

impl Position {
    /// The position after this event.
    pub fn of(event: &Event) -> Self {
        Self {
            seq: event.seq(),
            id: event.id().into_owned(),
            ts: event.ts(),
        }
    }
}
