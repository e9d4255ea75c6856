//! What a group has done, in numbers.

use serde::{Deserialize, Serialize};

/// Counters of a group. All but `in_flight` only grow while the bus is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct GroupCounts {
    /// Leases given, the ones that were returned unseen too.
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
    /// Events that were gone before the group saw them.
    pub skipped: u64,
    /// Leases open now.
    pub in_flight: u64,
}
