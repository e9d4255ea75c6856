//! `/topics`: what there is, and how it is kept.

use super::age::Age;
use crate::scan::{FromJson, ScanError, Scanner};
use crate::write::{ObjectWriter, ToJson};
use serde::{Deserialize, Serialize};

/// When a publish is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// After fsync, shared by everyone who waits.
    #[default]
    Fsync,
    /// After the write.
    Os,
}

/// How a topic is kept. The body of `PUT /topics/:topic` replaces all of it: what is left out gets its default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TopicConfig {
    /// When a publish is acknowledged.
    pub durability: Durability,
    /// Events older than this are forgotten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<Age>,
    /// The oldest events are forgotten while the topic holds more bytes than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// The oldest events are forgotten while the topic holds more events than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_events: Option<u64>,
    /// Only the latest event of each key has to be kept.
    pub compaction: bool,
    /// Where the latest state of each key is published from time to time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_topic: Option<String>,
    /// How often that happens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_interval: Option<Age>,
    /// How many partitions its keys are spread over. Left out in a request, it stays as it is; another number has to be
    /// forced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partitions: Option<u32>,
    /// What a new version of the topic's schema has to be beside the earlier ones. Left out in a request, it stays as it
    /// is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
}

/// A topic as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicInfo {
    /// Its name.
    pub topic: String,
    /// The oldest position that may still be read.
    pub first_seq: u64,
    /// The newest position; 0 before the first event.
    pub tail_seq: u64,
    /// How many events are kept.
    pub events: u64,
    /// About how many bytes they take.
    pub bytes: u64,
    /// How it is kept.
    pub config: TopicConfig,
}

/// The reply of `GET /topics`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicList {
    /// In the order of their names.
    pub topics: Vec<TopicInfo>,
}

/// The reply of `POST /topics/:topic/snapshot`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotReply {
    /// The topic.
    pub topic: String,
    /// The position up to which its snapshot is.
    pub seq: u64,
}

impl Durability {
    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fsync => "fsync",
            Self::Os => "os",
        }
    }
}

const TOPIC_FIELDS: &[&str] = &[
    "durability",
    "retention",
    "max_bytes",
    "max_events",
    "compaction",
    "snapshot_topic",
    "snapshot_interval",
    "partitions",
    "schema",
];

impl<'a> FromJson<'a> for TopicConfig {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let mut config = Self::default();
        scanner.object(|scanner, name| match name {
            "durability" => scanner.fill(&mut config.durability),
            "retention" => scanner.fill(&mut config.retention),
            "max_bytes" => scanner.fill(&mut config.max_bytes),
            "max_events" => scanner.fill(&mut config.max_events),
            "compaction" => scanner.fill(&mut config.compaction),
            "snapshot_topic" => scanner.fill(&mut config.snapshot_topic),
            "snapshot_interval" => scanner.fill(&mut config.snapshot_interval),
            "partitions" => scanner.fill(&mut config.partitions),
            "schema" => scanner.fill(&mut config.schema),
            _ => Err(ScanError::unknown(name, TOPIC_FIELDS, &[])),
        })?;
        Ok(config)
    }
}

impl ToJson for TopicConfig {
    fn write_json(&self, out: &mut Vec<u8>) {
        ObjectWriter::new(out)
            .field("durability", self.durability.as_str())
            .field("retention", &self.retention)
            .field("max_bytes", &self.max_bytes)
            .field("max_events", &self.max_events)
            .field("compaction", &self.compaction)
            .field("snapshot_topic", &self.snapshot_topic)
            .field("snapshot_interval", &self.snapshot_interval)
            .field("partitions", &self.partitions)
            .field("schema", &self.schema)
            .end();
    }
}

impl<'a> FromJson<'a> for Durability {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        match &*scanner.text()? {
            "fsync" => Ok(Self::Fsync),
            "os" => Ok(Self::Os),
            _ => Err(ScanError::wrong("expected fsync or os".to_owned())),
        }
    }
}
