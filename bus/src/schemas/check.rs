//! Trying a schema without registering it.

use super::register::check_against;
use crate::bus::Bus;
use crate::error::{Incompatible, SchemaError};
use crate::topic::TopicConfig;
use prombus_schema::Compatibility;
use std::sync::Arc;

/// What would come of registering a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedSchema {
    /// What it has to be beside the earlier versions.
    pub compatibility: Compatibility,
    /// The version that it would follow; `None` where it would be the first.
    pub latest: Option<u32>,
    /// Why it may not; `None` where it may.
    pub incompatible: Option<Incompatible>,
}

impl Bus {
    /// Whether a schema may follow the versions that a topic has, by its own setting or another one.
    pub async fn check_schema(
        &self,
        topic: &str,
        schema: &str,
        compatibility: Option<Compatibility>,
    ) -> Result<CheckedSchema, SchemaError> {
        let schema = Arc::new(self.parse_schema(topic, schema)?);
        let record = self.schema_record(topic).await?;
        let config = match self.store().topic(topic) {
            Some(info) => TopicConfig::of(&info),
            None => self.core().topics.default_config(topic),
        };
        let compatibility = compatibility.or(config.schema).unwrap_or_default();
        let latest = record.versions.last().map(|latest| latest.version);
        let incompatible = match check_against(compatibility, record, &schema).await {
            Ok(()) => None,
            Err(SchemaError::Incompatible(incompatible)) => Some(incompatible),
            Err(error) => return Err(error),
        };
        Ok(CheckedSchema {
            compatibility,
            latest,
            incompatible,
        })
    }
}
