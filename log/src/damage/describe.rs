//! Reading from bad bytes which events they were: the JSON in them usually still tells.

use crate::files::File;
use prombus_store::{Damage, DamageKind, DamagedEvent, MAX_NAMED};
use std::io;
use std::ops::Range;

/// No id, topic or position is longer in a damaged event.
const MAX_TEXT_BYTES: usize = 256;
/// What every event's JSON starts with.
const ID_MARK: &[u8] = br#"{"id":""#;

/// Describes a bad stretch of a segment's file.
pub(crate) fn read_damage(segment: u64, file: &dyn File, range: Range<u64>) -> io::Result<Damage> {
    let mut bytes = vec![0; (range.end - range.start) as usize];
    let read = file.read_at(&mut bytes, range.start)?;
    bytes.truncate(read);
    Ok(describe(segment, range.start, &bytes))
}

/// Describes the bad bytes of a segment.
pub(crate) fn describe(segment: u64, from: u64, bytes: &[u8]) -> Damage {
    let starts: Vec<usize> = (0..bytes.len())
        .filter(|&at| starts_event(&bytes[at..]))
        .collect();
    let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
    let events = starts.iter().zip(ends).map(|(&start, end)| {
        let event = &bytes[start..end];
        let topic = text_after(event, br#","topic":""#, b'"');
        let seq = text_after(event, br#"","seq":"#, b',').and_then(|seq| seq.parse().ok());
        DamagedEvent {
            topic,
            seq,
            id: text_before(&event[ID_MARK.len()..], b'"'),
        }
    });
    Damage {
        from,
        to: from + bytes.len() as u64,
        events: events.take(MAX_NAMED).collect(),
        more: starts.len().saturating_sub(MAX_NAMED) as u64,
        ..Damage::of(DamageKind::Corrupt, segment)
    }
}

fn find_first(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// Whether an event's JSON starts here. If one byte of its mark is damaged, what follows the id has to prove it.
fn starts_event(bytes: &[u8]) -> bool {
    let Some((mark, rest)) = bytes.split_at_checked(ID_MARK.len()) else {
        return false;
    };
    let wrong = mark.iter().zip(ID_MARK).filter(|(is, was)| is != was);
    match wrong.count() {
        0 => true,
        1 => {
            let behind = rest
                .iter()
                .take(MAX_TEXT_BYTES)
                .position(|&byte| byte == b'"');
            let behind = behind.map_or(&[][..], |end| &rest[end..]);
            behind.starts_with(br#"","ts":"#) || behind.starts_with(br#"","sid":"#)
        }
        _ => false,
    }
}

/// The text between `before` and `end`, if it is short.
fn text_after(bytes: &[u8], before: &[u8], end: u8) -> Option<String> {
    let start = find_first(bytes, before)? + before.len();
    text_before(&bytes[start..], end)
}

/// The printable text up to `end`, or up to where damage made that something else.
fn text_before(bytes: &[u8], end: u8) -> Option<String> {
    let mut shown = bytes.iter().take(MAX_TEXT_BYTES);
    let length = shown.position(|&byte| byte == end || !(0x20..0x7f).contains(&byte))?;
    let text = std::str::from_utf8(&bytes[..length]).ok()?;
    Some(text.to_owned())
}
