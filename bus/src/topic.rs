//! What a topic is set up with. Half of it the store acts on itself; the rest travels with the topic as attributes.

use crate::error::InvalidField;
use prombus_interface::names::check_topic;
use prombus_schema::Compatibility;
use prombus_store::{Durability, TopicInfo, TopicOptions};
use serde::{Deserialize, Serialize};

/// The most partitions a topic may have.
const MAX_PARTITIONS: u32 = 1_024;

/// How a topic is kept and what is done with it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TopicConfig {
    /// When a publish is acknowledged.
    pub durability: Durability,
    /// Events older than this are forgotten.
    pub retention_ms: Option<u64>,
    /// The oldest events are forgotten while the topic holds more bytes than this.
    pub max_bytes: Option<u64>,
    /// The oldest events are forgotten while the topic holds more events than this.
    pub max_events: Option<u64>,
    /// Only the latest event of each key has to be kept.
    pub compaction: bool,
    /// Where the latest state of each key is published from time to time.
    pub snapshot_topic: Option<String>,
    /// How often that happens.
    pub snapshot_interval_ms: Option<u64>,
    /// How many partitions its keys are spread over.
    pub partitions: Option<u32>,
    /// What a new version of its schema has to be beside the earlier ones; backward compatible where it is not said.
    /// The schemas themselves are registered with [`crate::Bus::register_schema`].
    pub schema: Option<Compatibility>,
}

/// The part of a topic's configuration that the store only carries.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Attributes {
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot_topic: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot_interval_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partitions: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<String>,
    /// Which state of the topic's schemas applies. It changes with them, so that watchers of topics learn of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    schema_generation: Option<u64>,
}

/// What publishing has to know of a topic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PublishTraits {
    /// Which state of its schemas applies; `None` where it has none.
    pub(crate) schemas: Option<u64>,
    /// How many partitions it has.
    pub(crate) partitions: Option<u32>,
}

impl PublishTraits {
    pub(crate) fn of_attributes(attributes: &str) -> Self {
        // Most topics have neither, and finding that out costs no parsing.
        if !attributes.contains("schema_generation") && !attributes.contains("\"partitions\"") {
            return Self::default();
        }
        let attributes: Attributes = serde_json::from_str(attributes).unwrap_or_default();
        Self {
            schemas: attributes.schema_generation,
            partitions: attributes.partitions,
        }
    }
}

impl TopicConfig {
    /// The current configuration of a topic. Unknown attributes are ignored.
    pub fn of(info: &TopicInfo) -> Self {
        let options = &info.options;
        let attributes: Attributes = serde_json::from_str(&options.attributes).unwrap_or_default();
        Self {
            durability: options.durability,
            retention_ms: options.retention_ms,
            max_bytes: options.max_bytes,
            max_events: options.max_events,
            compaction: options.compaction,
            snapshot_topic: attributes.snapshot_topic,
            snapshot_interval_ms: attributes.snapshot_interval_ms,
            partitions: attributes.partitions,
            schema: attributes.schema.and_then(|mode| mode.parse().ok()),
        }
    }

    /// Refuses values that make no sense.
    pub fn check(&self) -> Result<(), InvalidField> {
        for (name, value) in [
            ("retention", self.retention_ms),
            ("max_bytes", self.max_bytes),
            ("max_events", self.max_events),
            ("snapshot_interval", self.snapshot_interval_ms),
        ] {
            if value == Some(0) {
                return Err(InvalidField::new(name, "must be at least 1"));
            }
        }
        if self
            .partitions
            .is_some_and(|count| !(1..=MAX_PARTITIONS).contains(&count))
        {
            return Err(InvalidField::new("partitions", "must be 1 to 1024"));
        }
        if let Some(topic) = &self.snapshot_topic {
            check_topic(topic)
                .map_err(|error| InvalidField::new("snapshot_topic", error.to_string()))?;
        }
        Ok(())
    }

    /// What the store keeps.
    pub(crate) fn to_options(&self) -> TopicOptions {
        self.to_options_with(None)
    }

    /// The same for a topic with schemas in this state.
    pub(crate) fn to_options_with(&self, schema_generation: Option<u64>) -> TopicOptions {
        let attributes = Attributes {
            schema_generation,
            snapshot_topic: self.snapshot_topic.clone(),
            snapshot_interval_ms: self.snapshot_interval_ms,
            partitions: self.partitions,
            schema: self.schema.map(|mode| mode.as_str().to_owned()),
        };
        TopicOptions {
            durability: self.durability,
            retention_ms: self.retention_ms,
            max_bytes: self.max_bytes,
            max_events: self.max_events,
            compaction: self.compaction,
            // Plain strings and numbers are always written.
            attributes: serde_json::to_string(&attributes).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn configurations_round_trip(
            os in any::<bool>(),
            ages in any::<[Option<u64>; 4]>(),
            compaction in any::<bool>(),
            snapshot_topic in prop::option::of("[a-z]{1,9}"),
            partitions in any::<Option<u32>>(),
            schema in prop::option::of(prop::sample::select(Compatibility::ALL.to_vec())),
            generation in any::<Option<u64>>(),
        ) {
            let config = TopicConfig {
                durability: if os { Durability::Os } else { Durability::Fsync },
                retention_ms: ages[0],
                max_bytes: ages[1],
                max_events: ages[2],
                compaction,
                snapshot_topic,
                snapshot_interval_ms: ages[3],
                partitions,
                schema,
            };
            let info = TopicInfo {
                name: "t".into(),
                options: config.to_options_with(generation),
                incarnation: 1,
                first_seq: 1,
                tail_seq: 0,
                events: 0,
                bytes: 0,
            };
            let traits = PublishTraits::of_attributes(&info.options.attributes);
            prop_assert_eq!(traits, PublishTraits { schemas: generation, partitions });
            prop_assert_eq!(TopicConfig::of(&info), config);
        }
    }

    #[test]
    fn values_that_make_no_sense_are_refused() {
        let config = TopicConfig::default;
        let bad = [
            TopicConfig {
                retention_ms: Some(0),
                ..config()
            },
            TopicConfig {
                max_bytes: Some(0),
                ..config()
            },
            TopicConfig {
                max_events: Some(0),
                ..config()
            },
            TopicConfig {
                snapshot_interval_ms: Some(0),
                ..config()
            },
            TopicConfig {
                partitions: Some(0),
                ..config()
            },
            TopicConfig {
                partitions: Some(1_025),
                ..config()
            },
            TopicConfig {
                snapshot_topic: Some("no topic".into()),
                ..config()
            },
        ];
        for config in bad {
            assert!(config.check().is_err(), "{config:?}");
        }
        assert!(config().check().is_ok());
    }
}
