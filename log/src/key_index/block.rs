//! One block of a table of names:
//!
//! ```text
//! checksum u32 | count u16 | entries
//! entry: space u8 | topic u32 | name length u16 | name | seq u64 | offset u32
//! ```
//! Little-endian; the checksum is the low half of XXH3-64 over everything behind it.

use super::{KeyEntry, KeyRef};
use std::ops::Range;
use thiserror::Error;
use xxhash_rust::xxh3::xxh3_64;

/// A block is closed before the entry that would take it over this; only a single long name makes one longer.
const BLOCK_BYTES: usize = 4096;
const CHECKSUM_BYTES: usize = 4;
const HEAD_BYTES: usize = CHECKSUM_BYTES + 2;
const ENTRY_TAIL_BYTES: usize = 12;
/// Bytes of space, topic and name length.
const NAME_HEAD_BYTES: usize = 7;

/// The bytes are no block of names, or not the ones that were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a block of names does not match its checksum")]
pub(crate) struct DamagedBlock;

/// The entries of a block in their order, after checking it.
pub(crate) fn entries(
    block: &[u8],
) -> Result<impl Iterator<Item = (KeyRef<'_>, KeyEntry)>, DamagedBlock> {
    let content = checked(block)?;
    // The checksum held, so this fails only over a writer's mistake; it must not look like fewer entries.
    let mut rest = content.entries;
    for _ in 0..content.count {
        read_entry(&mut rest).ok_or(DamagedBlock)?;
    }
    if !rest.is_empty() {
        return Err(DamagedBlock);
    }
    let mut rest = content.entries;
    Ok(std::iter::from_fn(move || read_entry(&mut rest)))
}

/// The entry of `name` in a block, after checking it.
pub(crate) fn find_in(block: &[u8], name: &KeyRef<'_>) -> Result<Option<KeyEntry>, DamagedBlock> {
    let content = checked(block)?;
    let mut rest = content.entries;
    for _ in 0..content.count {
        let (at, entry) = read_entry(&mut rest).ok_or(DamagedBlock)?;
        if at >= *name {
            return Ok((at == *name).then_some(entry));
        }
    }
    Ok(None)
}

/// Appends blocks one after the other.
#[derive(Default)]
pub(super) struct BlockWriter {
    bytes: Vec<u8>,
    /// Where the open block starts, or the next one will.
    start: usize,
    count: u16,
}

impl BlockWriter {
    pub(super) fn is_between_blocks(&self) -> bool {
        self.count == 0
    }

    pub(super) fn has_room_for(&self, name: &KeyRef<'_>) -> bool {
        let entry_bytes = NAME_HEAD_BYTES + name.name.len() + ENTRY_TAIL_BYTES;
        self.is_between_blocks() || self.bytes.len() - self.start + entry_bytes <= BLOCK_BYTES
    }

    pub(super) fn push(&mut self, name: &KeyRef<'_>, entry: KeyEntry) {
        if self.is_between_blocks() {
            self.bytes.extend_from_slice(&[0; HEAD_BYTES]);
        }
        write_name(&mut self.bytes, name);
        self.bytes.extend_from_slice(&entry.seq.to_le_bytes());
        self.bytes.extend_from_slice(&entry.offset.to_le_bytes());
        self.count += 1;
    }

    /// Ends the open block and says where it is.
    pub(super) fn finish_block(&mut self) -> Range<u32> {
        let block = &mut self.bytes[self.start..];
        block[CHECKSUM_BYTES..HEAD_BYTES].copy_from_slice(&self.count.to_le_bytes());
        let checksum = xxh3_64(&block[CHECKSUM_BYTES..]) as u32;
        block[..CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
        let range = self.start as u32..self.bytes.len() as u32;
        self.start = self.bytes.len();
        self.count = 0;
        range
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

pub(super) fn write_name(out: &mut Vec<u8>, name: &KeyRef<'_>) {
    debug_assert!(name.name.len() <= usize::from(u16::MAX));
    out.push(name.space);
    out.extend_from_slice(&name.topic.to_le_bytes());
    out.extend_from_slice(&(name.name.len() as u16).to_le_bytes());
    out.extend_from_slice(name.name);
}

/// Takes a name off the front of `rest`.
pub(super) fn read_name<'a>(rest: &mut &'a [u8]) -> Option<KeyRef<'a>> {
    let [space] = take_array(rest)?;
    let topic = u32::from_le_bytes(take_array(rest)?);
    let length = u16::from_le_bytes(take_array(rest)?);
    let name = rest.split_off(..usize::from(length))?;
    Some(KeyRef { space, topic, name })
}

/// Takes so many bytes off the front of `rest`.
pub(super) fn take_array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (array, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*array)
}

struct Content<'a> {
    count: u16,
    entries: &'a [u8],
}

fn checked(block: &[u8]) -> Result<Content<'_>, DamagedBlock> {
    let mut rest = block;
    let checksum = u32::from_le_bytes(take_array(&mut rest).ok_or(DamagedBlock)?);
    if xxh3_64(rest) as u32 != checksum {
        return Err(DamagedBlock);
    }
    let count = u16::from_le_bytes(take_array(&mut rest).ok_or(DamagedBlock)?);
    Ok(Content {
        count,
        entries: rest,
    })
}

fn read_entry<'a>(rest: &mut &'a [u8]) -> Option<(KeyRef<'a>, KeyEntry)> {
    let name = read_name(rest)?;
    let seq = u64::from_le_bytes(take_array(rest)?);
    let offset = u32::from_le_bytes(take_array(rest)?);
    Some((name, KeyEntry { seq, offset }))
}
