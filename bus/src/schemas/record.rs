//! What is stored of a topic's schemas: one keyed record, JSON, with all versions.

use crate::error::{LimitReached, SchemaError};
use prombus_schema::{InvalidSchema, Schema};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The most versions that a topic keeps; older ones have to be removed for more.
pub const MAX_SCHEMA_VERSIONS: usize = 100;
/// The most bytes that the texts of a topic's versions have together.
pub const MAX_TOPIC_SCHEMA_BYTES: usize = 1 << 20;

pub(super) const KEY_PREFIX: &str = "schema/";

/// The schemas of one incarnation of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct SchemaRecord {
    /// Changes with the record. The topic's attributes name it.
    pub(crate) generation: u64,
    /// The incarnation of the topic that the record is of; void in any other.
    pub(crate) incarnation: u64,
    /// The highest number that a version ever had.
    pub(crate) last_version: u32,
    /// In the order of their numbers.
    pub(crate) versions: Vec<StoredVersion>,
}

/// One version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredVersion {
    pub(crate) version: u32,
    pub(crate) ts: u64,
    /// As JSON text, without insignificant whitespace.
    pub(crate) schema: String,
}

/// The key of the record of a topic.
pub(crate) fn schemas_key(topic: &str) -> Arc<str> {
    format!("{KEY_PREFIX}{topic}").into()
}

impl SchemaRecord {
    pub(crate) fn from_bytes(topic: &str, bytes: &[u8]) -> Result<Self, SchemaError> {
        serde_json::from_slice(bytes).map_err(|error| SchemaError::ReadFailed {
            cause: format!("the stored schemas of topic {topic} are damaged: {error}").into(),
        })
    }

    pub(crate) fn to_bytes(&self) -> Arc<[u8]> {
        // Numbers and strings are always written.
        serde_json::to_vec(self).unwrap_or_default().into()
    }

    /// Adds a version, within the limits.
    pub(super) fn add(&mut self, schema: String, ts: u64) -> Result<u32, LimitReached> {
        if self.versions.len() >= MAX_SCHEMA_VERSIONS {
            return Err(limit("max_schema_versions", MAX_SCHEMA_VERSIONS));
        }
        let texts = self.versions.iter().map(|version| version.schema.len());
        if texts.sum::<usize>() + schema.len() > MAX_TOPIC_SCHEMA_BYTES {
            return Err(limit("max_topic_schema_bytes", MAX_TOPIC_SCHEMA_BYTES));
        }
        let version = self.last_version + 1;
        self.last_version = version;
        self.generation += 1;
        self.versions.push(StoredVersion {
            version,
            ts,
            schema,
        });
        Ok(version)
    }

    /// The schemas themselves, parsed.
    pub(super) fn parsed(&self) -> Result<Vec<(u32, Schema)>, InvalidSchema> {
        let versions = self.versions.iter();
        versions
            .map(|version| Ok((version.version, Schema::parse(&version.schema)?)))
            .collect()
    }
}

fn limit(name: &'static str, limit: usize) -> LimitReached {
    let limit = limit as u64;
    LimitReached { name, limit }
}
