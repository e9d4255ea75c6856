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
    #[serde(default, skip_serializing_if = "is_zero")]
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
    /// Since when the group is paused, in epoch milliseconds; none where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) paused_since_ms: Option<u64>,
    /// Where the group was before its cursor was last set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) undo: Option<Arc<SeekUndo>>,
    /// The node that serves the group, where several share the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<OwnerRecord>,
}

/// Where a group was before its cursor was set, for as long as that can be undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SeekUndo {
    /// The cursor that was set: what is settled above it was settled since.
    pub(crate) sought: u64,
    /// When that was, in epoch milliseconds: no retry waits longer than it had to then, whatever the clock did since.
    #[serde(default)]
    pub(crate) written_ms: u64,
    pub(crate) cursor: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) settled: Vec<(u64, u64)>,
    /// Without the texts of their histories.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) failed: Vec<FailedEvent>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) leases: Vec<LeaseRun>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", rename = "parked")]
    pub(crate) blocked: Vec<BlockedKeyRecord>,
}

/// A key, or a partition, whose events wait outside the group's window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BlockedKeyRecord {
    /// The key, or the number of the partition.
    pub(crate) key: String,
    /// Where it is a partition: one of so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) partitions: Option<u32>,
    /// Its events from here on are not settled.
    pub(crate) from_seq: u64,
    /// Up to here: what comes behind it was not read.
    pub(crate) to_seq: u64,
    /// How many there are.
    pub(crate) events: u64,
    /// Positions of a partition between the two that are settled nevertheless.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) settled: Vec<(u64, u64)>,
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

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_an_earlier_version_is_neither_paused_nor_has_an_undo() {
        let stored = r#"{"version":1,"created_ms":5,"cursor":7,"settled":[[9,9]],"skipped":0,
            "settings":{"ack_timeout_ms":30000,"max_attempts":5,"ordering":"none"},"written_ms":8,"incarnation":3}"#;
        let record = GroupRecord::from_bytes(stored.as_bytes()).expect("a record");
        assert_eq!((record.paused_since_ms, &record.undo), (None, &None));
        let written = String::from_utf8(record.to_bytes().to_vec()).expect("text");
        assert!(
            !written.contains("paused") && !written.contains("undo"),
            "an earlier version reads it as it did: {written}"
        );
    }

    #[test]
    fn a_pause_and_an_undo_are_read_back() {
        let record = GroupRecord {
            version: RECORD_VERSION,
            created_ms: 1,
            cursor: 2,
            settled: vec![(4, 5)],
            skipped: 0,
            settings: GroupSettings::default(),
            failed: Vec::new(),
            leases: Vec::new(),
            written_ms: 3,
            incarnation: Some(4),
            blocked: Vec::new(),
            paused_since_ms: Some(5),
            undo: Some(Arc::new(SeekUndo {
                sought: 6,
                written_ms: 4,
                cursor: 7,
                settled: vec![(9, 9)],
                failed: vec![FailedEvent {
                    seq: 8,
                    attempts: 2,
                    lost: 1,
                    is_last_lost: true,
                    due_ms: 9,
                    history: Vec::new(),
                }],
                leases: vec![LeaseRun {
                    member: "m".into(),
                    started_ms: 1,
                    attempt: 3,
                    seqs: vec![(10, 11)],
                }],
                blocked: vec![BlockedKeyRecord {
                    partitions: None,
                    settled: vec![],
                    key: "k".to_owned(),
                    from_seq: 12,
                    to_seq: 13,
                    events: 2,
                }],
            })),
            owner: Some(OwnerRecord {
                node: 1,
                boot: 2,
                epoch: 3,
                claimed_to: 4,
                hold_ms: 5,
                held: None,
                released: true,
                relays: Vec::new(),
                awaited: None,
            }),
        };
        assert_eq!(GroupRecord::from_bytes(&record.to_bytes()), Ok(record));
    }
}
