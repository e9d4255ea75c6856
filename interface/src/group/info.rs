//! Descriptions of groups: cursor, lag, members.

use super::Ordering;
use super::counts::GroupCounts;
use crate::field_filter::FieldFilter;
#[cfg(feature = "schema")]
use crate::schemas::{Group, Topic};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A group's last settled position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Cursor {
    /// The topic.
    #[cfg_attr(feature = "schema", schemars(with = "Topic"))]
    pub topic: Arc<str>,
    /// The group.
    #[cfg_attr(feature = "schema", schemars(with = "Group"))]
    pub group: Arc<str>,
    /// The id of the event at the cursor; none before the first event, or where retention took it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_id: Option<String>,
    /// Its time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_ts: Option<u64>,
    /// The last position before which everything is settled.
    pub last_seq: u64,
}

/// How far behind a group is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Lag {
    /// The topic.
    #[cfg_attr(feature = "schema", schemars(with = "Topic"))]
    pub topic: Arc<str>,
    /// The group.
    #[cfg_attr(feature = "schema", schemars(with = "Group"))]
    pub group: Arc<str>,
    /// Positions that are not settled.
    pub lag: u64,
    /// How old the oldest unsettled event is, 0 where there is none.
    pub lag_ms: u64,
    /// The group's cursor.
    pub last_cursor: Cursor,
    /// The topic's newest position.
    pub tail: u64,
}

/// What a seek does, or would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeekEffect {
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

/// The current state of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupInfo {
    /// The topic.
    #[cfg_attr(feature = "schema", schemars(with = "Topic"))]
    pub topic: Arc<str>,
    /// The group's name.
    #[cfg_attr(feature = "schema", schemars(with = "Group"))]
    pub group: Arc<str>,
    /// When it was made, in epoch milliseconds.
    pub created_ms: u64,
    /// The last position before which everything is settled.
    pub cursor: u64,
    /// The topic's newest position.
    pub tail: u64,
    /// Positions that are not settled.
    pub lag: u64,
    /// Events that were gone before the group saw them.
    pub skipped: u64,
    /// How long its leases are.
    pub ack_timeout_ms: u64,
    /// After how many failed deliveries an event is dead.
    pub max_attempts: u32,
    /// In which order it gets events.
    pub ordering: Ordering,
    /// Which events it wants; none where it wants all, or where a function decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<FieldFilter>,
    /// Whether the whole group is paused: none of its members is given events.
    #[serde(default)]
    pub paused: bool,
    /// Since when it is paused, in epoch milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_since_ms: Option<u64>,
    /// How many partitions its members share; absent where it is not partitioned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partitions: Option<u32>,
    /// Who is subscribed.
    pub members: Vec<MemberInfo>,
    /// Events that are leased.
    pub in_flight: u64,
    /// Events that wait for their next delivery.
    pub waiting: u64,
    /// How long the oldest open lease has been held.
    pub oldest_in_flight_ms: u64,
    /// What it has done since the bus was opened.
    pub counts: GroupCounts,
}

/// A member of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemberInfo {
    /// Its name.
    pub name: Arc<str>,
    /// Whether it asked for a pause.
    pub paused: bool,
    /// Events of this group that it holds.
    pub in_flight: u64,
    /// How many it may hold, of all the groups that serve it.
    pub max_in_flight: u64,
    /// How many of these are left.
    pub room: u64,
    /// How long it has held the event of this group that it holds longest; 0 where it holds none.
    #[serde(default)]
    pub oldest_in_flight_ms: u64,
    /// The partitions that it has, those that were revoked and are not confirmed too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<u32>,
    /// The node that it is on, where several share the store and that is not the one that serves the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Arc<str>>,
}
