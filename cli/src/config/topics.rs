//! The `[[topics]]` of the configuration.

use crate::size;
use anyhow::{Context, bail};
use prombus::{Compatibility, Durability, Pattern, TopicConfig, check_topic};
use prombus_api::http::Age;
use prombus_gateway::limits::Rate;
use serde::Deserialize;

/// A topic, or all whose names fit a pattern.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TopicEntry {
    /// Its name, or a pattern.
    pub(crate) name: String,
    #[serde(default)]
    durability: prombus_api::http::Durability,
    retention: Option<Age>,
    #[serde(default, deserialize_with = "size::deserialize_option")]
    max_bytes: Option<u64>,
    max_events: Option<u64>,
    #[serde(default)]
    compaction: bool,
    snapshot_topic: Option<String>,
    snapshot_interval: Option<Age>,
    /// How many partitions its keys are spread over. Left out, it stays as it is.
    partitions: Option<u32>,
    /// What a new version of its schema has to be beside the earlier ones.
    schema: Option<String>,
    /// Headers that `/find` looks up.
    #[serde(default)]
    pub(crate) index_headers: Vec<String>,
    /// How fast it may be published to.
    pub(crate) publish: Option<Rate>,
}

impl TopicEntry {
    /// Whether it names one topic, which is then made at the start.
    pub(crate) fn is_one(&self) -> bool {
        !Pattern::is_pattern(&self.name)
    }

    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let about = || format!("topic {:?}", self.name);
        if self.is_one() {
            check_topic(&self.name).with_context(about)?;
        } else {
            Pattern::for_topics(&self.name).with_context(about)?;
        }
        if let Some(mode) = &self.schema {
            mode.parse::<Compatibility>().with_context(about)?;
        }
        if let Some(rate) = self.publish {
            rate.check("publish").with_context(about)?;
        }
        if self.snapshot_topic.is_some() && !self.is_one() {
            bail!(
                "topic {:?}: a pattern cannot have a snapshot_topic, for each topic needs its own",
                self.name
            );
        }
        self.config().check().with_context(about)
    }

    /// How the topic is to be kept.
    pub(crate) fn config(&self) -> TopicConfig {
        TopicConfig {
            durability: match self.durability {
                prombus_api::http::Durability::Fsync => Durability::Fsync,
                prombus_api::http::Durability::Os => Durability::Os,
            },
            retention_ms: self.retention.map(|age| age.ms),
            max_bytes: self.max_bytes,
            max_events: self.max_events,
            compaction: self.compaction,
            snapshot_topic: self.snapshot_topic.clone(),
            snapshot_interval_ms: self.snapshot_interval.map(|age| age.ms),
            partitions: self.partitions,
            schema: self.schema.as_ref().and_then(|mode| mode.parse().ok()),
        }
    }
    /// The same as the body of `PUT /topics/:topic`.
    pub(crate) fn wire_config(&self) -> prombus_api::http::TopicConfig {
        prombus_api::http::TopicConfig {
            durability: self.durability,
            retention: self.retention,
            max_bytes: self.max_bytes,
            max_events: self.max_events,
            compaction: self.compaction,
            snapshot_topic: self.snapshot_topic.clone(),
            snapshot_interval: self.snapshot_interval,
            partitions: self.partitions,
            schema: self.schema.clone(),
        }
    }
}
