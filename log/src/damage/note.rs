//! A finding as a line of text, for people and for the next start, which reads it back.
//!
//! ```text
//! segment 000000000000000a, bytes 64 to 128: corrupt bytes; lost t seq 4 to 9, u seq 3; held t seq 4 id abc; file F
//! ```

use super::{Damage, DamageKind, DamagedEvent, LostSeqs};
use std::fmt::{self, Write as _};

pub(super) fn write(damage: &Damage, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match (damage.segment, damage.last_segment) {
        (0, _) => f.write_str("log")?,
        (first, last) if first == last => write!(f, "segment {first:016x}")?,
        (first, last) => write!(f, "segments {first:016x} to {last:016x}")?,
    }
    if damage.to > damage.from {
        write!(f, ", bytes {} to {}", damage.from, damage.to)?;
    } else if damage.from > 0 {
        write!(f, ", at byte {}", damage.from)?;
    }
    write!(f, ": {}", damage.kind.as_str())?;
    for (at, lost) in damage.lost.iter().enumerate() {
        f.write_str(if at == 0 { "; lost " } else { ", " })?;
        write!(f, "{} seq {}", shown(lost.topic.as_deref()), lost.from)?;
        if lost.to > lost.from {
            write!(f, " to {}", lost.to)?;
        }
    }
    for (at, event) in damage.events.iter().enumerate() {
        f.write_str(if at == 0 { "; held " } else { ", " })?;
        write_event(event, f)?;
    }
    if damage.more > 0 {
        write!(f, "; and {} more", damage.more)?;
    }
    if let Some(name) = &damage.file {
        write!(f, "; file {}", escaped(name))?;
    }
    match &damage.detail {
        Some(detail) => write!(f, "; detail {}", escaped(detail)),
        None => Ok(()),
    }
}

pub(super) fn write_event(event: &DamagedEvent, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let topic = shown(event.topic.as_deref());
    let seq = event.seq.map_or("?".to_owned(), |seq| seq.to_string());
    write!(f, "{topic} seq {seq} id {}", shown(event.id.as_deref()))
}

/// Reads a line back; `None` where it is none of ours.
pub(super) fn parse(line: &str) -> Option<Damage> {
    let (place, rest) = line.split_once(": ")?;
    let mut parts = rest.split("; ");
    let words = parts.next()?;
    let (kind, _) = DamageKind::ALL.iter().find(|(_, text)| *text == words)?;
    let mut damage = Damage::of(*kind, 0);
    parse_place(place, &mut damage)?;
    for part in parts {
        if let Some(list) = part.strip_prefix("lost ") {
            damage.lost = list.split(", ").map(parse_lost).collect::<Option<_>>()?;
        } else if let Some(list) = part.strip_prefix("held ") {
            damage.events = list.split(", ").map(parse_event).collect::<Option<_>>()?;
        } else if let Some(name) = part.strip_prefix("file ") {
            damage.file = Some(unescaped(name)?);
        } else if let Some(detail) = part.strip_prefix("detail ") {
            damage.detail = Some(unescaped(detail)?);
        } else {
            let count = part.strip_prefix("and ")?.strip_suffix(" more")?;
            damage.more = count.parse().ok()?;
        }
    }
    Some(damage)
}

fn parse_place(place: &str, damage: &mut Damage) -> Option<()> {
    let mut parts = place.split(", ");
    let what = parts.next()?;
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    if let Some(number) = what.strip_prefix("segment ") {
        damage.segment = hex(number)?;
        damage.last_segment = damage.segment;
    } else if let Some(numbers) = what.strip_prefix("segments ") {
        let (first, last) = numbers.split_once(" to ")?;
        (damage.segment, damage.last_segment) = (hex(first)?, hex(last)?);
    } else if what != "log" {
        return None;
    }
    let Some(bytes) = parts.next() else {
        return Some(());
    };
    if let Some(at) = bytes.strip_prefix("at byte ") {
        damage.from = at.parse().ok()?;
        damage.to = damage.from;
    } else {
        let (from, to) = bytes.strip_prefix("bytes ")?.split_once(" to ")?;
        (damage.from, damage.to) = (from.parse().ok()?, to.parse().ok()?);
    }
    Some(())
}

fn parse_lost(text: &str) -> Option<LostSeqs> {
    let (topic, seqs) = text.split_once(" seq ")?;
    let (from, to) = seqs.split_once(" to ").unwrap_or((seqs, seqs));
    Some(LostSeqs {
        topic: known(topic)?,
        from: from.parse().ok()?,
        to: to.parse().ok()?,
    })
}

fn parse_event(text: &str) -> Option<DamagedEvent> {
    let (topic, rest) = text.split_once(" seq ")?;
    let (seq, id) = rest.split_once(" id ")?;
    Some(DamagedEvent {
        topic: known(topic)?,
        seq: match seq {
            "?" => None,
            seq => Some(seq.parse().ok()?),
        },
        id: known(id)?,
    })
}

fn shown(text: Option<&str>) -> String {
    text.map_or("?".to_owned(), escaped)
}

/// What stands for a text, `None` within for one that was not known.
fn known(text: &str) -> Option<Option<String>> {
    match text {
        "?" => Some(None),
        text => unescaped(text).map(Some),
    }
}

/// Everything that separates parts of the line is written as its bytes in hexadecimal.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        let is_plain = !char.is_control() && !char.is_whitespace() && !",;%?".contains(char);
        if is_plain {
            out.push(char);
            continue;
        }
        for byte in char.encode_utf8(&mut [0; 4]).bytes() {
            // Writing to a text cannot fail.
            let _ = write!(out, "%{byte:02x}");
        }
    }
    out
}

fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    bytes.extend_from_slice(parts.next()?.as_bytes());
    for part in parts {
        let (hex, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(hex, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text() -> impl Strategy<Value = Option<String>> {
        proptest::option::of(prop_oneof!["[a-z.]{1,9}", ".{1,9}"])
    }

    proptest! {
        #[test]
        fn findings_round_trip_through_their_line(
            kind in 0..DamageKind::ALL.len(),
            numbers: [u64; 3], from in 0..1000u64, bytes in 0..1000u64,
            lost in proptest::collection::vec((text(), any::<u64>(), any::<u64>()), 0..3),
            events in proptest::collection::vec((text(), any::<Option<u64>>(), text()), 0..3),
            file in text(), detail in text(),
        ) {
            let [segment, last_segment, more] = numbers;
            let damage = Damage {
                kind: DamageKind::ALL[kind].0,
                segment,
                last_segment: if segment == 0 { 0 } else { last_segment },
                from,
                to: from + bytes,
                lost: lost.into_iter().map(|(topic, a, b)| LostSeqs { topic, from: a.min(b), to: a.max(b) }).collect(),
                events: events.into_iter().map(|(topic, seq, id)| DamagedEvent { topic, seq, id }).collect(),
                more,
                file,
                detail,
            };
            let line = damage.to_string();
            prop_assert!(!line.contains('\n'));
            prop_assert_eq!(parse(&line), Some(damage));
        }

        #[test]
        fn other_lines_are_not_taken_for_findings(line in ".*") {
            let _ = parse(&line);
        }
    }
}
