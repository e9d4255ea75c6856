//! EVENT: a delivery. The stored record goes out as it is.

use super::required;
use crate::record::Record;
use crate::scan::{Fault, FromJson, Scanner};
use crate::write::{write_number, write_text};
use std::borrow::Cow;

/// An event that is leased to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFrame<'a> {
    /// The topic.
    pub topic: Cow<'a, str>,
    /// The group.
    pub group: Cow<'a, str>,
    /// The record.
    pub event: Record<'a>,
    /// The record as it was written.
    pub event_json: &'a str,
    /// The number of this delivery of the event, from 1.
    pub attempt: u32,
    /// How long the lease is.
    pub ack_deadline_ms: u64,
}

/// Appends an EVENT. `event_json` is the stored record.
#[inline]
pub fn write_event(
    out: &mut Vec<u8>,
    topic: &str,
    group: &str,
    event_json: &[u8],
    attempt: u32,
    ack_deadline_ms: u64,
) {
    out.reserve(topic.len() + group.len() + event_json.len() + EVENT_OVERHEAD_BYTES);
    out.extend_from_slice(b"{\"op\":\"EVENT\",\"topic\":");
    write_text(out, topic);
    out.extend_from_slice(b",\"group\":");
    write_text(out, group);
    out.extend_from_slice(b",\"event\":");
    out.extend_from_slice(event_json);
    out.extend_from_slice(b",\"ctx\":");
    write_context(out, attempt, ack_deadline_ms);
    out.push(b'}');
}

/// About what an EVENT has beside its names and the record.
const EVENT_OVERHEAD_BYTES: usize = 112;

/// Appends the circumstances of a delivery.
pub(crate) fn write_context(out: &mut Vec<u8>, attempt: u32, ack_deadline_ms: u64) {
    out.extend_from_slice(b"{\"attempt\":");
    write_number(out, u64::from(attempt));
    out.extend_from_slice(b",\"ack_deadline_ms\":");
    write_number(out, ack_deadline_ms);
    out.push(b'}');
}

/// The circumstances of a delivery.
struct Context {
    attempt: u32,
    ack_deadline_ms: u64,
}

impl<'a> FromJson<'a> for Context {
    #[inline]
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, Fault> {
        let (mut attempt, mut ack_deadline_ms) = (None, None);
        scanner.object(|scanner, name| match name {
            "attempt" => scanner.fill(&mut attempt),
            "ack_deadline_ms" => scanner.fill(&mut ack_deadline_ms),
            _ => scanner.ignore(),
        })?;
        Ok(Self {
            attempt: required(attempt, "attempt")?,
            ack_deadline_ms: required(ack_deadline_ms, "ack_deadline_ms")?,
        })
    }
}

impl<'a> EventFrame<'a> {
    #[inline]
    pub(super) fn read(scanner: &mut Scanner<'a>) -> Result<Self, Fault> {
        let (mut topic, mut group) = (None, None);
        let (mut event, mut context) = (None, None);
        scanner.object(|scanner, name| match name {
            "topic" => scanner.fill(&mut topic),
            "group" => scanner.fill(&mut group),
            "event" => {
                let start = *scanner;
                let record = Record::from_json(scanner)?;
                event = Some((record, scanner.since(&start)));
                Ok(())
            }
            "ctx" => scanner.fill(&mut context),
            _ => scanner.ignore(),
        })?;
        let (event, event_json) = required(event, "event")?;
        let context: Context = required(context, "ctx")?;
        Ok(Self {
            topic: required(topic, "topic")?,
            group: required(group, "group")?,
            event,
            event_json,
            attempt: context.attempt,
            ack_deadline_ms: context.ack_deadline_ms,
        })
    }
}
