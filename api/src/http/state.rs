//! `GET /list/:topic`: the states of a topic's keys, those that fit some fields of their payloads.

use super::query::{Query, QueryWriter};
use crate::error::ParseError;
use crate::write::{write_number, write_text};
use prombus_interface::schemas::{EventId, Key, Topic};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Parameters that are not fields of a payload. A field of the same name is requested as `payload.<name>`.
const RESERVED: [&str; 5] = ["offset", "limit", "prefix", "at", "token"];
/// Says that a parameter is a field, whatever its name.
const FIELD_PREFIX: &str = "payload.";

/// Which states are requested.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListQuery {
    /// How many of those that fit are passed over.
    pub offset: Option<u64>,
    /// The most of one page.
    pub limit: Option<u64>,
    /// Only keys that begin with this.
    pub prefix: Option<String>,
    /// The states as they were at this epoch millisecond.
    pub at: Option<u64>,
    /// Paths into the payload, with dots between, and what has to be there. All have to fit.
    pub fields: Vec<(String, String)>,
}

/// The state of a key.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct StateItem {
    /// The key.
    #[schemars(with = "Key")]
    pub key: String,
    /// What its latest event said.
    #[schemars(with = "serde_json::Value")]
    pub payload: Box<RawValue>,
    /// The event's time in epoch milliseconds.
    pub ts: u64,
    /// The event's position.
    pub seq: u64,
    /// The event's id; a state that is known from a snapshot only has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<EventId>")]
    pub id: Option<String>,
}

/// A page of states in the order of their keys.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListPage {
    /// The topic.
    #[schemars(with = "Topic")]
    pub topic: String,
    /// How many keys fit, on all pages together.
    pub total: u64,
    /// How many of them come before this page.
    pub offset: u64,
    /// How many are here.
    pub count: u64,
    /// The states.
    pub items: Vec<StateItem>,
    /// The `offset` of the next page; `null` where there is no more.
    pub next: Option<u64>,
}

impl ListQuery {
    /// Reads the query.
    pub fn parse(query: &Query<'_>) -> Result<Self, ParseError> {
        let field = |(name, value): (&str, &str)| {
            let path = match name.strip_prefix(FIELD_PREFIX) {
                Some(path) => path,
                None if RESERVED.contains(&name) => return None,
                None => name,
            };
            Some((path.to_owned(), value.to_owned()))
        };
        Ok(Self {
            offset: query.number("offset")?,
            limit: query.number("limit")?,
            prefix: query.get("prefix").map(str::to_owned),
            at: query.number("at")?,
            fields: query.pairs().filter_map(field).collect(),
        })
    }

    /// Writes the query.
    pub fn to_query(&self) -> String {
        let mut query = QueryWriter::default();
        query
            .push_if("offset", self.offset)
            .push_if("limit", self.limit)
            .push_if("prefix", self.prefix.as_ref())
            .push_if("at", self.at);
        for (path, value) in &self.fields {
            query.push(&format!("{FIELD_PREFIX}{path}"), value);
        }
        query.finish()
    }
}

/// One state as a server has it.
#[derive(Debug, Clone, Copy)]
pub struct StateText<'a> {
    /// The key.
    pub key: &'a str,
    /// JSON text.
    pub payload: &'a str,
    /// In epoch milliseconds.
    pub ts: u64,
    /// The event's position.
    pub seq: u64,
    /// The event's id, where it is known.
    pub id: Option<&'a str>,
}

/// Appends a [`ListPage`] around payloads as they are stored.
pub fn write_list_page<'a>(
    out: &mut Vec<u8>,
    topic: &str,
    (total, offset): (u64, u64),
    items: impl IntoIterator<Item = StateText<'a>, IntoIter: ExactSizeIterator>,
) {
    let items = items.into_iter();
    let count = items.len() as u64;
    out.extend_from_slice(b"{\"topic\":");
    write_text(out, topic);
    for (name, number) in [("total", total), ("offset", offset), ("count", count)] {
        out.push(b',');
        write_text(out, name);
        out.push(b':');
        write_number(out, number);
    }
    out.extend_from_slice(b",\"items\":[");
    for (at, item) in items.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        item.write(out);
    }
    out.extend_from_slice(b"],\"next\":");
    match offset.saturating_add(count) {
        next if next < total && count > 0 => write_number(out, next),
        _ => out.extend_from_slice(b"null"),
    }
    out.push(b'}');
}

impl StateText<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"key\":");
        write_text(out, self.key);
        out.extend_from_slice(b",\"payload\":");
        out.extend_from_slice(self.payload.as_bytes());
        out.extend_from_slice(b",\"ts\":");
        write_number(out, self.ts);
        out.extend_from_slice(b",\"seq\":");
        write_number(out, self.seq);
        if let Some(id) = self.id {
            out.extend_from_slice(b",\"id\":");
            write_text(out, id);
        }
        out.push(b'}');
    }
}
