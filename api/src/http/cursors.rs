//! `/cursors` and `/lag`: where groups are, how far behind, and setting them elsewhere.

use crate::frames::required;
use crate::options::{Position, PositionParts};
use crate::scan::{FromJson, ScanError, Scanner};
use crate::write::{ObjectWriter, ToJson};
use serde::{Deserialize, Serialize};

/// A group's last settled position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cursor {
    /// The topic.
    pub topic: String,
    /// The group.
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

/// The reply of `GET /cursors`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CursorList {
    /// The topic.
    pub topic: String,
    /// One for each group.
    pub cursors: Vec<Cursor>,
}

/// The reply of `GET /lag`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lag {
    /// The topic.
    pub topic: String,
    /// The group.
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

/// The body of `POST /cursors`: sets a group's cursor, or says what that would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seek {
    /// The topic.
    pub topic: String,
    /// The group.
    pub group: String,
    /// Where to: `from` with `ts`, `afterId` or `seq`.
    pub to: Position,
    /// Dry run.
    pub dry_run: bool,
}

/// The reply of `POST /cursors`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeekReply {
    /// The topic.
    pub topic: String,
    /// The group.
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

impl<'a> FromJson<'a> for Seek {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let (mut topic, mut group, mut dry_run) = (None, None, false);
        let mut to = PositionParts::default();
        scanner.object(|scanner, name| match name {
            "topic" => scanner.fill(&mut topic),
            "group" => scanner.fill(&mut group),
            "dry_run" => scanner.fill(&mut dry_run),
            _ => match to.take(scanner, name) {
                Some(taken) => taken,
                None => {
                    let own: &[&str] = &["topic", "group", "dry_run"];
                    let known = [own, &PositionParts::FIELDS].concat();
                    Err(ScanError::unknown(name, &known, &[]))
                }
            },
        })?;
        Ok(Self {
            topic: required(topic, "topic")?,
            group: required(group, "group")?,
            to: required(to.position()?, "from")?,
            dry_run,
        })
    }
}

impl ToJson for Seek {
    fn write_json(&self, out: &mut Vec<u8>) {
        let mut object = ObjectWriter::new(out);
        object
            .field("topic", &self.topic)
            .field("group", &self.group);
        self.to.write(&mut object);
        object.field("dry_run", &self.dry_run).end();
    }
}
