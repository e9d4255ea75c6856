//! `/cursors` and `/lag`: where groups are, how far behind, and setting them elsewhere.

use crate::options::PositionParts;
use crate::scan::object;
use prombus_interface::schemas::{Group, Topic};
use prombus_interface::{Cursor, SeekEffect, StartAt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The reply of `GET /cursors`: where the groups of a topic are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CursorList {
    /// The topic.
    #[schemars(with = "Topic")]
    pub topic: String,
    /// One for each group.
    pub cursors: Vec<Cursor>,
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
        pub to: StartAt,
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
    /// What comes of it.
    #[serde(flatten)]
    pub effect: SeekEffect,
}
