//! The limits of an event's fields.

use super::PublishOptions;
use crate::error::{InvalidField, PublishError, TooLarge};
use crate::json;
use crate::options::Limits;
use prombus_interface::quoted;
use prombus_store::{Draft, ExpectedPosition, Id, MAX_ID_BYTES};
use std::borrow::Cow;

/// The largest integer that every JSON reader keeps exactly.
pub(crate) const MAX_TS: u64 = (1 << 53) - 1;
/// Payloads, without whitespace, that say a key is gone.
const TOMBSTONES: [&str; 2] = ["null", r#"{"_deleted":true}"#];

/// Whether a payload, as the bus stores it, says that its key is gone.
pub fn is_tombstone(payload: &str) -> bool {
    TOMBSTONES.contains(&payload)
}

/// A payload as the bus stores it.
pub(crate) struct Payload<'a> {
    pub(crate) text: Cow<'a, str>,
    /// Whether it is known to fit the schema of its topic.
    pub(crate) fits: bool,
}

/// The payload as the bus stores it: JSON without insignificant whitespace, within the limit of its topic. `fits_compact`
/// says whether a text is known to be that already because it was held against a schema, which reads all of it.
pub(crate) fn checked_payload<'a>(
    limits: &Limits,
    topic: &str,
    payload: &'a str,
    fits_compact: impl FnOnce(&str) -> bool,
) -> Result<Payload<'a>, PublishError> {
    // Whitespace may go, but a text far over the limit is not worth scanning.
    let limit = limits.payload_bytes_of(topic);
    let bytes = payload.len();
    if bytes > limit.saturating_mul(2) {
        return Err(TooLarge::bytes("payload", bytes, limit).into());
    }
    if bytes <= limit && fits_compact(payload) {
        let text = Cow::Borrowed(payload);
        return Ok(Payload { text, fits: true });
    }
    let payload = json::compact(payload)?;
    let bytes = payload.len();
    if bytes > limit {
        return Err(TooLarge::bytes("payload", bytes, limit).into());
    }
    Ok(Payload {
        text: payload,
        fits: false,
    })
}

/// Checks everything but the payload, and drafts the event.
pub(crate) fn draft<'a>(
    limits: &Limits,
    payload: &'a str,
    options: &PublishOptions<'a>,
) -> Result<Draft<'a>, PublishError> {
    let id = match options.id {
        // One with blanks at its ends looks like another in logs and queries.
        Some(id) if id.starts_with(' ') || id.ends_with(' ') => {
            return Err(InvalidField::id(id).into());
        }
        Some(id) => Some(Id::from_client(id).ok_or_else(|| InvalidField::id(id))?),
        None => None,
    };
    if let Some(ts) = options.ts.filter(|&ts| ts > MAX_TS) {
        let reason =
            format!("{ts} exceeds {MAX_TS}, the largest integer that every JSON reader keeps");
        return Err(InvalidField::new("ts", reason).into());
    }
    if let Some(key) = options.key.filter(|key| key.len() > limits.max_key_bytes) {
        return Err(TooLarge::bytes("key", key.len(), limits.max_key_bytes).into());
    }
    if let Some(sid) = options.sid {
        let (bytes, limit) = (sid.len(), limits.max_sid_bytes);
        if !(1..=limit).contains(&bytes) {
            let reason = format!("{bytes} bytes, expected 1 to {limit}");
            return Err(InvalidField::new("sid", reason).into());
        }
    }
    if options.expect_key_seq.is_some() && options.key.is_none() {
        return Err(InvalidField::new("expect_key_seq", "the event has no key").into());
    }
    check_headers(limits, options.headers)?;
    check_list("tags", options.tags, limits.max_tags, limits.max_tag_bytes)?;
    check_list(
        "caused_by",
        options.caused_by,
        limits.max_causes,
        MAX_ID_BYTES,
    )?;
    Ok(Draft {
        id,
        ts: options.ts,
        sid: options.sid,
        key: options.key,
        partition: None,
        headers: options.headers,
        payload,
        caused_by: options.caused_by,
        tags: options.tags,
        tombstone: is_tombstone(payload),
        expected: ExpectedPosition {
            seq: options.expect_seq,
            key_seq: options.expect_key_seq,
        },
    })
}

fn check_headers(limits: &Limits, headers: &[(String, String)]) -> Result<(), PublishError> {
    let (count, limit) = (headers.len(), limits.max_headers);
    if count > limit {
        return Err(TooLarge {
            field: "headers",
            size: count,
            limit,
            unit: "entries",
        }
        .into());
    }
    let bytes: usize = headers
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    if bytes > limits.max_header_bytes {
        return Err(TooLarge::bytes("headers", bytes, limits.max_header_bytes).into());
    }
    for (at, (name, _)) in headers.iter().enumerate() {
        if name.is_empty() {
            return Err(InvalidField::new("headers", "a name is empty").into());
        }
        if headers[..at].iter().any(|(earlier, _)| earlier == name) {
            let reason = format!("duplicate name {:?}", quoted(name));
            return Err(InvalidField::new("headers", reason).into());
        }
    }
    Ok(())
}

fn check_list(
    field: &'static str,
    items: &[String],
    max_items: usize,
    max_bytes: usize,
) -> Result<(), InvalidField> {
    let is_valid = |item: &String| (1..=max_bytes).contains(&item.len());
    if items.len() <= max_items && items.iter().all(is_valid) {
        return Ok(());
    }
    let reason = format!("expected up to {max_items} items of 1 to {max_bytes} bytes");
    Err(InvalidField::new(field, reason))
}
