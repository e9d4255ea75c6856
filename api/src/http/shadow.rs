//! `POST /groups/shadow`: a throwaway group that is fed a stretch of a topic again.

use super::age::Age;
use crate::options::PositionParts;
use crate::scan::{FromJson, ScanError, Scanner, object};
use crate::write::{Raw, ToJson, write_text};
use prombus_interface::StartAt;
use prombus_interface::schemas::{self, Group, Topic};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

object! {
    /// The body of `POST /groups/shadow`: the group whose settings a shadow has, and what it is fed: from the oldest
    /// event unless `from` says otherwise.
    #[derive(Debug, Clone, PartialEq, JsonSchema)]
    pub struct Shadow {
        /// The topic.
        #[schemars(with = "Topic")]
        pub topic: String,
        /// The group whose settings it has.
        #[schemars(with = "Group")]
        pub group: String,
        /// The first event: `from` with `ts`, `afterId` or `seq`.
        #[schemars(flatten, with = "PositionParts")]
        pub start: Option<StartAt>,
        /// The last position; without it the group follows the topic.
        pub to: Option<u64>,
        /// With the time between events that there was (`original`, the default), as fast as its members take them
        /// (`max`), or that much faster than the original.
        #[schemars(with = "Option<schemas::Pace>")]
        pub pace: Option<Pace>,
        /// After how long it is gone, such as `30m`; `1h` by default.
        pub ttl: Option<Age>,
    }
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

/// The reply of `POST /groups/shadow`: a shadow group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShadowReply {
    /// The topic.
    #[schemars(with = "Topic")]
    pub topic: String,
    /// The name of the new group, by which members subscribe.
    #[schemars(with = "Group")]
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
