//! Gathering the events of a segment in which topics take turns. An event is alone there, so rather than reading each
//! by itself everything is read in the order it is in, and put where it belongs in memory.

use crate::files::File;
use crate::pace::STRETCH_BYTES;
use crate::segment::active::{ActiveEntry, near};
use std::io;

/// So much is gathered at a time, unless one event is larger; the segment is read once for each.
pub(super) const GATHERED_BYTES: usize = 16 << 20;
/// How much is read in one go at most, unless one event is larger.
const READ_BYTES: u64 = STRETCH_BYTES;
/// What is between two wanted events is read with them if it is no more than this.
const GAP_BYTES: u64 = 16 << 10;

/// Reads events into `gathered`, one behind the other in the order of `wanted`. Where the file ends early zeros are in their
/// place. `rest` is called after each stretch, with how much was gathered.
pub(super) fn gather(
    file: &dyn File,
    wanted: &[ActiveEntry],
    gathered: &mut Vec<u8>,
    rest: impl Fn(u64),
) -> io::Result<()> {
    let mut places = Vec::with_capacity(wanted.len());
    let mut bytes = 0;
    for entry in wanted {
        places.push((entry.range(), bytes));
        bytes += entry.bytes as usize;
    }
    // What is in it is overwritten. Fresh zeros cost something only where they are touched, stretch by stretch.
    if gathered.capacity() < bytes {
        *gathered = vec![0; bytes.max(GATHERED_BYTES)];
    }
    gathered.resize(bytes, 0);
    places.sort_unstable_by_key(|(range, _)| range.start);
    let mut block = Vec::new();
    let mut left = places.as_slice();
    while let Some((first, _)) = left.first() {
        let start = first.start;
        let near = near(left, |(range, _)| range.clone(), GAP_BYTES, READ_BYTES);
        let (together, behind) = left.split_at(near);
        left = behind;
        let end = together.last().map_or(start, |(range, _)| range.end);
        block.resize((end - start) as usize, 0);
        let read = file.read_at(&mut block, start)?;
        block[read..].fill(0);
        let mut stretch = 0;
        for (range, to) in together {
            let event = &block[(range.start - start) as usize..(range.end - start) as usize];
            gathered[*to..to + event.len()].copy_from_slice(event);
            stretch += event.len() as u64;
        }
        rest(stretch);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Files;
    use crate::files::fault::FaultFiles;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_lie_in_the_order_they_are_wanted_in(
            events in prop::collection::vec((0..60_000u32, 1..40_000u32, any::<u32>()), 0..40),
            cut in 0..100_000usize,
        ) {
            // Each behind a gap, and wanted in an order of its own.
            let mut wanted = Vec::new();
            let mut end = 0;
            for (gap, bytes, order) in events {
                let offset = end + gap;
                end = offset + bytes;
                wanted.push((order, ActiveEntry { seq: 1, ts: 1, offset, bytes }));
            }
            wanted.sort_by_key(|(order, _)| *order);
            let wanted: Vec<ActiveEntry> = wanted.into_iter().map(|(_, entry)| entry).collect();
            let mut content: Vec<u8> = (0..end).map(|at| (at % 251) as u8 + 1).collect();
            content.truncate(content.len().saturating_sub(cut));
            let file = FaultFiles::new().create("data").expect("a file");
            file.write_at(&content, 0).expect("it is written");
            content.resize(end as usize, 0);
            let expected: Vec<u8> = wanted
                .iter()
                .flat_map(|entry| &content[entry.offset as usize..][..entry.bytes as usize])
                .copied()
                .collect();
            let mut gathered = vec![9; 7];
            gather(&*file, &wanted, &mut gathered, |_| ()).expect("it is read");
            prop_assert!(gathered == expected);
        }
    }
}
