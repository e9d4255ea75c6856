//! `/cursors` and `/lag`: where groups are, how far behind, and setting them elsewhere.

use crate::names::{Group, Topic};
use crate::options::{Position, PositionParts};
use crate::scan::object;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A group's last settled position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cursor {
    /// The topic.
    #[schemars(with = "Topic")]
    pub topic: String,
    /// The group.
    #[schemars(with = "Group")]
    pub group: String,
    /// The id of the event at the cursor; none before the first event, or where retention took it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_id: Option<String>,
    /// Its time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_ts: Option<u64>,
    /// The last position before which everything is settled.
    pub last_seq: u64,
}

/// The reply of `GET /cursors`: where the groups of a topic are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CursorList {
    /// The topic.
    #[schemars(with = "Topic")]
    pub topic: String,
    /// One for each group.
    pub cursors: Vec<Cursor>,
}

/// The reply of `GET /lag`: how far behind a group is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lag {
    /// The topic.
    #[schemars(with = "Topic")]
    pub topic: String,
    /// The group.
    #[schemars(with = "Group")]
    pub group: String,
    /// Events that are not settled.
    pub lag: u64,
    /// How old the oldest of them is, 0 where there is none.
    pub lag_ms: u64,
    /// The group's cursor.
    pub last_cursor: Cursor,
    /// The topic's newest position.
    pub tail: u64,
}

object! {
    /// The body of `POST /cursors`: sets a group's cursor, or says what that would do.
    #[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
    #[schemars(extend("anyOf" = PositionParts::FIELDS.map(|name| serde_json::json!({"required": [name]}))))]
    pub struct Seek {
        /// The topic.
        #[schemars(with = "Topic")]
        pub topic: String,
        /// The group.
        #[schemars(with = "Group")]
        pub group: String,
        /// Where to: `from` with `ts`, `afterId` or `seq`.
        #[schemars(flatten, with = "PositionParts")]
        pub to: Position,
        /// Only say what would happen.
        #[schemars(default)]
        pub dry_run: bool,
    }
}

/// The reply of `POST /cursors`: what a seek does or would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeekReply {
    /// The topic.
    #[schemars(with = "Topic")]
    pub topic: String,
    /// The group.
    #[schemars(with = "Group")]
    pub group: String,
    /// Whether it was a dry run.
    pub dry_run: bool,
    /// The last settled position after it.
    pub cursor: u64,
    /// Settled positions that are delivered again.
    pub redelivered: u64,
    /// Unsettled positions that are passed over.
    pub skipped: u64,
    /// Whether the position was beyond the tail, so that the cursor is at the tail.
    #[serde(default)]
    pub beyond_tail: bool,
}
