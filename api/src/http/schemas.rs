//! `/schemas`: the versions of a topic's schema, and what would come of another one.

use super::query::query;
use prombus_interface::schemas::{Compatibility, EventId, Group, Topic};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The reply of `GET /schemas`: the schemas of all topics that have any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SchemaList {
    /// In the order of their topics.
    pub schemas: Vec<SchemaSummary>,
}

/// The schemas of a topic in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SchemaSummary {
    /// The topic.
    #[schemars(with = "Topic")]
    pub topic: String,
    /// What a new version has to be beside the earlier ones.
    #[schemars(with = "Compatibility")]
    pub compatibility: String,
    /// The version that events are held against.
    pub latest: u32,
    /// The numbers of all versions.
    pub versions: Vec<u32>,
}

/// The reply of `GET /schemas/:topic`: the schemas of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TopicSchemas {
    /// The topic.
    #[schemars(with = "Topic")]
    pub topic: String,
    /// What a new version has to be beside the earlier ones.
    #[schemars(with = "Compatibility")]
    pub compatibility: String,
    /// The version that events are held against.
    pub latest: u32,
    /// All versions, in their order.
    pub versions: Vec<SchemaVersion>,
}

/// The reply of `GET /schemas/:topic/:version`: one version of a topic's schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SchemaVersion {
    /// Its number, from 1; never used again.
    pub version: u32,
    /// When it was registered, in epoch milliseconds.
    pub ts: u64,
    /// The JSON Schema, draft 2020-12.
    pub schema: Value,
}

query! {
    /// The query of `POST /schemas/:topic` and of `…/check`.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct SchemaQuery {
        /// What the schema has to be beside the earlier ones; left out, what the topic says.
        pub compatibility: Option<String>,
        /// Checks the schema and the retained events, and registers nothing.
        pub dry_run: bool,
    }
}

/// The reply of `POST /schemas/:topic`: a schema that was registered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RegisteredSchema {
    /// The topic.
    #[schemars(with = "Topic")]
    pub topic: String,
    /// The schema's version.
    pub version: u32,
    /// Whether the latest version was the same already.
    pub unchanged: bool,
    /// What later versions have to be.
    #[schemars(with = "Compatibility")]
    pub compatibility: String,
}

/// What would come of registering a schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SchemaCheck {
    /// The topic.
    #[schemars(with = "Topic")]
    pub topic: String,
    /// Whether it may be registered.
    pub compatible: bool,
    /// What it has to be beside the earlier versions.
    #[schemars(with = "Compatibility")]
    pub compatibility: String,
    /// The version that it would follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest: Option<u32>,
    /// Why it may not be registered, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why it may not be, place by place.
    #[serde(default)]
    pub findings: Vec<SchemaFinding>,
    /// How retained events fit it; only where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retained: Option<RetainedEvents>,
}

/// A place of a schema that accepts less than before, or may.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SchemaFinding {
    /// JSON Pointer into the schema that accepts less.
    pub path: String,
    /// The rule that it breaks, e.g. `required_added`.
    pub rule: String,
    /// What is lost, in words.
    pub detail: String,
    /// Whether something is lost for certain; else it cannot be proven that nothing is.
    pub proven: bool,
}

/// How the retained events of a topic fit a schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RetainedEvents {
    /// How many there are.
    pub checked: u64,
    /// How many do not fit.
    pub failing: u64,
    /// The first 100 of those.
    pub first_failing: Vec<FailingEvent>,
    /// Groups with members, or with such events ahead of them.
    pub groups: Vec<AffectedGroup>,
}

/// A retained event that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailingEvent {
    /// Its id.
    #[schemars(with = "EventId")]
    pub id: String,
    /// Its position.
    pub seq: u64,
    /// JSON Pointer to what does not fit.
    pub path: String,
    /// What was expected there.
    pub reason: String,
}

/// A group that a schema would affect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AffectedGroup {
    /// Its name.
    #[schemars(with = "Group")]
    pub group: String,
    /// How many members it has now.
    pub members: u64,
    /// How many events that do not fit are behind its cursor.
    pub failing_ahead: u64,
}
