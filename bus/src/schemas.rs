//! The schemas of topics: one keyed record for each topic that has any, with all versions in it. A number in the topic's
//! attributes says which state of that record applies; it changes in the same atomic batch, so that a reader that watches
//! topics learns of it, and a topic without schemas costs a publisher no more than finding no number.

mod check;
mod compiled;
mod record;
mod register;
mod retained;
mod upcaster;

pub use check::CheckedSchema;
pub(crate) use compiled::{Schemas, TopicSchemas};
pub use record::{MAX_SCHEMA_VERSIONS, MAX_TOPIC_SCHEMA_BYTES};
pub(crate) use record::{SchemaRecord, schemas_key};
pub use register::{RegisterSchema, RegisteredSchema};
pub use retained::{FailingEvent, LiveGroup, RetainedCheck};
pub use upcaster::{UPCAST_FROM_HEADER, UpcastFunction};
pub(crate) use upcaster::{Upcaster, load};

use crate::bus::Bus;
use crate::error::{SchemaError, UnknownSchema};
use crate::topic::TopicConfig;
use prombus_interface::names::check_topic;
use prombus_schema::Compatibility;
use record::{KEY_PREFIX, StoredVersion};
use std::sync::Arc;

/// The header that says which version of its topic's schema an event was published with.
pub const SCHEMA_VERSION_HEADER: &str = "x-schema-version";

/// The schemas of a topic, without their texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaInfo {
    /// The topic.
    pub topic: Arc<str>,
    /// What a new version has to be beside the earlier ones.
    pub compatibility: Compatibility,
    /// The version that events are held against.
    pub latest: u32,
    /// All versions, in their order.
    pub versions: Vec<SchemaVersion>,
}

/// One version of a topic's schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaVersion {
    /// Its number, from 1. A number is never used again.
    pub version: u32,
    /// When it was registered, in epoch milliseconds.
    pub ts: u64,
    /// The schema, as JSON text.
    pub schema: Arc<str>,
}

impl Bus {
    /// The schemas of all topics that have any, in the order of their names.
    pub async fn all_schemas(&self) -> Result<Vec<SchemaInfo>, SchemaError> {
        let mut infos = Vec::new();
        for (key, stored) in self.store().list(KEY_PREFIX).await? {
            let Some(topic) = key.strip_prefix(KEY_PREFIX) else {
                continue;
            };
            let record = SchemaRecord::from_bytes(topic, &stored.value)?;
            infos.extend(self.schema_info(topic, record));
        }
        Ok(infos)
    }

    /// The schemas of a topic.
    pub async fn schemas(&self, topic: &str) -> Result<SchemaInfo, SchemaError> {
        check_topic(topic)?;
        let stored = self.store().get(&schemas_key(topic)).await?;
        let record = match stored {
            Some(stored) => SchemaRecord::from_bytes(topic, &stored.value)?,
            None => SchemaRecord::default(),
        };
        let info = self.schema_info(topic, record);
        info.ok_or_else(|| unknown(topic, None).into())
    }

    /// One version of a topic's schema; the latest where none is named.
    pub async fn schema(
        &self,
        topic: &str,
        version: Option<u32>,
    ) -> Result<SchemaVersion, SchemaError> {
        let info = self.schemas(topic).await?;
        let wanted = version.unwrap_or(info.latest);
        let mut versions = info.versions.into_iter();
        let found = versions.find(|known| known.version == wanted);
        found.ok_or_else(|| unknown(topic, version).into())
    }

    /// What a record says of its topic; nothing where the topic it is of is gone.
    fn schema_info(&self, topic: &str, record: SchemaRecord) -> Option<SchemaInfo> {
        let info = self.store().topic(topic)?;
        if record.incarnation != info.incarnation {
            return None;
        }
        let latest = record.versions.last()?.version;
        Some(SchemaInfo {
            topic: info.name.clone(),
            compatibility: TopicConfig::of(&info).schema.unwrap_or_default(),
            latest,
            versions: record
                .versions
                .into_iter()
                .map(StoredVersion::into)
                .collect(),
        })
    }
}

fn unknown(topic: &str, version: Option<u32>) -> UnknownSchema {
    UnknownSchema {
        topic: topic.into(),
        version,
    }
}

impl From<StoredVersion> for SchemaVersion {
    fn from(stored: StoredVersion) -> Self {
        Self {
            version: stored.version,
            ts: stored.ts,
            schema: stored.schema.into(),
        }
    }
}
