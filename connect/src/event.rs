//! An event as projectors see it, wherever it comes from.

use crate::error::BadRecord;
use prombus::{StoredEvent, is_tombstone};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::Range;

/// An event. Cloning one that comes from the bus in process copies no bytes.
#[derive(Debug, Clone)]
pub struct Event(Origin);

#[derive(Debug, Clone)]
enum Origin {
    Stored(StoredEvent),
    Record(Box<ReadRecord>),
}

/// A record that came as text.
#[derive(Debug, Clone)]
struct ReadRecord {
    json: Box<str>,
    id: Box<str>,
    ts: u64,
    topic: Box<str>,
    seq: u64,
    key: Option<Box<str>>,
    /// Where the payload is in `json`.
    payload: Range<usize>,
}

/// The fields that are looked at; the others stay text.
#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    ts: u64,
    #[serde(borrow)]
    topic: Cow<'a, str>,
    seq: u64,
    #[serde(borrow)]
    key: Option<Cow<'a, str>>,
    #[serde(borrow)]
    payload: &'a RawValue,
}

impl Event {
    /// Reads an event's record, as `/replay` and `/export` write it.
    pub fn from_json(json: impl Into<Box<str>>) -> Result<Self, BadRecord> {
        let json = json.into();
        let fields: Fields<'_> = serde_json::from_str(&json).map_err(|error| BadRecord {
            why: error.to_string(),
        })?;
        let text = fields.payload.get();
        let start = text.as_ptr().addr() - json.as_ptr().addr();
        let record = ReadRecord {
            id: fields.id.into(),
            ts: fields.ts,
            topic: fields.topic.into(),
            seq: fields.seq,
            key: fields.key.map(Box::from),
            payload: start..start + text.len(),
            json,
        };
        Ok(Self(Origin::Record(Box::new(record))))
    }

    /// Its id.
    pub fn id(&self) -> Cow<'_, str> {
        match &self.0 {
            Origin::Stored(event) => event.id(),
            Origin::Record(record) => Cow::Borrowed(&record.id),
        }
    }

    /// Its time in epoch milliseconds.
    pub fn ts(&self) -> u64 {
        match &self.0 {
            Origin::Stored(event) => event.ts(),
            Origin::Record(record) => record.ts,
        }
    }

    /// Its topic.
    pub fn topic(&self) -> &str {
        match &self.0 {
            Origin::Stored(event) => event.topic(),
            Origin::Record(record) => &record.topic,
        }
    }

    /// Its position in the topic.
    pub fn seq(&self) -> u64 {
        match &self.0 {
            Origin::Stored(event) => event.seq(),
            Origin::Record(record) => record.seq,
        }
    }

    /// Its key.
    pub fn key(&self) -> Option<Cow<'_, str>> {
        match &self.0 {
            Origin::Stored(event) => event.key(),
            Origin::Record(record) => record.key.as_deref().map(Cow::Borrowed),
        }
    }

    /// Its payload as JSON.
    pub fn payload(&self) -> &str {
        match &self.0 {
            Origin::Stored(event) => event.payload(),
            Origin::Record(record) => &record.json[record.payload.clone()],
        }
    }

    /// Its payload as a value.
    pub fn value<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.payload())
    }

    /// Whether it says that its key is gone.
    pub fn is_tombstone(&self) -> bool {
        match &self.0 {
            Origin::Stored(event) => event.is_tombstone(),
            Origin::Record(_) => is_tombstone(self.payload()),
        }
    }

    /// The whole record as JSON.
    pub fn json(&self) -> &str {
        match &self.0 {
            Origin::Stored(event) => event.json(),
            Origin::Record(record) => &record.json,
        }
    }
}

impl From<StoredEvent> for Event {
    fn from(event: StoredEvent) -> Self {
        Self(Origin::Stored(event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_whole() {
        let text = r#"{"id":"a","ts":5,"topic":"t","seq":7,"key":"k\n","headers":{"x-a":"b"},"payload":{"n": 1.50}}"#;
        let event = Event::from_json(text).expect("a record");
        assert_eq!(
            (&*event.id(), event.ts(), event.topic(), event.seq()),
            ("a", 5, "t", 7)
        );
        assert_eq!(event.key().as_deref(), Some("k\n"));
        assert_eq!(event.payload(), r#"{"n": 1.50}"#);
        assert_eq!(event.json(), text);
        assert!(!event.is_tombstone());
    }

    #[test]
    fn tombstones_are_told_and_nonsense_is_refused() {
        for payload in ["null", r#"{"_deleted":true}"#] {
            let text = format!(r#"{{"id":"a","ts":5,"topic":"t","seq":7,"payload":{payload}}}"#);
            assert!(Event::from_json(text).expect("a record").is_tombstone());
        }
        for text in [
            "",
            "{}",
            r#"{"id":"a","ts":-5,"topic":"t","seq":7,"payload":1}"#,
        ] {
            assert!(Event::from_json(text).is_err(), "{text}");
        }
    }
}
