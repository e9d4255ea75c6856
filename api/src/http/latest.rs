//! `GET /latest-by-key`: the latest event of each key.

use super::query::{Query, QueryWriter};
use super::read::write_events;
use crate::error::ParseError;
use crate::write::write_text;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Whose latest event is requested: those of all keys where none is named.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LatestQuery {
    /// The topic.
    pub topic: String,
    /// `key`, as often as there are keys.
    pub keys: Vec<String>,
    /// Only keys that begin with this, where none is named.
    pub prefix: Option<String>,
    /// Only keys behind this one, where none is named.
    pub after: Option<String>,
    /// The most events of one page.
    pub limit: Option<u64>,
    /// Of named keys that were deleted, the event that says so.
    pub tombstones: bool,
}

/// The latest events of some keys.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LatestPage {
    /// The topic.
    pub topic: String,
    /// How many events are here.
    pub count: u64,
    /// The records as they are stored; [`crate::Record::parse`] takes them apart.
    pub events: Vec<Box<RawValue>>,
    /// The key to go on from, with `after`; `null` where there is no more.
    pub next: Option<String>,
}

/// Appends a [`LatestPage`] around stored records.
pub fn write_latest_page<'a>(
    out: &mut Vec<u8>,
    topic: &str,
    events: impl IntoIterator<Item = &'a [u8], IntoIter: ExactSizeIterator>,
    next: Option<&str>,
) {
    write_events(out, topic, events);
    match next {
        Some(next) => write_text(out, next),
        None => out.extend_from_slice(b"null"),
    }
    out.push(b'}');
}

impl LatestQuery {
    /// Reads the query.
    pub fn parse(query: &Query<'_>) -> Result<Self, ParseError> {
        Ok(Self {
            topic: query.required("topic")?.to_owned(),
            keys: query.all("key").map(str::to_owned).collect(),
            prefix: query.get("prefix").map(str::to_owned),
            after: query.get("after").map(str::to_owned),
            limit: query.number("limit")?,
            tombstones: query.flag("tombstones")?.unwrap_or(false),
        })
    }

    /// Writes the query.
    pub fn to_query(&self) -> String {
        let mut query = QueryWriter::default();
        query.push("topic", &self.topic);
        for key in &self.keys {
            query.push("key", key);
        }
        query
            .push_if("prefix", self.prefix.as_ref())
            .push_if("after", self.after.as_ref())
            .push_if("limit", self.limit)
            .push_if("tombstones", self.tombstones.then_some(1))
            .finish()
    }
}
