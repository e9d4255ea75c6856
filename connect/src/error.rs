//! The facts that can go wrong in any connector, one small type each.

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

/// A projector's position belongs to something else than what is asked of it now.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the projector {projector} was set up otherwise before ({was}). Choose another table or \
     collection, or drop this one to build it anew"
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
    "topic {topic} is not the one that was projected up to seq {seq}: {why}. Drop the table or \
     collection, or use another database, to begin anew"
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

impl BadName {
    /// Says what is wrong with it.
    pub fn new(name: &str, why: &'static str) -> Self {
        let name = cut(name);
        Self { name, why }
    }
}

impl BadColumn {
    /// Says what is wrong with it.
    pub fn new(text: &str, why: &'static str) -> Self {
        let text = cut(text);
        Self { text, why }
    }
}

fn cut(text: &str) -> String {
    text.chars().take(QUOTED_CHARS).collect()
}
