//! `POST /groups/shadow`: a throwaway group that is fed a stretch of a topic again.

use super::age::Age;
use crate::frames::required;
use crate::options::{Position, PositionParts};
use crate::scan::{FromJson, ScanError, Scanner};
use crate::write::{ObjectWriter, Raw, ToJson, write_text};
use serde::{Deserialize, Serialize};

/// The body of `POST /groups/shadow`.
#[derive(Debug, Clone, PartialEq)]
pub struct Shadow {
    /// The topic.
    pub topic: String,
    /// The group whose settings it has.
    pub group: String,
    /// The first event: `from` with `ts`, `afterId` or `seq`.
    pub start: Option<Position>,
    /// The last position.
    pub to: Option<u64>,
    /// How fast it is fed.
    pub pace: Option<Pace>,
    /// After how long it is gone.
    pub ttl: Option<Age>,
}

/// How fast a shadow group is fed: `"original"`, `"max"`, or how much faster than the original.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// With the time between events that there was when they were published.
    Original,
    /// As fast as its members take events.
    Max,
    /// That much faster than the original.
    Times(f64),
}

/// The reply of `POST /groups/shadow`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShadowReply {
    /// The topic.
    pub topic: String,
    /// The name of the new group, by which members subscribe.
    pub group: String,
    /// The group whose settings it has.
    pub original: String,
    /// The first position that it is fed.
    pub from_seq: u64,
    /// The last one; left out where it follows the topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_seq: Option<u64>,
    /// After how many milliseconds it is gone.
    pub ttl_ms: u64,
}

impl<'a> FromJson<'a> for Shadow {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let (mut topic, mut group) = (None, None);
        let (mut to, mut pace, mut ttl) = (None, None, None);
        let mut start = PositionParts::default();
        scanner.object(|scanner, name| match name {
            "topic" => scanner.fill(&mut topic),
            "group" => scanner.fill(&mut group),
            "to" => scanner.fill(&mut to),
            "pace" => scanner.fill(&mut pace),
            "ttl" => scanner.fill(&mut ttl),
            _ => match start.take(scanner, name) {
                Some(taken) => taken,
                None => {
                    let own: &[&str] = &["topic", "group", "to", "pace", "ttl"];
                    let known = [own, &PositionParts::FIELDS].concat();
                    Err(ScanError::unknown(name, &known, &[]))
                }
            },
        })?;
        Ok(Self {
            topic: required(topic, "topic")?,
            group: required(group, "group")?,
            start: start.position()?,
            to,
            pace,
            ttl,
        })
    }
}

impl ToJson for Shadow {
    fn write_json(&self, out: &mut Vec<u8>) {
        let mut object = ObjectWriter::new(out);
        object
            .field("topic", &self.topic)
            .field("group", &self.group);
        if let Some(start) = &self.start {
            start.write(&mut object);
        }
        object
            .field("to", &self.to)
            .field("pace", &self.pace)
            .field("ttl", &self.ttl)
            .end();
    }
}

impl<'a> FromJson<'a> for Pace {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let written = scanner.raw()?;
        match (written, written.parse()) {
            ("\"original\"", _) => Ok(Self::Original),
            ("\"max\"", _) => Ok(Self::Max),
            (_, Ok(factor)) => Ok(Self::Times(factor)),
            _ => {
                let expected = "expected \"original\", \"max\" or a number";
                Err(ScanError::wrong(expected.to_owned()))
            }
        }
    }
}

impl ToJson for Pace {
    fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Self::Original => write_text(out, "original"),
            Self::Max => write_text(out, "max"),
            Self::Times(factor) => Raw(factor.to_string().as_bytes()).write_json(out),
        }
    }
}
