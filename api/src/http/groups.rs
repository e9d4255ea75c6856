//! `/groups`: the groups of a topic as they are.

use super::query::{Query, QueryWriter};
use crate::error::ParseError;
use crate::frames::required;
use crate::options::{Filter, Ordering};
use crate::scan::{FromJson, ScanError, Scanner};
use crate::write::{ObjectWriter, ToJson};
use serde::{Deserialize, Serialize};

/// Which group is meant: `/lag` and `/explain` need one, `/groups` and `/cursors` take all without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupQuery {
    /// The topic.
    pub topic: String,
    /// The group.
    pub group: Option<String>,
}

/// The body of `PATCH /groups`: changes what belongs to a group; what is left out stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupChange {
    /// The topic.
    pub topic: String,
    /// The group.
    pub group: String,
    /// After how many failed deliveries an event is dead.
    pub max_attempts: Option<u32>,
    /// In which order it gets events.
    pub ordering: Option<Ordering>,
    /// Which events it wants; an empty one wants all.
    pub filter: Option<Filter>,
}

impl<'a> FromJson<'a> for GroupChange {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let (mut topic, mut group) = (None, None);
        let (mut max_attempts, mut ordering, mut filter) = (None, None, None);
        scanner.object(|scanner, name| match name {
            "topic" => scanner.fill(&mut topic),
            "group" => scanner.fill(&mut group),
            "maxAttempts" => scanner.fill(&mut max_attempts),
            "ordering" => scanner.fill(&mut ordering),
            "filter" => scanner.fill(&mut filter),
            _ => {
                let known = ["topic", "group", "maxAttempts", "ordering", "filter"];
                Err(ScanError::unknown(name, &known, &[]))
            }
        })?;
        Ok(Self {
            topic: required(topic, "topic")?,
            group: required(group, "group")?,
            max_attempts,
            ordering,
            filter,
        })
    }
}

impl ToJson for GroupChange {
    fn write_json(&self, out: &mut Vec<u8>) {
        let mut object = ObjectWriter::new(out);
        object
            .field("topic", &self.topic)
            .field("group", &self.group)
            .field("maxAttempts", &self.max_attempts)
            .field("ordering", &self.ordering)
            .field("filter", &self.filter)
            .end();
    }
}

/// The body of `POST /groups/pause`, `POST /groups/resume` and `POST /cursors/undo`: which group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedGroup {
    /// The topic.
    pub topic: String,
    /// The group.
    pub group: String,
}

impl<'a> FromJson<'a> for NamedGroup {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let (mut topic, mut group) = (None, None);
        scanner.object(|scanner, name| match name {
            "topic" => scanner.fill(&mut topic),
            "group" => scanner.fill(&mut group),
            _ => Err(ScanError::unknown(name, &["topic", "group"], &[])),
        })?;
        Ok(Self {
            topic: required(topic, "topic")?,
            group: required(group, "group")?,
        })
    }
}

impl ToJson for NamedGroup {
    fn write_json(&self, out: &mut Vec<u8>) {
        let mut object = ObjectWriter::new(out);
        object
            .field("topic", &self.topic)
            .field("group", &self.group)
            .end();
    }
}

/// The reply of `GET /groups`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupList {
    /// The topic.
    pub topic: String,
    /// In the order of their names.
    pub groups: Vec<GroupInfo>,
}

/// A group as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupInfo {
    /// The topic.
    pub topic: String,
    /// The group's name.
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
    /// Since when, in epoch milliseconds.
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

/// What a group has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
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

impl GroupQuery {
    /// Reads the query.
    pub fn parse(query: &Query<'_>) -> Result<Self, ParseError> {
        Ok(Self {
            topic: query.required("topic")?.to_owned(),
            group: query.get("group").map(str::to_owned),
        })
    }

    /// Writes the query.
    pub fn to_query(&self) -> String {
        QueryWriter::default()
            .push("topic", &self.topic)
            .push_if("group", self.group.as_ref())
            .finish()
    }
}
