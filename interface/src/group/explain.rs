//! Why nothing is flowing to a group, in a sentence and as data.

use super::info::GroupInfo;
#[cfg(feature = "schema")]
use crate::schemas::Key;
use serde::{Deserialize, Serialize};

/// The answer to "why does nothing come?".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explanation {
    /// For people.
    pub sentence: String,
    /// The first thing that holds events back.
    pub reason: Reason,
    /// Key lanes in which events wait, by position of what blocks them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<LaneInfo>,
    /// The earliest moment an event that failed comes back, in epoch milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_retry_ms: Option<u64>,
    /// Damage that took events of the topic, a sentence each; a limited number, and only from a server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<String>,
    /// The last panic of the group's owner, after which it was replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panicked: Option<String>,
    /// The node that serves the group, where several share the store and one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The group itself.
    pub group: GroupInfo,
}

/// What holds events back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Everything is settled.
    CaughtUp,
    /// The group has no members.
    NoMembers,
    /// The group is paused, or all members asked for a pause.
    Paused,
    /// No member has room for more.
    InFlightCapReached,
    /// As many events are unsettled as the group keeps track of.
    WindowFull,
    /// All that is left waits for its next delivery.
    WaitingForBackoff,
    /// All that is left waits behind earlier events of the same key.
    KeyLanesBlocked,
    /// All that is left is in the hands of members.
    AllInFlight,
    /// Delivery to the members is as fast as their connections' limit allows; only from a server.
    RateLimited,
    /// Nothing does.
    Flowing,
}

/// A key lane in which events wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaneInfo {
    /// The position of the event they wait for.
    pub blocked_by_seq: u64,
    /// Its id, where it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_by_id: Option<String>,
    /// The key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Key>"))]
    pub key: Option<String>,
    /// How many wait.
    pub waiting: u64,
    /// When the blocking event is due, where it waits for its retry itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_ms: Option<u64>,
}
