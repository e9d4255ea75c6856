//! What is stored of a group: one keyed record, JSON, written within `ack_flush_ms` of a change.

use super::history::Attempt;
use super::ownership::OwnerRecord;
use super::ranges::Ranges;
use super::settings::GroupSettings;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The form this code writes. A record of a later form is refused rather than misread.
pub(crate) const RECORD_VERSION: u32 = 1;
/// The form of a record that names its owner. Code that does not know of owners must not write over it.
pub(crate) const OWNED_RECORD_VERSION: u32 = 2;

const KEY_PREFIX: &str = "group/";

/// A group as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GroupRecord {
    /// The form of the record.
    pub(crate) version: u32,
    pub(crate) created_ms: u64,
    /// The last position before which everything is settled.
    pub(crate) cursor: u64,
    /// What is settled above the cursor, as ranges with both ends included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) settled: Vec<(u64, u64)>,
    /// How many events retention took before the group saw them.
    #[serde(default)]
    pub(crate) skipped: u64,
    pub(crate) settings: GroupSettings,
    /// Unsettled events that failed before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) failed: Vec<FailedEvent>,
    /// Leases that were open, so that a crash counts the delivery.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) leases: Vec<LeaseRun>,
    /// When it was written, in epoch milliseconds: what waits waits no longer than it did then.
    #[serde(default)]
    pub(crate) written_ms: u64,
    /// The incarnation of the topic that the positions are of; none where the topic did not exist yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) incarnation: Option<u64>,
    /// Keys whose events are not settled though `settled` holds their positions.
    #[serde(default, skip_serializing_if = "Vec::is_empty", rename = "parked")]
    pub(crate) blocked: Vec<BlockedKeyRecord>,
    /// The node that serves the group, where several share the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<OwnerRecord>,
}

/// A key whose events wait outside the group's window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BlockedKeyRecord {
    pub(crate) key: String,
    /// Its events from here on are not settled.
    pub(crate) from_seq: u64,
    /// Up to here: what comes behind it was not read.
    pub(crate) to_seq: u64,
    /// How many there are.
    pub(crate) events: u64,
}

/// An unsettled event that failed before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FailedEvent {
    pub(crate) seq: u64,
    pub(crate) attempts: u32,
    /// How many of these ended because the member or the server went away.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) lost: u32,
    /// Whether the last of them did.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) is_last_lost: bool,
    /// When it may be delivered again, in epoch milliseconds.
    #[serde(default)]
    pub(crate) due_ms: u64,
    /// The last attempts, where there are not too many such events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) history: Vec<Attempt>,
}

/// Events that were leased to one member at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeaseRun {
    pub(crate) member: Arc<str>,
    pub(crate) started_ms: u64,
    /// The number of the delivery.
    pub(crate) attempt: u32,
    /// Their positions, as ranges with both ends included.
    pub(crate) seqs: Vec<(u64, u64)>,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes the field by reference"
)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes the field by reference"
)]
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// The key of a group's record.
pub(crate) fn record_key(topic: &str, group: &str) -> Arc<str> {
    format!("{KEY_PREFIX}{topic}/{group}").into()
}

/// What the keys of all groups of a topic begin with.
pub(crate) fn record_prefix(topic: &str) -> String {
    format!("{KEY_PREFIX}{topic}/")
}

/// What the keys of all groups begin with.
pub(crate) fn record_prefix_of_all() -> &'static str {
    KEY_PREFIX
}

/// The topic and the group that a key is of. Neither has a slash in its name.
pub(crate) fn parse_record_key(key: &str) -> Option<(&str, &str)> {
    key.strip_prefix(KEY_PREFIX)?.split_once('/')
}

impl GroupRecord {
    /// Whether positions from `first_seq` to `tail_seq` are not settled.
    pub(crate) fn is_behind(&self, first_seq: u64, tail_seq: u64) -> bool {
        let from = (self.cursor + 1).max(first_seq);
        let settled = Ranges::new(self.settled.clone());
        let unsettled = (tail_seq + 1).saturating_sub(from);
        !self.blocked.is_empty() || settled.count_within(from, tail_seq) < unsettled
    }

    pub(crate) fn to_bytes(&self) -> Arc<[u8]> {
        // Strings, numbers and lists are always written.
        serde_json::to_vec(self).unwrap_or_default().into()
    }

    /// Reads a record, or says why it is none.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let record: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if record.version > OWNED_RECORD_VERSION {
            return Err(format!(
                "format {} is newer than {OWNED_RECORD_VERSION}",
                record.version
            ));
        }
        Ok(record)
    }
}
