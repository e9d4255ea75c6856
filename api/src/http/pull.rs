//! `POST /pull`: consuming without a socket.

use crate::frames::{DeliveryContext, required, write_context};
use crate::options::{Position, PositionParts};
use crate::scan::{FromJson, ScanError, Scanner};
use crate::write::{ObjectWriter, ToJson, write_list, write_number, write_text};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The body of `POST /pull`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pull {
    /// The topic.
    pub topic: String,
    /// The group.
    pub group: String,
    /// The most events.
    pub max: Option<usize>,
    /// How long to wait for the first.
    pub wait_ms: Option<u64>,
    /// `ackTimeoutMs`: how long the leases are.
    pub ack_timeout_ms: Option<u64>,
    /// Where a new group begins: `from` with `ts`, `afterId` or `seq`.
    pub start: Option<Position>,
    /// Events of earlier versions of their topic's schema come as ones of the latest.
    pub upcast: Option<bool>,
}

/// The reply of `POST /pull`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pulled {
    /// The topic.
    pub topic: String,
    /// The group.
    pub group: String,
    /// How many events are here.
    pub count: u64,
    /// The events with their leases.
    pub events: Vec<Delivery>,
}

/// An event with its lease, as in an EVENT frame.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Delivery {
    /// The record; [`crate::Record::parse`] takes it apart.
    pub event: Box<RawValue>,
    /// The circumstances.
    pub ctx: Context,
}

/// The circumstances of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// The number of this delivery of the event, from 1.
    pub attempt: u32,
    /// `maxAttempts`: after how many failed deliveries it is a dead letter.
    #[serde(rename = "maxAttempts", default)]
    pub max_attempts: u32,
    /// How long the lease is.
    pub ack_deadline_ms: u64,
}

/// Appends a [`Pulled`] around stored records.
pub fn write_pulled<'a>(
    out: &mut Vec<u8>,
    topic: &str,
    group: &str,
    events: impl IntoIterator<Item = (&'a [u8], Context), IntoIter: ExactSizeIterator>,
) {
    let events = events.into_iter();
    out.extend_from_slice(b"{\"topic\":");
    write_text(out, topic);
    out.extend_from_slice(b",\"group\":");
    write_text(out, group);
    out.extend_from_slice(b",\"count\":");
    write_number(out, events.len() as u64);
    out.extend_from_slice(b",\"events\":");
    write_list(out, events, |out, (event, context)| {
        out.extend_from_slice(b"{\"event\":");
        out.extend_from_slice(event);
        out.extend_from_slice(b",\"ctx\":");
        let context = DeliveryContext {
            attempt: context.attempt,
            max_attempts: context.max_attempts,
            ack_deadline_ms: context.ack_deadline_ms,
        };
        write_context(out, context);
        out.push(b'}');
    });
    out.push(b'}');
}

impl<'a> FromJson<'a> for Pull {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let (mut topic, mut group) = (None, None);
        let (mut max, mut wait_ms, mut ack_timeout_ms) = (None, None, None);
        let mut upcast = None;
        let mut start = PositionParts::default();
        scanner.object(|scanner, name| match name {
            "topic" => scanner.fill(&mut topic),
            "group" => scanner.fill(&mut group),
            "max" => scanner.fill(&mut max),
            "wait_ms" => scanner.fill(&mut wait_ms),
            "ackTimeoutMs" => scanner.fill(&mut ack_timeout_ms),
            "upcast" => scanner.fill(&mut upcast),
            _ => match start.take(scanner, name) {
                Some(taken) => taken,
                None => {
                    let own: &[&str] =
                        &["topic", "group", "max", "wait_ms", "ackTimeoutMs", "upcast"];
                    let known = [own, &PositionParts::FIELDS].concat();
                    Err(ScanError::unknown(name, &known, &[]))
                }
            },
        })?;
        Ok(Self {
            topic: required(topic, "topic")?,
            group: required(group, "group")?,
            max,
            wait_ms,
            ack_timeout_ms,
            start: start.position()?,
            upcast,
        })
    }
}

impl ToJson for Pull {
    fn write_json(&self, out: &mut Vec<u8>) {
        let mut object = ObjectWriter::new(out);
        object
            .field("topic", &self.topic)
            .field("group", &self.group)
            .field("max", &self.max)
            .field("wait_ms", &self.wait_ms)
            .field("ackTimeoutMs", &self.ack_timeout_ms);
        if let Some(start) = &self.start {
            start.write(&mut object);
        }
        object.field("upcast", &self.upcast);
        object.end();
    }
}
