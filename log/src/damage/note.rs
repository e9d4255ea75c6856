//! Reads findings back from the lines of a note: the inverse of their `Display`.

use prombus_store::{Damage, DamageKind, DamagedEvent, LostSeqs};

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

/// The text that was written, `None` within for one that was not known.
fn known(text: &str) -> Option<Option<String>> {
    match text {
        "?" => Some(None),
        text => unescaped(text).map(Some),
    }
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
