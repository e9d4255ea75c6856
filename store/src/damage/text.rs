//! A finding as a line of text, for people and for a store that keeps it and reads it back.
//!
//! ```text
//! segment 000000000000000a, bytes 64 to 128: corrupt bytes; lost t seq 4 to 9, u seq 3; held t seq 4 id abc; file F
//! ```

use super::{Damage, DamagedEvent};
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

fn shown(text: Option<&str>) -> String {
    text.map_or("?".to_owned(), escaped)
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
