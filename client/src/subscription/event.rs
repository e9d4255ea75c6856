//! An event as it was delivered. It shares the text of the message that it came in.

use crate::error::BadValue;
use crate::id::Id;
use prombus_api::frames::EventFrame;
use prombus_api::{ParseError, Record};
use prombus_interface::EventFields;
use serde::Deserialize;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A delivered event. Cloning it is cheap. It keeps the message alive that it came in, with the events beside it; to
/// keep single events for long, copy what is needed of them.
#[derive(Clone)]
pub struct Event {
    message: Arc<str>,
    topic: Arc<str>,
    id: Text,
    key: Option<Text>,
    payload: Span,
    json: Span,
    seq: u64,
    ts: u64,
}

/// A piece of the message.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: u32,
    end: u32,
}

/// A string of the message, which had to be copied where it has escapes.
#[derive(Debug, Clone)]
enum Text {
    Span(Span),
    Owned(Arc<str>),
}

impl Event {
    /// An event that was read from `text`, of which `message` is a copy. `topic` is its topic, which many events share.
    pub(crate) fn new(
        text: &str,
        message: &Arc<str>,
        topic: Arc<str>,
        frame: &EventFrame<'_>,
    ) -> Self {
        let record = &frame.event;
        Self {
            message: message.clone(),
            topic,
            id: Text::of(text, record.id.clone()),
            key: record.key.clone().map(|key| Text::of(text, key)),
            payload: Span::of(text, record.payload),
            json: Span::of(text, frame.event_json),
            seq: record.seq,
            ts: record.ts,
        }
    }

    /// An event from its stored record.
    pub(crate) fn from_record(json: &str) -> Result<Self, ParseError> {
        let record = Record::parse(json)?;
        Ok(Self {
            message: json.into(),
            topic: (*record.topic).into(),
            id: Text::of(json, record.id),
            key: record.key.map(|key| Text::of(json, key)),
            payload: Span::of(json, record.payload),
            json: Span::of(json, json),
            seq: record.seq,
            ts: record.ts,
        })
    }

    /// Its id.
    pub fn id(&self) -> &str {
        self.id.get(&self.message)
    }

    /// Its topic.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// Its position in the topic.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Its time in epoch milliseconds.
    pub fn ts(&self) -> u64 {
        self.ts
    }

    /// Its key.
    pub fn key(&self) -> Option<&str> {
        self.key.as_ref().map(|key| key.get(&self.message))
    }

    /// Its payload, JSON as the publisher wrote it.
    pub fn payload(&self) -> &str {
        self.payload.get(&self.message)
    }

    /// The whole record as JSON.
    pub fn json(&self) -> &str {
        self.json.get(&self.message)
    }

    /// The payload as a value.
    pub fn value<'a, T: Deserialize<'a>>(&'a self) -> Result<T, BadValue> {
        serde_json::from_str(self.payload()).map_err(|error| BadValue {
            why: error.to_string(),
        })
    }

    /// What its publisher said about it: headers, tags and the like.
    pub fn fields(&self) -> EventFields {
        EventFields::from_record(self.json().as_bytes())
    }

    pub(super) fn shared_topic(&self) -> &Arc<str> {
        &self.topic
    }

    /// Its id to be kept, `None` where it is no valid one.
    pub(super) fn kept_id(&self) -> Option<Id> {
        Id::from_client(self.id())
    }
}

impl Span {
    /// The span of a part. Both are slices of the same text, so their addresses tell.
    fn of(message: &str, part: &str) -> Self {
        let start = (part.as_ptr() as usize).wrapping_sub(message.as_ptr() as usize);
        let bound = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Self {
            start: bound(start),
            end: bound(start.wrapping_add(part.len())),
        }
    }

    fn get(self, message: &str) -> &str {
        let range: Range<usize> = self.start as usize..self.end as usize;
        message.get(range).unwrap_or_default()
    }
}

impl Text {
    fn of(message: &str, text: Cow<'_, str>) -> Self {
        match text {
            Cow::Borrowed(text) => Self::Span(Span::of(message, text)),
            Cow::Owned(text) => Self::Owned(text.as_str().into()),
        }
    }

    fn get<'a>(&'a self, message: &'a str) -> &'a str {
        match self {
            Self::Span(span) => span.get(message),
            Self::Owned(text) => text,
        }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({})", self.json())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prombus_api::frames::{ServerFrame, ServerFrames};
    use std::collections::BTreeMap;

    #[test]
    fn an_event_is_read_from_the_message_it_came_in() {
        let text = r##"[{"op":"EVENT","topic":"t","group":"g","event":{"id":"i-1","ts":5,"topic":"t","seq":7,"key":"a\"b","payload":{"x":1.0},"tags":["#a"]},"ctx":{"attempt":1,"ack_deadline_ms":1000}}]"##;
        let message: Arc<str> = text.into();
        let frame = ServerFrames::new(text).next().unwrap().unwrap();
        let ServerFrame::Event(frame) = frame else {
            panic!("{frame:?}");
        };
        let event = Event::new(text, &message, "t".into(), &frame);
        assert_eq!((event.id(), event.seq(), event.ts()), ("i-1", 7, 5));
        assert_eq!(event.key(), Some("a\"b"));
        assert_eq!(event.payload(), r#"{"x":1.0}"#);
        assert!(event.json().starts_with(r#"{"id":"i-1""#));
        assert!(event.json().ends_with(r##""tags":["#a"]}"##));
        assert_eq!(event.fields().tags, ["#a"]);
        let value: BTreeMap<String, f64> = event.value().unwrap();
        assert_eq!(value["x"], 1.0);
        assert!(event.value::<u32>().is_err());
    }
}
