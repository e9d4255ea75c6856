//! What a snapshot topic holds, and what is remembered of how far it is.
//!
//! A record of the snapshot topic has the key of the event it keeps, the payload
//! `{"key":…,"payload":…,"ts":…}` with `null` as the inner payload of a deleted key, and these headers:
//!
//! - `x-source-seq`: the position of the event in its topic,
//! - `x-snapshot-seq`: with this record, and those stored together with it, the snapshot topic holds the last state of
//!   every key up to this position of the topic,
//! - `x-snapshot-ts`: where the snapshot had reached the end of its topic, the time of that: what was published later
//!   has this ts or a later one, unless its publisher chose another.
//!
//! Its position is also in the keyed record `snapshot/<topic>`, which changes in the same atomic batch and only
//! from the version that was read. So whatever stops a snapshot, the next one goes on exactly there, and of two that
//! are made at once one comes to nothing.

use super::KeyState;
use prombus_store::StoredEvent;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;

/// The header of a snapshot record with the position of its source event.
pub const SOURCE_SEQ_HEADER: &str = "x-source-seq";
/// The header of a snapshot record that says up to which position the snapshot is whole.
pub const SNAPSHOT_SEQ_HEADER: &str = "x-snapshot-seq";
/// The header of a snapshot record that says up to which time the snapshot is whole, where that is known.
pub const SNAPSHOT_TS_HEADER: &str = "x-snapshot-ts";

/// What the keys of all markers begin with.
pub(crate) const MARKER_PREFIX: &str = "snapshot/";
/// The form this code writes. A marker of a later form is not understood, and left alone.
const MARKER_VERSION: u32 = 1;

/// How far the snapshot of a topic is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marker {
    version: u32,
    /// Where the snapshot is.
    pub(crate) snapshot_topic: Arc<str>,
    /// The position in the snapshot topic that it starts at; what is before is not part of it.
    pub(crate) first_seq: u64,
    /// Everything up to this position of the topic is in it.
    pub(crate) position: u64,
}

/// A record of a snapshot topic.
pub(super) struct SnapshotRecord {
    /// What the key was; `None` where it was deleted.
    pub(super) state: Option<KeyState>,
    pub(super) key: String,
    pub(super) source_seq: u64,
    pub(super) source_ts: u64,
    /// The time up to which the snapshot was whole with it.
    pub(super) whole_to_ts: Option<u64>,
}

/// As much of a record as is needed, read in one go without copying.
#[derive(Deserialize)]
struct Written<'a> {
    #[serde(borrow)]
    headers: WrittenHeaders<'a>,
    #[serde(borrow)]
    payload: WrittenPayload<'a>,
}

#[derive(Deserialize)]
struct WrittenHeaders<'a> {
    #[serde(borrow, rename = "x-source-seq")]
    source_seq: Cow<'a, str>,
    #[serde(borrow, default, rename = "x-snapshot-ts")]
    whole_to_ts: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct WrittenPayload<'a> {
    #[serde(borrow)]
    key: Cow<'a, str>,
    #[serde(borrow)]
    payload: &'a RawValue,
    ts: u64,
}

impl Marker {
    pub(crate) fn new(snapshot_topic: &Arc<str>, first_seq: u64, position: u64) -> Self {
        Self {
            version: MARKER_VERSION,
            snapshot_topic: snapshot_topic.clone(),
            first_seq,
            position,
        }
    }

    /// The same snapshot, when it has come further.
    pub(super) fn at(self, position: u64) -> Self {
        Self { position, ..self }
    }

    pub(crate) fn to_bytes(&self) -> Arc<[u8]> {
        // Strings and numbers are always written.
        serde_json::to_vec(self).unwrap_or_default().into()
    }

    /// Reads a marker; `None` where it is none that this code understands.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let marker: Self = serde_json::from_slice(bytes).ok()?;
        (marker.version <= MARKER_VERSION).then_some(marker)
    }
}

/// The key of a topic's marker.
pub(crate) fn marker_key(topic: &str) -> Arc<str> {
    format!("{MARKER_PREFIX}{topic}").into()
}

/// The payload of a snapshot record.
pub(super) fn payload_text(key: &str, payload: &str, ts: u64) -> String {
    // A string is always written.
    let key = serde_json::to_string(key).unwrap_or_default();
    format!(r#"{{"key":{key},"payload":{payload},"ts":{ts}}}"#)
}

impl SnapshotRecord {
    /// Parses a record; `None` where another publisher wrote something else to the topic.
    pub(super) fn of(event: &StoredEvent) -> Option<Self> {
        let Written { headers, payload } = serde_json::from_str(event.json()).ok()?;
        let source_seq = headers.source_seq.parse().ok()?;
        let key = payload.key.into_owned();
        let state = (!event.is_tombstone()).then(|| KeyState {
            key: key.clone(),
            payload: payload.payload.get().to_owned(),
            ts: payload.ts,
            seq: source_seq,
            id: None,
        });
        Some(Self {
            state,
            key,
            source_seq,
            source_ts: payload.ts,
            whole_to_ts: headers.whole_to_ts.and_then(|ts| ts.parse().ok()),
        })
    }
}
