//! The event record as clients see it.

use crate::error::ParseError;
use crate::frames::required;
use crate::scan::{FromJson, ScanError, Scanner};
use crate::write::{ObjectWriter, Raw, ToJson};
use prombus_interface::schemas::{EventId, Key, Topic};
use schemars::JsonSchema;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A stored event.
// Strings are borrowed from the text unless they have escapes.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(extend("required" = ["id", "ts", "topic", "seq", "payload"]))]
pub struct Record<'a> {
    /// UUIDv7 made by the bus, or the publisher's own.
    #[schemars(with = "EventId")]
    pub id: Cow<'a, str>,
    /// Boot or session id of the publisher.
    pub sid: Option<Cow<'a, str>>,
    /// Epoch milliseconds.
    pub ts: u64,
    /// The topic.
    #[schemars(with = "Topic")]
    pub topic: Cow<'a, str>,
    /// The position in the topic, from 1.
    pub seq: u64,
    /// For compaction, ordering and partitioning.
    #[schemars(with = "Option<Key>")]
    pub key: Option<Cow<'a, str>>,
    /// Only where the topic is partitioned.
    pub partition: Option<u32>,
    /// Names and values.
    #[schemars(with = "BTreeMap<String, String>")]
    pub headers: Vec<(String, String)>,
    /// The payload as its publisher wrote it.
    #[schemars(with = "Value")]
    pub payload: &'a str,
    /// Ids of the events that caused this one.
    pub caused_by: Vec<String>,
    /// Free labels.
    pub tags: Vec<String>,
}

impl<'a> Record<'a> {
    /// Reads a record. Its payload is passed on with nothing checked but where it ends.
    pub fn parse(json: &'a str) -> Result<Self, ParseError> {
        let mut scanner = Scanner::new(json);
        let record = Self::from_json(&mut scanner);
        let record = record.and_then(|record| scanner.end().map(|()| record));
        record.map_err(|error| error.parse_error(json))
    }

    /// Appends the record.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_json(out);
    }
}

impl<'a> FromJson<'a> for Record<'a> {
    #[inline]
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let (mut id, mut ts, mut topic, mut seq, mut payload) = (None, None, None, None, None);
        let (mut sid, mut key, mut partition) = (None, None, None);
        let (mut headers, mut caused_by, mut tags) = (Vec::new(), Vec::new(), Vec::new());
        scanner.object(|scanner, name| match name {
            "id" => scanner.fill(&mut id),
            "ts" => scanner.fill(&mut ts),
            "topic" => scanner.fill(&mut topic),
            "seq" => scanner.fill(&mut seq),
            "key" => scanner.fill(&mut key),
            "payload" => {
                payload = Some(scanner.raw()?);
                Ok(())
            }
            "sid" => scanner.fill(&mut sid),
            "headers" => scanner.fill(&mut headers),
            "tags" => scanner.fill(&mut tags),
            "caused_by" => scanner.fill(&mut caused_by),
            "partition" => scanner.fill(&mut partition),
            _ => scanner.ignore(),
        })?;
        Ok(Self {
            id: required(id, "id")?,
            sid,
            ts: required(ts, "ts")?,
            topic: required(topic, "topic")?,
            seq: required(seq, "seq")?,
            key,
            partition,
            headers,
            payload: required(payload, "payload")?,
            caused_by,
            tags,
        })
    }
}

impl ToJson for Record<'_> {
    fn write_json(&self, out: &mut Vec<u8>) {
        ObjectWriter::new(out)
            .field("id", &self.id)
            .field("sid", &self.sid)
            .field("ts", &self.ts)
            .field("topic", &self.topic)
            .field("seq", &self.seq)
            .field("key", &self.key)
            .field("partition", &self.partition)
            .field("headers", &self.headers)
            .field("payload", &Raw(self.payload.as_bytes()))
            .field("caused_by", &self.caused_by)
            .field("tags", &self.tags)
            .end();
    }
}
