//! Reading stored events: `/replay`, `/export`, `/sse` and `/dlq`.

use super::query::{Query, QueryWriter, query};
use crate::error::ParseError;
use crate::record::Record;
use crate::write::{write_list, write_number, write_text};
use prombus_interface::StartAt;
use prombus_interface::schemas::Topic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

query! {
    /// From where a topic is read: `/replay`, `/sse` and `/dlq`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ReadQuery {
        /// The topic.
        pub topic: String,
        /// The first event; each route has its own default.
        pub start: Option<StartAt>,
        /// The most events of one page.
        pub limit: Option<u64>,
        /// Events of earlier versions of their topic's schema come as ones of the latest: `/replay` and `/sse`.
        pub upcast: bool,
    }
}

/// What is exported: every event with `from_ts <= ts <= to_ts`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportQuery {
    /// The topic.
    pub topic: String,
    /// `fromTs`: the earliest time.
    pub from_ts: Option<u64>,
    /// `toTs`: the latest time.
    pub to_ts: Option<u64>,
    /// A record on each line; otherwise an array.
    pub ndjson: bool,
    /// `afterId`: only what comes after this event in the export's order.
    pub after_id: Option<String>,
    /// Only events with this key.
    pub key: Option<String>,
    /// Events of earlier versions of their topic's schema come as ones of the latest.
    pub upcast: bool,
}

/// Some events of a topic.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct EventPage {
    /// The topic.
    #[schemars(with = "Topic")]
    pub topic: String,
    /// How many events are here.
    pub count: u64,
    /// The records.
    // As they are stored; `Record::parse` takes them apart.
    #[schemars(with = "Vec<Record>")]
    pub events: Vec<Box<RawValue>>,
    /// The position to go on from, with `from=seq`; `null` where there is no more.
    pub next: Option<u64>,
}

/// Appends an [`EventPage`] around stored records.
pub fn write_event_page<'a>(
    out: &mut Vec<u8>,
    topic: &str,
    events: impl IntoIterator<Item = &'a [u8], IntoIter: ExactSizeIterator>,
    next: Option<u64>,
) {
    write_events(out, topic, events);
    match next {
        Some(next) => write_number(out, next),
        None => out.extend_from_slice(b"null"),
    }
    out.push(b'}');
}

/// A page up to the value of `next`.
pub(super) fn write_events<'a>(
    out: &mut Vec<u8>,
    topic: &str,
    events: impl IntoIterator<Item = &'a [u8], IntoIter: ExactSizeIterator>,
) {
    let events = events.into_iter();
    out.extend_from_slice(b"{\"topic\":");
    write_text(out, topic);
    out.extend_from_slice(b",\"count\":");
    write_number(out, events.len() as u64);
    out.extend_from_slice(b",\"events\":");
    write_list(out, events, |out, event| out.extend_from_slice(event));
    out.extend_from_slice(b",\"next\":");
}

impl ExportQuery {
    /// Reads the query.
    pub fn parse(query: &Query<'_>) -> Result<Self, ParseError> {
        Ok(Self {
            topic: query.required("topic")?.to_owned(),
            from_ts: query.number("fromTs")?,
            to_ts: query.number("toTs")?,
            ndjson: query.flag("ndjson")?.unwrap_or(true),
            after_id: query.get("afterId").map(str::to_owned),
            key: query.get("key").map(str::to_owned),
            upcast: query.flag("upcast")?.unwrap_or(false),
        })
    }

    /// Writes the query.
    pub fn to_query(&self) -> String {
        QueryWriter::default()
            .push("topic", &self.topic)
            .push_if("fromTs", self.from_ts)
            .push_if("toTs", self.to_ts)
            .push("ndjson", if self.ndjson { "1" } else { "0" })
            .push_if("afterId", self.after_id.as_ref())
            .push_if("key", self.key.as_ref())
            .push_if("upcast", self.upcast.then_some(1))
            .finish()
    }
}
