//! Making, changing and removing topics.

use super::Bus;
use crate::dead_letters::marks_key;
use crate::error::{AdminError, InvalidField, TopicExists, UnknownTopic};
use crate::group::Ended;
use crate::group::record::{GroupRecord, record_prefix};
use crate::schemas::{SchemaRecord, schemas_key};
use crate::state::{MARKER_PREFIX, Marker, check_snapshots, marker_key};
use crate::topic::{PublishTraits, TopicConfig};
use prombus_interface::names::{check_topic, is_internal_topic};
use prombus_store::{Batch, Change, Expect, TopicInfo};
use std::sync::Arc;

/// How often a topic is written anew because its schemas were changed at the same time.
const MAX_TRIES: usize = 8;

impl Bus {
    /// Makes a topic.
    pub async fn create_topic(&self, topic: &str, config: &TopicConfig) -> Result<(), AdminError> {
        self.check_topic_change(topic, config)?;
        if self.core.store.topic(topic).is_some() {
            let topic = topic.into();
            return Err(TopicExists { topic }.into());
        }
        self.put_topic(topic, config).await
    }

    /// Gives a topic a new configuration. One that has partitions keeps their number.
    pub async fn configure_topic(
        &self,
        topic: &str,
        config: &TopicConfig,
    ) -> Result<(), AdminError> {
        let present = TopicConfig::of(&self.topic(topic)?).partitions;
        if let Some(count) = present.filter(|_| present != config.partitions) {
            let reason = format!(
                "the topic has {count}; with another number keys go to other partitions and are not in order across the \
                 change, so it has to be forced"
            );
            return Err(InvalidField::new("partitions", reason).into());
        }
        self.repartition_topic(topic, config).await
    }

    /// The same, also with another number of partitions. Events that are stored keep theirs, modulo the new number; those
    /// to come may be in other ones than earlier events of their key. Members of partitioned groups lose what they have
    /// and get the new partitions when their leases have ended.
    pub async fn repartition_topic(
        &self,
        topic: &str,
        config: &TopicConfig,
    ) -> Result<(), AdminError> {
        self.check_topic_change(topic, config)?;
        self.topic(topic)?;
        self.put_topic(topic, config).await
    }

    /// The current state of a topic.
    pub fn topic(&self, topic: &str) -> Result<TopicInfo, AdminError> {
        check_topic(topic)?;
        let info = self.core.store.topic(topic);
        info.ok_or_else(|| {
            let topic = topic.into();
            UnknownTopic { topic }.into()
        })
    }

    /// All topics, in the order of their names.
    pub fn topics(&self) -> Vec<TopicInfo> {
        let mut topics = self.core.store.topics();
        topics.retain(|info| !is_internal_topic(&info.name));
        topics
    }

    /// Forgets all events of a topic. Positions go on where they were.
    pub async fn purge_topic(&self, topic: &str) -> Result<(), AdminError> {
        let info = self.topic(topic)?;
        let mut batch = Batch::atomic();
        batch.change(forget_snapshot(marker_key(topic)));
        batch.change(Change::Trim {
            topic: info.name,
            first_seq: info.tail_seq + 1,
        });
        self.commit(batch).await
    }

    /// Removes a topic, its events and its groups. Their subscriptions end.
    pub async fn delete_topic(&self, topic: &str) -> Result<(), AdminError> {
        let info = self.topic(topic)?;
        self.check_open()?;
        let mut batch = Batch::atomic();
        batch.change(Change::DeleteTopic { topic: info.name });
        for (key, _) in self.core.store.list(&record_prefix(topic)).await? {
            let expect = Expect::Any;
            batch.change(Change::Delete { key, expect });
        }
        batch.change(forget_snapshot(marker_key(topic)));
        for key in [marks_key(topic), schemas_key(topic)] {
            let expect = Expect::Any;
            batch.change(Change::Delete { key, expect });
        }
        // Where it was the snapshot of another topic, that one begins a new one.
        for (key, marker) in self.core.store.list(MARKER_PREFIX).await? {
            let marker = Marker::from_bytes(&marker.value);
            if marker.is_some_and(|marker| &*marker.snapshot_topic == topic) {
                batch.change(forget_snapshot(key));
            }
        }
        if self.core.store.incarnation(topic) != Some(info.incarnation) {
            // Another deletion was first, and what has the name now is another topic.
            return Ok(());
        }
        let deleted = self.commit(batch).await;
        // Only now: before, a publish would have found the topic and remembered it again.
        self.core.topics.forget(topic);
        deleted?;
        self.registry
            .abandon_topic(topic, Ended::TopicDeleted)
            .await;
        self.registry.removed_topic(topic);
        self.remove_stale_groups(topic, info.incarnation).await
    }

    /// Removes the records of groups that were made between the listing and the deletion of their topic.
    async fn remove_stale_groups(&self, topic: &str, incarnation: u64) -> Result<(), AdminError> {
        for (key, stored) in self.core.store.list(&record_prefix(topic)).await? {
            let record = GroupRecord::from_bytes(&stored.value);
            if record.is_ok_and(|record| record.incarnation == Some(incarnation)) {
                let mut batch = Batch::new();
                let expect = Expect::Version(stored.version);
                batch.change(Change::Delete { key, expect });
                // A record that was written since has been replaced.
                drop(self.core.store.commit(batch).await);
            }
        }
        Ok(())
    }

    fn check_topic_change(&self, topic: &str, config: &TopicConfig) -> Result<(), AdminError> {
        check_topic(topic)?;
        config.check()?;
        check_snapshots(topic, config, &self.core.store.topics())?;
        Ok(())
    }

    async fn put_topic(&self, topic: &str, config: &TopicConfig) -> Result<(), AdminError> {
        self.check_open()?;
        let topic: Arc<str> = topic.into();
        let _changing = self.core.topic_change.lock().await;
        let mut put = self.core.topics.put(&topic, config);
        for _ in 0..MAX_TRIES {
            let made = put.await;
            if made.is_err() {
                self.core.topics.forget(&topic);
            }
            made?;
            // A schema that another bus on the store registered at the same moment must not be lost from sight.
            let Some(generation) = self.overlooked_schemas(&topic).await? else {
                return Ok(());
            };
            put = self
                .core
                .topics
                .put_with(&topic, config, Some(generation), Batch::new());
        }
        Ok(())
    }

    /// The state of a topic's schemas, where its attributes name another.
    async fn overlooked_schemas(&self, topic: &str) -> Result<Option<u64>, AdminError> {
        let Some(stored) = self.core.store.get(&schemas_key(topic)).await? else {
            return Ok(None);
        };
        let Some(info) = self.core.store.topic(topic) else {
            return Ok(None);
        };
        // A record that cannot be read is reported to callers that ask for it.
        let record = SchemaRecord::from_bytes(topic, &stored.value).ok();
        let current = record.filter(|record| record.incarnation == info.incarnation);
        let generation = current.map(|record| record.generation);
        Ok(generation.filter(|_| {
            PublishTraits::of_attributes(&info.options.attributes).schemas != generation
        }))
    }

    async fn commit(&self, batch: Batch) -> Result<(), AdminError> {
        self.check_open()?;
        self.core.store.commit(batch).await?;
        Ok(())
    }

    fn check_open(&self) -> Result<(), AdminError> {
        if self.core.is_closed() {
            Err(AdminError::Closed)
        } else {
            Ok(())
        }
    }
}

/// The state of a topic that is emptied or removed is not that of its snapshot any more.
fn forget_snapshot(key: Arc<str>) -> Change {
    let expect = Expect::Any;
    Change::Delete { key, expect }
}
