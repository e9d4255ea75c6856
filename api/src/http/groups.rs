//! `/groups`: the groups of a topic as they are.

use super::query::query;
use crate::names::{Group, Topic};
use crate::options::{Filter, Ordering};
use crate::scan::object;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

query! {
    /// Which group is meant: `/lag` and `/explain` need one, `/groups` and `/cursors` take all without.
    #[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
    pub struct GroupQuery {
        /// The topic.
        #[schemars(with = "Topic")]
        pub topic: String,
        /// The group; all of the topic where it is left out.
        #[schemars(with = "Option<Group>")]
        pub group: Option<String>,
    }
}

object! {
    /// The body of `PATCH /groups`: changes what belongs to a group; what is left out stays.
    #[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
    pub struct GroupChange {
        /// The topic.
        #[schemars(with = "Topic")]
        pub topic: String,
        /// The group.
        #[schemars(with = "Group")]
        pub group: String,
        /// After how many failed deliveries an event is dead.
        pub max_attempts: Option<u32> as "maxAttempts",
        /// In which order it gets events.
        pub ordering: Option<Ordering>,
        /// Which events it wants; an empty one wants all.
        pub filter: Option<Filter>,
    }
}

object! {
    /// The body of `POST /groups/pause`, `POST /groups/resume` and `POST /cursors/undo`: which group.
    #[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
    pub struct NamedGroup {
        /// The topic.
        #[schemars(with = "Topic")]
        pub topic: String,
        /// The group.
        #[schemars(with = "Group")]
        pub group: String,
    }
}

/// The reply of `GET /groups`: the groups of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupList {
    /// The topic.
    #[schemars(with = "Topic")]
    pub topic: String,
    /// In the order of their names.
    pub groups: Vec<GroupInfo>,
}

/// The current state of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupInfo {
    /// The topic.
    #[schemars(with = "Topic")]
    pub topic: String,
    /// The group's name.
    #[schemars(with = "Group")]
    pub group: String,
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
    /// What it has done since the server was started.
    pub counts: GroupCounts,
}

/// A member of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemberInfo {
    /// Its name.
    pub name: String,
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
    pub node: Option<String>,
}

/// What a group has done since the server was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct GroupCounts {
    /// Leases given.
    pub delivered: u64,
    /// Of these, the ones that were not the event's first delivery.
    pub redelivered: u64,
    /// Of these, the ones that were returned unseen.
    pub returned: u64,
    /// Events acknowledged.
    pub acked: u64,
    /// Deliveries that were rejected.
    pub nacked: u64,
    /// Leases that ran out.
    pub expired: u64,
    /// Events written to the dead letters.
    pub dead_lettered: u64,
    /// Events of an ephemeral group that were dropped after their last attempt.
    pub given_up: u64,
    /// Events settled unseen because the filter does not want them.
    pub filtered: u64,
}
