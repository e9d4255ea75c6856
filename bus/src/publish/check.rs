//! The limits of an event's fields.

use super::PublishOptions;
use crate::error::{
    BadCause, BadHeader, BadId, BadKey, BadSid, BadTag, BadTs, PublishError, quoted,
};
use crate::options::Limits;
use prombus_store::{Draft, Id, MAX_ID_BYTES};

/// The largest integer that every JSON reader keeps exactly.
const MAX_TS: u64 = (1 << 53) - 1;
/// Payloads, without whitespace, that say a key is gone.
const TOMBSTONES: [&str; 2] = ["null", r#"{"_deleted":true}"#];

/// Whether a payload, as the bus stores it, says that its key is gone.
pub fn is_tombstone(payload: &str) -> bool {
    TOMBSTONES.contains(&payload)
}

/// Checks everything but the payload, and drafts the event.
pub(crate) fn draft<'a>(
    limits: &Limits,
    payload: &'a str,
    options: &PublishOptions<'a>,
) -> Result<Draft<'a>, PublishError> {
    let id = match options.id {
        Some(id) => Some(Id::own(id).ok_or_else(|| BadId::new(id))?),
        None => None,
    };
    if let Some(ts) = options.ts.filter(|&ts| ts > MAX_TS) {
        return Err(BadTs { ts }.into());
    }
    if let Some(key) = options.key.filter(|key| key.len() > limits.max_key_bytes) {
        let (bytes, limit) = (key.len(), limits.max_key_bytes);
        return Err(BadKey { bytes, limit }.into());
    }
    if let Some(sid) = options.sid {
        let (bytes, limit) = (sid.len(), limits.max_sid_bytes);
        if !(1..=limit).contains(&bytes) {
            return Err(BadSid { bytes, limit }.into());
        }
    }
    check_headers(limits, options.headers)?;
    if !fits(options.tags, limits.max_tags, limits.max_tag_bytes) {
        let (max_items, max_bytes) = (limits.max_tags, limits.max_tag_bytes);
        return Err(BadTag {
            max_items,
            max_bytes,
        }
        .into());
    }
    if !fits(options.caused_by, limits.max_causes, MAX_ID_BYTES) {
        let (max_items, max_bytes) = (limits.max_causes, MAX_ID_BYTES);
        return Err(BadCause {
            max_items,
            max_bytes,
        }
        .into());
    }
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
    })
}

fn check_headers(limits: &Limits, headers: &[(String, String)]) -> Result<(), BadHeader> {
    let (count, limit) = (headers.len(), limits.max_headers);
    if count > limit {
        return Err(BadHeader::TooMany { count, limit });
    }
    let bytes: usize = headers
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    let limit = limits.max_header_bytes;
    if bytes > limit {
        return Err(BadHeader::TooLong { bytes, limit });
    }
    for (at, (name, _)) in headers.iter().enumerate() {
        if name.is_empty() {
            return Err(BadHeader::NoName);
        }
        if headers[..at].iter().any(|(earlier, _)| earlier == name) {
            return Err(BadHeader::Twice { name: quoted(name) });
        }
    }
    Ok(())
}

fn fits(items: &[String], max_items: usize, max_bytes: usize) -> bool {
    items.len() <= max_items
        && items
            .iter()
            .all(|item| (1..=max_bytes).contains(&item.len()))
}
