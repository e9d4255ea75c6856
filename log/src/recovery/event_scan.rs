//! Reading the events of a segment that cannot be taken at its index's word. What is bad is described, and the
//! positions that it held are named by the events around it.

use crate::damage::{describe, read_damage};
use crate::files::File;
use crate::record::{Kind, StoredEvent};
use crate::segment::{Found, Scanner};
use prombus_store::Damage;
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// What was read of a topic.
struct Seen {
    last_seq: u64,
    /// How much damage was found before its last event.
    damage: usize,
    /// Positions left out where no damage was found: by compaction, unless a record turns out to be misplaced.
    gaps: Vec<Range<u64>>,
}

/// What is wrong with a segment's events.
#[derive(Default)]
pub(crate) struct Scanned {
    pub(crate) damage: Vec<Damage>,
    /// Topics that have an event behind all damage.
    pub(crate) go_on: Vec<u32>,
}

/// Calls `each` with every sound event up to `end` and its place. A record that was copied from elsewhere is sound by
/// its checksum, but its position does not rise; it counts as damage. In a `dense` segment, which was never rewritten,
/// so does every position that is left out.
pub(crate) fn scan_events(
    segment: u64,
    file: &Arc<dyn File>,
    end: u64,
    dense: bool,
    mut each: impl FnMut(u32, &StoredEvent),
) -> io::Result<Scanned> {
    let mut damage: Vec<Damage> = Vec::new();
    let mut topics: HashMap<u32, Seen> = HashMap::new();
    let mut scanner = Scanner::whole(file.clone(), end);
    while let Some(found) = scanner.next()? {
        let (at, frame, block, in_block) = match found {
            Found::Damage { from, to } => {
                damage.push(read_damage(segment, &**file, from..to)?);
                continue;
            }
            Found::Record {
                at,
                frame,
                block,
                in_block,
            } => (at, frame, block, in_block),
        };
        if frame.kind != Kind::Event {
            continue;
        }
        let end = at + frame.bytes as u64;
        let Ok(event) = StoredEvent::from_checked(block, in_block, frame.bytes) else {
            damage.push(read_damage(segment, &**file, at..end)?);
            continue;
        };
        let seq = event.seq();
        let found = damage.len();
        let seen = topics.entry(event.topic_number()).or_insert(Seen {
            last_seq: 0,
            damage: found,
            gaps: Vec::new(),
        });
        if seq <= seen.last_seq {
            let mut misplaced = read_damage(segment, &**file, at..end)?;
            for gap in seen.gaps.drain(..) {
                misplaced.lose(Some(event.topic()), gap);
            }
            damage.push(misplaced);
            continue;
        }
        let gap = seen.last_seq + 1..seq;
        if seen.last_seq > 0 && !gap.is_empty() {
            if dense && seen.damage == found {
                damage.push(describe(segment, at, &[]));
            }
            match damage.get_mut(seen.damage) {
                Some(between) => between.lose(Some(event.topic()), gap),
                None => seen.gaps.push(gap),
            }
        }
        let found = damage.len();
        (seen.last_seq, seen.damage) = (seq, found);
        each(at as u32, &event);
    }
    let count = damage.len();
    let go_on = topics.iter().filter(|(_, seen)| seen.damage == count);
    Ok(Scanned {
        go_on: go_on.map(|(topic, _)| *topic).collect(),
        damage,
    })
}
