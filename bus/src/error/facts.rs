//! The facts, one small struct each.

use super::operations::PublishError;
use std::sync::Arc;
use thiserror::Error;

/// How much of a bad name an error repeats.
const QUOTED_CHARS: usize = 64;

/// A topic's name is not one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{name:?} is no topic name: {why}")]
pub struct BadTopic {
    /// The name, cut where it is long.
    pub name: String,
    /// What is wrong with it.
    pub why: &'static str,
}

/// A group's name is not one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{name:?} is no group name: {why}")]
pub struct BadGroup {
    /// The name, cut where it is long.
    pub name: String,
    /// What is wrong with it.
    pub why: &'static str,
}

/// A pattern is not one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{pattern:?} is no pattern: {why}")]
pub struct BadPattern {
    /// The pattern, cut where it is long.
    pub pattern: String,
    /// What is wrong with it.
    pub why: &'static str,
}

/// A publisher's own id is not one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{id:?} is no event id: it has to be 1 to 64 printable ASCII characters")]
pub struct BadId {
    /// The id, cut where it is long.
    pub id: String,
}

/// A key is too long.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the key has {bytes} bytes, {limit} are allowed")]
pub struct BadKey {
    /// How long it is.
    pub bytes: usize,
    /// How long it may be.
    pub limit: usize,
}

/// A session id is too long or empty.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the sid has {bytes} bytes, 1 to {limit} are allowed")]
pub struct BadSid {
    /// How long it is.
    pub bytes: usize,
    /// How long it may be.
    pub limit: usize,
}

/// A publisher's own time is not one that JSON readers keep exactly.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("ts {ts} is beyond 9007199254740991, the largest integer that every JSON reader keeps")]
pub struct BadTs {
    /// The time given.
    pub ts: u64,
}

/// The headers are not as they may be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BadHeader {
    /// A name is empty.
    #[error("a header has no name")]
    NoName,
    /// A name stands twice.
    #[error("the header {name:?} stands twice")]
    Twice {
        /// The name, cut where it is long.
        name: String,
    },
    /// There are too many.
    #[error("{count} headers, {limit} are allowed")]
    TooMany {
        /// How many there are.
        count: usize,
        /// How many there may be.
        limit: usize,
    },
    /// Together they are too long.
    #[error("the headers have {bytes} bytes together, {limit} are allowed")]
    TooLong {
        /// Bytes of all names and values.
        bytes: usize,
        /// How many there may be.
        limit: usize,
    },
}

/// The tags are not as they may be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("up to {max_items} tags of 1 to {max_bytes} bytes are allowed")]
pub struct BadTag {
    /// How many there may be.
    pub max_items: usize,
    /// How long each may be.
    pub max_bytes: usize,
}

/// The ids in `caused_by` are not as they may be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("up to {max_items} ids in caused_by of 1 to {max_bytes} bytes are allowed")]
pub struct BadCause {
    /// How many there may be.
    pub max_items: usize,
    /// How long each may be.
    pub max_bytes: usize,
}

/// A payload is too large.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the payload has {bytes} bytes, {limit} are allowed")]
pub struct TooLarge {
    /// How large it is.
    pub bytes: usize,
    /// How large it may be.
    pub limit: usize,
}

/// A payload is not JSON.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("not JSON at byte {at}: {why}")]
pub struct BadJson {
    /// Where the scanner stopped.
    pub at: usize,
    /// What it expected.
    pub why: &'static str,
}

/// A value cannot be written as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the value cannot be written as JSON: {why}")]
pub struct BadValue {
    /// What its serializer said.
    pub why: String,
}

/// An option has a value that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("option {name}: {why}")]
pub struct BadOption {
    /// The option.
    pub name: &'static str,
    /// What is wrong with its value.
    pub why: String,
}

/// The topic does not hold an event with this id, or the group does not hold it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("topic {topic} holds no event {id:?}")]
pub struct UnknownId {
    /// The topic.
    pub topic: Arc<str>,
    /// The id, cut where it is long.
    pub id: String,
}

/// There is no such group.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("topic {topic} has no group {group}")]
pub struct UnknownGroup {
    /// The topic.
    pub topic: Arc<str>,
    /// The group.
    pub group: Arc<str>,
}

/// What was to be made is there already.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("topic {topic} exists already")]
pub struct AlreadyExists {
    /// The topic.
    pub topic: Arc<str>,
}

/// Another member holds the event now.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the lease on the event at seq {seq} was lost: another member holds it")]
pub struct LeaseLost {
    /// The event's position.
    pub seq: u64,
}

/// The event is settled, so what was to be published together with that is not published once more.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the event at seq {seq} is settled already, or about to be: nothing was published with it")]
pub struct AlreadySettled {
    /// The event's position.
    pub seq: u64,
}

/// One of the events that were to be published together is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("publish {at}: {error}")]
pub struct NotPublished {
    /// Its place among them, from 0.
    pub at: usize,
    /// What is wrong with it.
    pub error: PublishError,
}

/// A member asks for something that belongs to the group, and the group has it otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{option} belongs to the group, and group {group} of topic {topic} has another")]
pub struct GroupMismatch {
    /// The topic.
    pub topic: Arc<str>,
    /// The group.
    pub group: Arc<str>,
    /// The option as the wire names it.
    pub option: &'static str,
}

/// Another bus on the same store has taken the group over.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("group {group} of topic {topic} was taken over by another bus on the same store")]
pub struct TakenOver {
    /// The topic.
    pub topic: Arc<str>,
    /// The group.
    pub group: Arc<str>,
}

impl BadTopic {
    pub(crate) fn new(name: &str, why: &'static str) -> Self {
        let name = quoted(name);
        Self { name, why }
    }
}

impl BadGroup {
    pub(crate) fn new(name: &str, why: &'static str) -> Self {
        let name = quoted(name);
        Self { name, why }
    }
}

impl BadPattern {
    pub(crate) fn new(pattern: &str, why: &'static str) -> Self {
        let pattern = quoted(pattern);
        Self { pattern, why }
    }
}

impl BadId {
    pub(crate) fn new(id: &str) -> Self {
        Self { id: quoted(id) }
    }
}

impl BadOption {
    pub(crate) fn new(name: &'static str, why: impl Into<String>) -> Self {
        let why = why.into();
        Self { name, why }
    }
}

impl UnknownId {
    pub(crate) fn new(topic: &Arc<str>, id: &str) -> Self {
        Self {
            topic: topic.clone(),
            id: quoted(id),
        }
    }
}

/// The beginning of a text that a caller sent, for an error to repeat.
pub(crate) fn quoted(text: &str) -> String {
    text.chars().take(QUOTED_CHARS).collect()
}
