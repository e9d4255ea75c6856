//! A sorted table from names to places: publishers' client ids and the keys of a sealed segment. A table is pure bytes in
//! three parts, and their owner does the reading and caching:
//!
//! - blocks of about 4 KiB with the entries, each under its own checksum, because they are read one at a time,
//! - fences, which say where each block is and with which name it starts; they are read whole, so their checksum is
//!   the caller's,
//! - a filter over all names, which answers most questions for names that are not there.

mod block;
mod fences;
#[cfg(test)]
mod tests;

pub(crate) use block::{entries, find_in};
pub(crate) use fences::{block_for, blocks_from};

use crate::filter;
use block::BlockWriter;
use fences::FenceWriter;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A table of names, ready to be written. `blocks` stays below 4 GiB.
#[derive(Debug, Default)]
pub(crate) struct KeyTable {
    pub(crate) blocks: Vec<u8>,
    pub(crate) fences: Vec<u8>,
    pub(crate) filter: Vec<u8>,
}

/// A name: at most 65,535 bytes, within a topic, in a space of its own for ids and for keys. Ordered by all three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct KeyRef<'a> {
    pub(crate) space: u8,
    pub(crate) topic: u32,
    pub(crate) name: &'a [u8],
}

/// Where the event of a name is: its position in the topic and its place in the segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyEntry {
    pub(crate) seq: u64,
    pub(crate) offset: u32,
}

/// The hash that the filter knows a name by.
pub(crate) fn hash(name: &KeyRef<'_>) -> u64 {
    let place = u64::from(name.space) << 32 | u64::from(name.topic);
    xxh3_64_with_seed(name.name, place)
}

/// Builds the table of names that come in ascending order, each once.
pub(crate) fn build<'a>(sorted: impl IntoIterator<Item = (KeyRef<'a>, KeyEntry)>) -> KeyTable {
    let mut blocks = BlockWriter::default();
    let mut fences = FenceWriter::default();
    let mut hashes = Vec::new();
    let mut previous: Option<KeyRef<'a>> = None;
    for (name, entry) in sorted {
        debug_assert!(previous < Some(name), "names must ascend");
        previous = Some(name);
        hashes.push(hash(&name));
        if !blocks.has_room_for(&name) {
            fences.close(blocks.finish_block());
        }
        if blocks.is_between_blocks() {
            fences.open(&name);
        }
        blocks.push(&name, entry);
    }
    if !blocks.is_between_blocks() {
        fences.close(blocks.finish_block());
    }
    KeyTable {
        blocks: blocks.into_bytes(),
        fences: fences.into_bytes(),
        filter: filter::build(&hashes),
    }
}
