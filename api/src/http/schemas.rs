//! `/schemas`: the versions of a topic's schema, and what would come of another one.

use super::query::{Query, QueryWriter};
use crate::error::ParseError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The reply of `GET /schemas`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaList {
    /// In the order of their topics.
    pub schemas: Vec<SchemaSummary>,
}

/// The schemas of a topic in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaSummary {
    /// The topic.
    pub topic: String,
    /// What a new version has to be beside the earlier ones.
    pub compatibility: String,
    /// The version that events are held against.
    pub latest: u32,
    /// The numbers of all versions.
    pub versions: Vec<u32>,
}

/// The reply of `GET /schemas/:topic`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicSchemas {
    /// The topic.
    pub topic: String,
    /// What a new version has to be beside the earlier ones.
    pub compatibility: String,
    /// The version that events are held against.
    pub latest: u32,
    /// All versions, in their order.
    pub versions: Vec<SchemaVersion>,
}

/// The reply of `GET /schemas/:topic/:version`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaVersion {
    /// Its number.
    pub version: u32,
    /// When it was registered, in epoch milliseconds.
    pub ts: u64,
    /// The JSON Schema.
    pub schema: Value,
}

/// The query of `POST /schemas/:topic` and of `…/check`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SchemaQuery {
    /// What the schema has to be beside the earlier ones; left out, what the topic says.
    pub compatibility: Option<String>,
    /// Checks the schema and the retained events, and registers nothing.
    pub dry_run: bool,
}

/// The reply of `POST /schemas/:topic`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisteredSchema {
    /// The topic.
    pub topic: String,
    /// The schema's version.
    pub version: u32,
    /// Whether the latest version was the same already.
    pub unchanged: bool,
    /// What later versions have to be.
    pub compatibility: String,
}

/// What would come of registering a schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaCheck {
    /// The topic.
    pub topic: String,
    /// Whether it may be registered.
    pub compatible: bool,
    /// What it has to be beside the earlier versions.
    pub compatibility: String,
    /// The version that it would follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest: Option<u32>,
    /// Why it may not be registered, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The same, place by place.
    #[serde(default)]
    pub findings: Vec<SchemaFinding>,
    /// How retained events fit it; only where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retained: Option<RetainedEvents>,
}

/// A place of a schema that accepts less than before, or may.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaFinding {
    /// JSON Pointer into the schema that accepts less.
    pub path: String,
    /// The rule that it breaks.
    pub rule: String,
    /// What is lost, in words.
    pub detail: String,
    /// Whether something is lost for certain; else it cannot be proven that nothing is.
    pub proven: bool,
}

/// How the retained events of a topic fit a schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailingEvent {
    /// Its id.
    pub id: String,
    /// Its position.
    pub seq: u64,
    /// JSON Pointer to what does not fit.
    pub path: String,
    /// What was expected there.
    pub reason: String,
}

/// A group that a schema would affect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AffectedGroup {
    /// Its name.
    pub group: String,
    /// How many members it has now.
    pub members: u64,
    /// How many events that do not fit are behind its cursor.
    pub failing_ahead: u64,
}

impl SchemaQuery {
    /// Reads the query.
    pub fn parse(query: &Query<'_>) -> Result<Self, ParseError> {
        Ok(Self {
            compatibility: query.get("compatibility").map(str::to_owned),
            dry_run: query.flag("dry_run")?.unwrap_or(false),
        })
    }

    /// Writes the query.
    pub fn to_query(&self) -> String {
        let mut query = QueryWriter::default();
        query.push_if("compatibility", self.compatibility.as_ref());
        query.push_if("dry_run", self.dry_run.then_some(1));
        query.finish()
    }
}
