//! EVENT: a delivery. The stored record goes out as it is.

use super::required;
use crate::record::Record;
use crate::scan::{FromJson, ScanError, Scanner};
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
    /// After how many failed deliveries it is a dead letter; a server of before does not say.
    pub max_attempts: Option<u32>,
    /// How long the lease is.
    pub ack_deadline_ms: u64,
    /// The group is a shadow.
    pub shadow: bool,
}

/// Appends an EVENT. `event_json` is the stored record.
#[inline]
pub fn write_event(
    out: &mut Vec<u8>,
    topic: &str,
    group: &str,
    event_json: &[u8],
    context: DeliveryContext,
) {
    out.reserve(topic.len() + group.len() + event_json.len() + EVENT_OVERHEAD_BYTES);
    out.extend_from_slice(b"{\"op\":\"EVENT\",\"topic\":");
    write_text(out, topic);
    out.extend_from_slice(b",\"group\":");
    write_text(out, group);
    out.extend_from_slice(b",\"event\":");
    out.extend_from_slice(event_json);
    out.extend_from_slice(b",\"ctx\":");
    write_context(out, context);
    out.push(b'}');
}

/// About what an EVENT has beside its names and the record.
const EVENT_OVERHEAD_BYTES: usize = 136;

/// The circumstances of a delivery as the server reports them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryContext {
    /// The number of this delivery of the event, from 1.
    pub attempt: u32,
    /// After how many failed deliveries it is a dead letter.
    pub max_attempts: u32,
    /// How long the lease is.
    pub ack_deadline_ms: u64,
    /// The group is a shadow, which is fed what another group gets.
    pub shadow: bool,
}

/// Appends the circumstances of a delivery.
pub(crate) fn write_context(out: &mut Vec<u8>, context: DeliveryContext) {
    out.extend_from_slice(b"{\"attempt\":");
    write_number(out, u64::from(context.attempt));
    out.extend_from_slice(b",\"maxAttempts\":");
    write_number(out, u64::from(context.max_attempts));
    out.extend_from_slice(b",\"ack_deadline_ms\":");
    write_number(out, context.ack_deadline_ms);
    if context.shadow {
        out.extend_from_slice(b",\"shadow\":true");
    }
    out.push(b'}');
}

/// The circumstances of a delivery.
struct Context {
    attempt: u32,
    max_attempts: Option<u32>,
    ack_deadline_ms: u64,
    shadow: bool,
}

impl<'a> FromJson<'a> for Context {
    #[inline]
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let (mut attempt, mut max_attempts, mut ack_deadline_ms) = (None, None, None);
        let mut shadow = false;
        scanner.object(|scanner, name| match name {
            "attempt" => scanner.fill(&mut attempt),
            "maxAttempts" => scanner.fill(&mut max_attempts),
            "ack_deadline_ms" => scanner.fill(&mut ack_deadline_ms),
            "shadow" => scanner.fill(&mut shadow),
            _ => scanner.ignore(),
        })?;
        Ok(Self {
            attempt: required(attempt, "attempt")?,
            max_attempts,
            ack_deadline_ms: required(ack_deadline_ms, "ack_deadline_ms")?,
            shadow,
        })
    }
}

impl<'a> EventFrame<'a> {
    #[inline]
    pub(super) fn read(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
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
            max_attempts: context.max_attempts,
            ack_deadline_ms: context.ack_deadline_ms,
            shadow: context.shadow,
        })
    }
}
