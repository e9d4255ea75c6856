//! The facts: one small struct for each thing that can be wrong.

use super::operations::PublishError;
use prombus_interface::quoted;
pub use prombus_interface::{InvalidField, InvalidGroup, InvalidPattern, InvalidTopic};
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// A part of an event that exceeds its limit.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field} too large: {size} {unit}, the limit is {limit}")]
pub struct TooLarge {
    /// The part.
    pub field: &'static str,
    /// Its size.
    pub size: usize,
    /// The largest size allowed.
    pub limit: usize,
    /// What `size` and `limit` count.
    pub unit: &'static str,
}

/// A payload that is not JSON.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid JSON: {reason} at byte {at}")]
pub struct InvalidJson {
    /// Where the scanner stopped.
    pub at: usize,
    /// What it expected there.
    pub reason: &'static str,
}

/// A value that cannot be serialized as JSON, or a payload that cannot be deserialized as the value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid payload: {reason}")]
pub struct InvalidPayload {
    /// The error of the serializer or deserializer.
    pub reason: String,
}

/// A payload that does not fit the schema of its topic.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}: {reason}; topic {topic}, schema version {version}", if path.is_empty() { "/" } else { path })]
pub struct SchemaInvalid {
    /// The topic.
    pub topic: Arc<str>,
    /// The version it was held against.
    pub version: u32,
    /// JSON Pointer to the part of the payload that does not fit; empty for the whole.
    pub path: String,
    /// What was expected there.
    pub reason: String,
}

/// The topic has no such version of its schema, or none at all.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct UnknownSchema {
    /// The topic.
    pub topic: Arc<str>,
    /// The version; `None` where any would do.
    pub version: Option<u32>,
}

/// The topic has no event with this id, or the group has no lease on it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("topic {topic} has no event {id:?}")]
pub struct UnknownId {
    /// The topic.
    pub topic: Arc<str>,
    /// The id, truncated if long.
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

/// The topic to be created exists.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("topic {topic} already exists")]
pub struct TopicExists {
    /// The topic.
    pub topic: Arc<str>,
}

/// Another member holds the lease on the event now.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("lease lost on the event at seq {seq}: another member holds it")]
pub struct LeaseLost {
    /// The event's position.
    pub seq: u64,
}

/// The event is settled, so its results are not published a second time.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the event at seq {seq} is already settled or being settled; nothing was published")]
pub struct AlreadySettled {
    /// The event's position.
    pub seq: u64,
}

/// One event of an atomic batch is invalid or was rejected by the store.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("publish {at}: {error}")]
pub struct NotPublished {
    /// Its index in the batch, from 0.
    pub at: usize,
    /// Why it was not published.
    pub error: PublishError,
}

/// A member asked for a value of an option that belongs to the group, and the group has another one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{field} differs from that of group {group} of topic {topic}; leave it out, or change the group"
)]
pub struct GroupMismatch {
    /// The topic.
    pub topic: Arc<str>,
    /// The group.
    pub group: Arc<str>,
    /// The option, as this crate names it.
    pub field: &'static str,
}

/// The cursor of a group was not set, or that was undone already.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("group {group} of topic {topic} has no seek to undo; a seek can be undone once")]
pub struct NothingToUndo {
    /// The topic.
    pub topic: Arc<str>,
    /// The group.
    pub group: Arc<str>,
}

/// A group has settled too much since its cursor was set.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "group {group} of topic {topic} has settled {settled} events since the seek, more than the {limit} \
     (max_undo_settled) up to which it can be undone; set the cursor instead"
)]
pub struct TooMuchSettled {
    /// The topic.
    pub topic: Arc<str>,
    /// The group.
    pub group: Arc<str>,
    /// How many positions were settled.
    pub settled: u64,
    /// How many may be.
    pub limit: u64,
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

/// Another node serves the group.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "group {group} of topic {topic} is served by the node {node}; subscribe there, or try again when it is gone"
)]
pub struct OwnedElsewhere {
    /// The topic.
    pub topic: Arc<str>,
    /// The group.
    pub group: Arc<str>,
    /// The URL of the node, or its number where it has announced none.
    pub node: String,
}

impl fmt::Display for UnknownSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version {
            Some(version) => write!(f, "topic {} has no schema version {version}", self.topic),
            None => write!(f, "topic {} has no schema", self.topic),
        }
    }
}

impl TooLarge {
    pub(crate) fn bytes(field: &'static str, size: usize, limit: usize) -> Self {
        let unit = "bytes";
        Self {
            field,
            size,
            limit,
            unit,
        }
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

/// There is no schedule with this id: there never was, or it was published or removed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no schedule {id:?}; it was published or removed, or never made")]
pub struct UnknownSchedule {
    /// The id that was asked for.
    pub id: Arc<str>,
}
