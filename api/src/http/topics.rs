//! `/topics`: what there is, and how it is kept.

use super::age::Age;
use crate::scan::{object, words};
use prombus_interface::schemas::{Compatibility, Topic};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When a publish is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// After fsync, shared by everyone who waits.
    #[default]
    Fsync,
    /// After the write.
    Os,
}

object! {
    /// How a topic is kept. The body of `PUT /topics/:topic` replaces all of it: what is left out gets its default.
    #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(default)]
    pub struct TopicConfig {
        /// When a publish is acknowledged: after fsync, or after the write.
        pub durability: Durability,
        /// Events older than this are forgotten: `30s`, `12h`, `3d`.
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
        #[schemars(with = "Option<Topic>")]
        pub snapshot_topic: Option<String>,
        /// How often that happens: `30s`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub snapshot_interval: Option<Age>,
        /// How many partitions its keys are spread over. Left out in a request, it stays as it is; another number has to be
        /// forced.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub partitions: Option<u32>,
        /// What a new version of the topic's schema has to be beside the earlier ones; `backward` where it
        /// was never set. Left out in a request, it stays as it is. The schemas themselves are at `/schemas`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<Compatibility>")]
        pub schema: Option<String>,
    }
}

/// The current state of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TopicInfo {
    /// Its name.
    #[schemars(with = "Topic")]
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

/// The reply of `GET /topics`: all topics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TopicList {
    /// In the order of their names.
    pub topics: Vec<TopicInfo>,
}

/// The reply of `POST /topics/:topic/snapshot`: up to where a topic's snapshot is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotReply {
    /// The topic.
    #[schemars(with = "Topic")]
    pub topic: String,
    /// The position up to which its snapshot is.
    pub seq: u64,
}

words!(Durability: Fsync "fsync", Os "os"; "fsync or os");
