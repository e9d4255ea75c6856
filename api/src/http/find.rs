//! `GET /find`: events by header or by cause.

use super::query::{Query, QueryWriter};
use crate::code::Code;
use crate::error::ParseError;
use crate::record::Record;
use crate::write::{write_list, write_number, write_text};
use prombus_interface::schemas::Topic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// What is looked for, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindQuery {
    /// The topic.
    pub topic: String,
    /// `header=name:value` or `caused_by=ID`.
    pub by: FindBy,
    /// `after_seq`: only events behind this position, to read the next page.
    pub after_seq: Option<u64>,
    /// The most events of one page.
    pub limit: Option<u64>,
}

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FindBy {
    /// Events with this value of a header.
    Header {
        /// The name of the header.
        name: String,
        /// Its value.
        value: String,
    },
    /// Events that name this id in `caused_by`.
    CausedBy(String),
}

/// The reply of `GET /find`: events with a header or a cause.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FindPage {
    /// The topic.
    #[schemars(with = "Topic")]
    pub topic: String,
    /// The first position that the index covers.
    pub from_seq: u64,
    /// How many events are here.
    pub count: u64,
    /// The records in the order of positions.
    // As they are stored; `Record::parse` takes them apart.
    #[schemars(with = "Vec<Record>")]
    pub events: Vec<Box<RawValue>>,
    /// The `after_seq` of the next page; `null` where there is none.
    pub next: Option<u64>,
}

impl FindQuery {
    /// Reads the query.
    pub fn parse(query: &Query<'_>) -> Result<Self, ParseError> {
        let bad = |message: &str| ParseError::new(Code::BadFrame, message);
        let by = match (query.get("header"), query.get("caused_by")) {
            (Some(header), None) => {
                let pair = header.split_once(':').filter(|(name, _)| !name.is_empty());
                let (name, value) = pair.ok_or_else(|| bad("header: expected name:value"))?;
                FindBy::Header {
                    name: name.to_owned(),
                    value: value.to_owned(),
                }
            }
            (None, Some(id)) => FindBy::CausedBy(id.to_owned()),
            _ => return Err(bad("one of header and caused_by is required")),
        };
        Ok(Self {
            topic: query.required("topic")?.to_owned(),
            by,
            after_seq: query.number("after_seq")?,
            limit: query.number("limit")?,
        })
    }

    /// Writes the query.
    pub fn to_query(&self) -> String {
        let mut query = QueryWriter::default();
        query.push("topic", &self.topic);
        match &self.by {
            FindBy::Header { name, value } => query.push("header", &format!("{name}:{value}")),
            FindBy::CausedBy(id) => query.push("caused_by", id),
        };
        query
            .push_if("after_seq", self.after_seq)
            .push_if("limit", self.limit)
            .finish()
    }
}

/// Appends a [`FindPage`] around stored records.
pub fn write_find_page<'a>(
    out: &mut Vec<u8>,
    topic: &str,
    from_seq: u64,
    events: impl IntoIterator<Item = &'a [u8], IntoIter: ExactSizeIterator>,
    next: Option<u64>,
) {
    let events = events.into_iter();
    out.extend_from_slice(b"{\"topic\":");
    write_text(out, topic);
    out.extend_from_slice(b",\"from_seq\":");
    write_number(out, from_seq);
    out.extend_from_slice(b",\"count\":");
    write_number(out, events.len() as u64);
    out.extend_from_slice(b",\"events\":");
    write_list(out, events, |out, event| out.extend_from_slice(event));
    out.extend_from_slice(b",\"next\":");
    match next {
        Some(next) => write_number(out, next),
        None => out.extend_from_slice(b"null"),
    }
    out.push(b'}');
}
