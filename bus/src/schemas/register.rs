//! Registering and removing versions. Each change is a compare-and-set on the topic's record, so that of two that are
//! made at the same time the second is checked against the first.

use super::record::{SchemaRecord, schemas_key};
use super::unknown;
use crate::bus::Bus;
use crate::error::{InvalidField, SchemaError};
use crate::state::is_snapshot_topic;
use crate::topic::TopicConfig;
use prombus_interface::names::{check_topic, is_dead_letter_topic};
use prombus_schema::{Compatibility, Schema, Validator, check};
use prombus_store::{Batch, Change, CommitError, Expect, TopicInfo};
use std::sync::Arc;

/// How often a change is made anew because others made one at the same time.
const MAX_TRIES: usize = 16;

/// How a schema is registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RegisterSchema {
    /// What this and later versions have to be beside the earlier ones; left out, the topic's setting stays as it is.
    pub compatibility: Option<Compatibility>,
}

/// A schema that was registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisteredSchema {
    /// Its version.
    pub version: u32,
    /// Whether the latest version was the same already, so that there is no new one.
    pub unchanged: bool,
    /// What later versions have to be.
    pub compatibility: Compatibility,
}

/// The state that a change begins with.
struct Present {
    info: Option<TopicInfo>,
    config: TopicConfig,
    record: SchemaRecord,
    expect: Expect,
}

impl Bus {
    /// Registers a new version of a topic's schema, from JSON text. The topic is made where it does not exist. From then
    /// on its events are held against it. The same schema again is the same version.
    pub async fn register_schema(
        &self,
        topic: &str,
        schema: &str,
        options: RegisterSchema,
    ) -> Result<RegisteredSchema, SchemaError> {
        let schema = Arc::new(self.parse_schema(topic, schema)?);
        let _changing = self.core().topic_change.lock().await;
        for _ in 0..MAX_TRIES {
            let mut present = self.present_schemas(topic).await?;
            let compatibility = options.compatibility.or(present.config.schema);
            let mode = compatibility.unwrap_or_default();
            let text = schema.to_text();
            let latest = present.record.versions.last();
            let same = latest.filter(|latest| latest.schema == text);
            let registered = RegisteredSchema {
                version: same.map_or(present.record.last_version + 1, |same| same.version),
                unchanged: same.is_some(),
                compatibility: mode,
            };
            if same.is_some() && present.config.schema == compatibility {
                return Ok(registered);
            }
            if same.is_none() {
                check_against(mode, present.record.clone(), &schema).await?;
                present.record.add(text, self.core().now_ms())?;
            } else {
                present.record.generation += 1;
            }
            present.config.schema = compatibility;
            if self.put_schemas(topic, present).await? {
                return Ok(registered);
            }
        }
        Err(SchemaError::Contended {
            topic: topic.into(),
        })
    }

    /// Removes a version of a topic's schema, or all of them. Its number is not used again.
    pub async fn remove_schema(
        &self,
        topic: &str,
        version: Option<u32>,
    ) -> Result<(), SchemaError> {
        check_topic(topic)?;
        let _changing = self.core().topic_change.lock().await;
        for _ in 0..MAX_TRIES {
            let mut present = self.present_schemas(topic).await?;
            let versions = &mut present.record.versions;
            let before = versions.len();
            versions.retain(|known| version.is_some_and(|removed| known.version != removed));
            if versions.len() == before {
                return Err(unknown(topic, version).into());
            }
            present.record.generation += 1;
            if self.put_schemas(topic, present).await? {
                return Ok(());
            }
        }
        Err(SchemaError::Contended {
            topic: topic.into(),
        })
    }

    /// Parses a schema that is to be one of a topic.
    pub(super) fn parse_schema(&self, topic: &str, schema: &str) -> Result<Schema, SchemaError> {
        check_topic(topic)?;
        if is_dead_letter_topic(topic) || is_snapshot_topic(topic, &self.store().topics()) {
            let reason = "dead letters and snapshots have a form of their own";
            return Err(InvalidField::new("topic", reason).into());
        }
        let schema = Schema::parse(schema)?;
        Validator::new(&schema)?;
        Ok(schema)
    }

    /// The record of a topic, empty where it is of another incarnation.
    pub(super) async fn schema_record(&self, topic: &str) -> Result<SchemaRecord, SchemaError> {
        Ok(self.present_schemas(topic).await?.record)
    }

    async fn present_schemas(&self, topic: &str) -> Result<Present, SchemaError> {
        let info = self.store().topic(topic);
        let stored = self.store().get(&schemas_key(topic)).await?;
        let expect = stored
            .as_ref()
            .map_or(Expect::Absent, |stored| Expect::Version(stored.version));
        let record = match &stored {
            Some(stored) => SchemaRecord::from_bytes(topic, &stored.value)?,
            None => SchemaRecord::default(),
        };
        let incarnation = info.as_ref().map(|info| info.incarnation);
        let record = if incarnation == Some(record.incarnation) {
            record
        } else {
            // A cache that still has the state of an earlier topic must not take it for that of this one.
            SchemaRecord {
                generation: record.generation,
                ..SchemaRecord::default()
            }
        };
        let config = match &info {
            Some(info) => TopicConfig::of(info),
            None => self.core().topics.default_config(topic),
        };
        Ok(Present {
            info,
            config,
            record,
            expect,
        })
    }

    /// Writes a changed record with the topic that names it; `false` where another writer was first.
    async fn put_schemas(&self, topic: &str, present: Present) -> Result<bool, SchemaError> {
        if self.core().is_closed() {
            return Err(SchemaError::Closed);
        }
        let Present {
            info,
            config,
            mut record,
            expect,
        } = present;
        let Some(info) = info else {
            // Its incarnation, which the record names, is known only when it is there.
            self.create_topic_for_schema(topic, &config).await?;
            return Ok(false);
        };
        record.incarnation = info.incarnation;
        let mut batch = Batch::atomic();
        batch.change(Change::Put {
            key: schemas_key(topic),
            value: record.to_bytes(),
            expect,
        });
        let topics = &self.core().topics;
        let put = topics.put_with(&info.name, &config, Some(record.generation), batch);
        let written = put.await;
        // Whether the topic exists, and what its schemas are, has to be asked anew in any case.
        topics.forget(topic);
        match written {
            Ok(_) => Ok(true),
            Err(CommitError::VersionMismatch(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    async fn create_topic_for_schema(
        &self,
        topic: &str,
        config: &TopicConfig,
    ) -> Result<(), SchemaError> {
        let topic: Arc<str> = topic.into();
        let topics = &self.core().topics;
        let made = topics.put_with(&topic, config, None, Batch::new()).await;
        topics.forget(&topic);
        made?;
        Ok(())
    }
}

/// Compares on a thread of its own, because large schemas take a while.
pub(super) async fn check_against(
    mode: Compatibility,
    record: SchemaRecord,
    schema: &Arc<Schema>,
) -> Result<(), SchemaError> {
    let schema = schema.clone();
    let compared = tokio::task::spawn_blocking(move || {
        let earlier = record.parsed()?;
        let earlier: Vec<_> = earlier
            .iter()
            .map(|(version, schema)| (*version, schema))
            .collect();
        check(mode, &earlier, &schema).map_err(SchemaError::from)
    });
    compared.await.map_err(|error| SchemaError::ReadFailed {
        cause: error.to_string().into(),
    })?
}
