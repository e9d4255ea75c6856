//! The fences of a table of names: where each block is and the name it starts with.
//!
//! ```text
//! fences, one per block | where each fence starts, u32 each | number of blocks u32
//! fence: block offset u32 | block length u32 | space u8 | topic u32 | name length u16 | name
//! ```
//! The table of starts makes them searchable as they are. No bytes are the fences of no blocks.

use super::KeyRef;
use super::block::{read_name, take_array, write_name};
use std::ops::Range;

/// The one block that may hold `name`, as its byte range within the blocks.
pub(crate) fn block_for(fences: &[u8], name: &KeyRef<'_>) -> Option<Range<u32>> {
    let fences = Fences::new(fences)?;
    let before = fences.count_up_to(name);
    Some(fences.get(before.checked_sub(1)?)?.block)
}

/// The blocks that hold every name from `name` on, in their order; the first may begin with smaller names.
pub(crate) fn blocks_from<'f>(
    fences: &'f [u8],
    name: &KeyRef<'_>,
) -> impl Iterator<Item = Range<u32>> + use<'f> {
    let fences = Fences::new(fences).unwrap_or_default();
    let first = fences.count_up_to(name).saturating_sub(1);
    (first..fences.count()).map_while(move |index| Some(fences.get(index)?.block))
}

/// Writes fences in step with the blocks.
#[derive(Default)]
pub(super) struct FenceWriter {
    bytes: Vec<u8>,
    starts: Vec<u32>,
}

impl FenceWriter {
    /// Starts the fence of a block that begins with `name`.
    pub(super) fn open(&mut self, name: &KeyRef<'_>) {
        self.starts.push(self.bytes.len() as u32);
        self.bytes.extend_from_slice(&[0; 8]);
        write_name(&mut self.bytes, name);
    }

    /// Fills in where the block was written.
    pub(super) fn close(&mut self, block: Range<u32>) {
        let Some(&start) = self.starts.last() else {
            return;
        };
        let place = &mut self.bytes[start as usize..][..8];
        place[..4].copy_from_slice(&block.start.to_le_bytes());
        place[4..].copy_from_slice(&(block.end - block.start).to_le_bytes());
    }

    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        if self.starts.is_empty() {
            return self.bytes;
        }
        for start in &self.starts {
            self.bytes.extend_from_slice(&start.to_le_bytes());
        }
        let count = self.starts.len() as u32;
        self.bytes.extend_from_slice(&count.to_le_bytes());
        self.bytes
    }
}

struct Fence<'a> {
    block: Range<u32>,
    first: KeyRef<'a>,
}

#[derive(Default)]
struct Fences<'a> {
    fences: &'a [u8],
    starts: &'a [[u8; 4]],
}

impl<'a> Fences<'a> {
    fn new(bytes: &'a [u8]) -> Option<Self> {
        let (rest, count) = bytes.split_last_chunk()?;
        let starts_bytes = (u32::from_le_bytes(*count) as usize).checked_mul(4)?;
        let (fences, starts) = rest.split_at_checked(rest.len().checked_sub(starts_bytes)?)?;
        let (starts, _) = starts.as_chunks();
        Some(Self { fences, starts })
    }

    fn count(&self) -> usize {
        self.starts.len()
    }

    fn get(&self, index: usize) -> Option<Fence<'a>> {
        let start = u32::from_le_bytes(*self.starts.get(index)?);
        let mut rest = self.fences.get(start as usize..)?;
        let offset = u32::from_le_bytes(take_array(&mut rest)?);
        let length = u32::from_le_bytes(take_array(&mut rest)?);
        Some(Fence {
            block: offset..offset.checked_add(length)?,
            first: read_name(&mut rest)?,
        })
    }

    /// How many blocks start with `name` or a smaller one.
    fn count_up_to(&self, name: &KeyRef<'_>) -> usize {
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle).is_some_and(|fence| fence.first <= *name) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}
