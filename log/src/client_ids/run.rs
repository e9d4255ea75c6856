//! One run: the sorted hashes of the client ids of some neighbouring segments, each with its segment.
//!
//! ```text
//!  0 magic "PROMIDS\n" | 8 version u16 | 10 zero u16 | 12 covered segments u32 | 16 log id u64 | 24 entries u64
//! 32 filter bytes u64 | 40 seed u64 | 48 checksum u64 of what is behind the blocks | 56 checksum u64 of the 56 before
//! 4096 blocks of 4096 bytes: checksum u64 under the seed and the block's number | up to 340 entries | zeros
//!      entry: hash u64 | segment u32, counted from the first one of the run
//!      behind them: the first hash of each block u64 | filter | covered segments
//!      covered segment: number u64 | created u64 | data bytes u64 | generation u32 | zero u32
//! ```

use crate::files::{File, Files};
use crate::filter::HugeBytes;
use crate::segment::index::IndexError;
use crate::segment::sealed::Sealed;
use std::ops::RangeInclusive;
use std::sync::Arc;
use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_64_with_seed};

pub(super) const MAGIC: &[u8; 8] = b"PROMIDS\n";
pub(super) const VERSION: u16 = 1;
pub(super) const HEADER_BYTES: usize = 64;
pub(super) const BLOCK_BYTES: usize = 4096;
pub(super) const BLOCKS_AT: u64 = 4096;
const CHECKSUM_BYTES: usize = 8;
pub(super) const ENTRY_BYTES: usize = 12;
pub(super) const BLOCK_ENTRIES: usize = (BLOCK_BYTES - CHECKSUM_BYTES) / ENTRY_BYTES;
pub(super) const COVERED_BYTES: usize = 32;
/// How many blocks a merge reads at a time.
const SCAN_BLOCKS: usize = 16;

/// A client id by its hash, and the number of a segment that holds it or did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IdEntry {
    pub(crate) hash: u64,
    pub(crate) segment: u64,
}

/// A segment as it was when its ids were taken into a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Covered {
    pub(crate) number: u64,
    pub(crate) created_ms: u64,
    pub(crate) data_bytes: u64,
    pub(crate) generation: u32,
}

/// A run on disk.
pub(crate) struct IdRun {
    name: String,
    file: Arc<dyn File>,
    pub(crate) segments: RangeInclusive<u64>,
    pub(crate) entries: u64,
    filter_bytes: u64,
    seed: u64,
    /// The first hash of each block.
    fences: Vec<u64>,
    pub(crate) covered: Vec<Covered>,
}

/// The name of a run's file.
pub(super) fn run_name(segments: &RangeInclusive<u64>) -> String {
    format!("{:016x}-{:016x}.ids", segments.start(), segments.end())
}

/// The segments that a file of this name is the run of.
pub(crate) fn segments_of_name(name: &str) -> Option<RangeInclusive<u64>> {
    let (first, last) = name.strip_suffix(".ids")?.split_once('-')?;
    let number = |digits: &str| {
        let is_number = digits.len() == 16;
        is_number.then(|| u64::from_str_radix(digits, 16).ok())?
    };
    Some(number(first)?..=number(last)?)
}

impl Covered {
    pub(crate) fn of(segment: &Sealed) -> Self {
        Self {
            number: segment.header.number,
            created_ms: segment.header.created_ms,
            data_bytes: segment.data_bytes,
            generation: segment.header.generation,
        }
    }

    /// Whether `segment` is the one that was covered, or was rewritten from it.
    fn is_of(&self, segment: &Sealed) -> bool {
        let now = Self::of(segment);
        let is_same = now.generation == self.generation && now.data_bytes == self.data_bytes;
        now.created_ms == self.created_ms && (is_same || now.generation > self.generation)
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        for number in [self.number, self.created_ms, self.data_bytes] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&u64::from(self.generation).to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Self {
        Self {
            number: u64_at(bytes, 0),
            created_ms: u64_at(bytes, 8),
            data_bytes: u64_at(bytes, 16),
            generation: u64_at(bytes, 24) as u32,
        }
    }
}

impl IdRun {
    /// Opens the run of this name if it is one of this log and whole as far as it is read: its blocks check themselves.
    pub(super) fn open(files: &dyn Files, name: &str, log_id: u64) -> Result<Self, IndexError> {
        let segments = segments_of_name(name).ok_or(IndexError::Damaged)?;
        let file = files.open(name)?;
        let mut header = [0; HEADER_BYTES];
        let read = file.read_at(&mut header, 0)?;
        let checked = HEADER_BYTES - CHECKSUM_BYTES;
        let is_sound = read == HEADER_BYTES
            && header.starts_with(MAGIC)
            && header[8..10] == VERSION.to_le_bytes()
            && u64_at(&header, 16) == log_id
            && u64_at(&header, checked) == xxh3_64(&header[..checked]);
        if !is_sound {
            return Err(IndexError::Damaged);
        }
        let covered_count = (u64_at(&header, 8) >> 32) as usize;
        let entries = u64_at(&header, 24);
        let filter_bytes = u64_at(&header, 32);
        let blocks = entries.div_ceil(BLOCK_ENTRIES as u64);
        let behind = BLOCKS_AT + blocks * BLOCK_BYTES as u64;
        let covered_bytes = (covered_count * COVERED_BYTES) as u64;
        if behind + blocks * 8 + filter_bytes + covered_bytes != file.bytes()? {
            return Err(IndexError::Damaged);
        }
        let mut run = Self {
            name: name.to_owned(),
            file,
            segments,
            entries,
            filter_bytes,
            seed: u64_at(&header, 40),
            fences: Vec::new(),
            covered: Vec::new(),
        };
        let fences = run.read_exactly(behind, blocks * 8)?;
        let filter = run.read_exactly(behind + blocks * 8, filter_bytes)?;
        let covered = run.read_exactly(behind + blocks * 8 + filter_bytes, covered_bytes)?;
        if checksum_of([&fences, &filter, &covered]) != u64_at(&header, 48) {
            return Err(IndexError::Damaged);
        }
        run.fences = fences.chunks_exact(8).map(|at| u64_at(at, 0)).collect();
        run.covered = covered
            .chunks_exact(COVERED_BYTES)
            .map(Covered::read)
            .collect();
        Ok(run)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// How large its filter is; 0 where it has none.
    pub(super) fn filter_bytes(&self) -> usize {
        self.filter_bytes as usize
    }

    /// The filter, which was checked when the run was opened.
    pub(super) fn load_filter(&self) -> Result<Option<HugeBytes>, IndexError> {
        if self.filter_bytes == 0 {
            return Ok(None);
        }
        let at = BLOCKS_AT + self.fences.len() as u64 * (BLOCK_BYTES as u64 + 8);
        let mut filter = HugeBytes::zeroed(self.filter_bytes());
        self.fill_exactly(&mut filter, at)?;
        Ok(Some(filter))
    }

    /// Whether the run was made of what `segment` holds now, if it says to stand for it.
    pub(super) fn fits(&self, segment: &Sealed) -> bool {
        let numbers = segment.numbers();
        if !super::touch(&self.segments, &numbers) || !segment.may_hold_client_ids() {
            return true;
        }
        let number = segment.header.number;
        let known = self.covered.iter().find(|covered| covered.number == number);
        match known {
            Some(covered) => covered.is_of(segment),
            // Merged from segments of which the run stands for some that are not the first.
            None => numbers.start() < numbers.end() && segment.header.generation > 0,
        }
    }

    /// Adds the segments of the entries with this hash.
    pub(super) fn find(&self, hash: u64, segments: &mut Vec<u64>) -> Result<(), IndexError> {
        let behind = self.fences.partition_point(|&first| first < hash);
        let first = behind.saturating_sub(1);
        for (block, &fence) in self.fences.iter().enumerate().skip(first) {
            if fence > hash {
                break;
            }
            let bytes = self.checked_blocks(block, 1)?;
            let entries = self.entries_in(&bytes, block);
            let from = lower_bound(entries, hash);
            let rest = entries[from * ENTRY_BYTES..].chunks_exact(ENTRY_BYTES);
            let found = rest.map(|entry| self.entry(entry));
            let found = found.take_while(|entry| entry.hash == hash);
            segments.extend(found.map(|entry| entry.segment));
        }
        Ok(())
    }

    /// Reads all entries in their order.
    pub(crate) fn scan(self: &Arc<Self>) -> RunScan {
        RunScan {
            run: self.clone(),
            next_block: 0,
            ready: Vec::new().into_iter(),
        }
    }

    /// The entries of `count` blocks from `first` on, as far as there are so many.
    fn blocks(&self, first: usize, count: usize) -> Result<Vec<IdEntry>, IndexError> {
        let bytes = self.checked_blocks(first, count)?;
        let mut entries = Vec::with_capacity(count * BLOCK_ENTRIES);
        for (number, block) in (first..).zip(bytes.chunks_exact(BLOCK_BYTES)) {
            let stored = self.entries_in(block, number).chunks_exact(ENTRY_BYTES);
            entries.extend(stored.map(|entry| self.entry(entry)));
        }
        Ok(entries)
    }

    /// The bytes of `count` blocks from `first` on, as far as there are so many and they are whole.
    fn checked_blocks(&self, first: usize, count: usize) -> Result<Vec<u8>, IndexError> {
        let count = count.min(self.fences.len() - first);
        let at = BLOCKS_AT + (first * BLOCK_BYTES) as u64;
        let bytes = self.read_exactly(at, (count * BLOCK_BYTES) as u64)?;
        let mut blocks = (first..).zip(bytes.chunks_exact(BLOCK_BYTES));
        let is_whole = blocks
            .all(|(number, block)| block_checksum(block, self.seed, number) == u64_at(block, 0));
        is_whole.then_some(bytes).ok_or(IndexError::Damaged)
    }

    /// The bytes of a block's entries.
    fn entries_in<'a>(&self, block: &'a [u8], number: usize) -> &'a [u8] {
        let left = self.entries as usize - number * BLOCK_ENTRIES;
        &block[CHECKSUM_BYTES..][..left.min(BLOCK_ENTRIES) * ENTRY_BYTES]
    }

    fn entry(&self, bytes: &[u8]) -> IdEntry {
        let ahead = [bytes[8], bytes[9], bytes[10], bytes[11]];
        IdEntry {
            hash: u64_at(bytes, 0),
            segment: self.segments.start() + u64::from(u32::from_le_bytes(ahead)),
        }
    }

    fn read_exactly(&self, at: u64, bytes: u64) -> Result<Vec<u8>, IndexError> {
        let mut buffer = vec![0; bytes as usize];
        self.fill_exactly(&mut buffer, at)?;
        Ok(buffer)
    }

    fn fill_exactly(&self, buffer: &mut [u8], at: u64) -> Result<(), IndexError> {
        let read = self.file.read_at(buffer, at)?;
        let is_whole = read == buffer.len();
        is_whole.then_some(()).ok_or(IndexError::Damaged)
    }
}

/// Reads a run from its beginning, some blocks at a time.
pub(crate) struct RunScan {
    pub(crate) run: Arc<IdRun>,
    next_block: usize,
    ready: std::vec::IntoIter<IdEntry>,
}

impl RunScan {
    pub(crate) fn next(&mut self) -> Result<Option<IdEntry>, IndexError> {
        if self.ready.len() == 0 && self.next_block < self.run.fences.len() {
            self.ready = self.run.blocks(self.next_block, SCAN_BLOCKS)?.into_iter();
            self.next_block += SCAN_BLOCKS;
        }
        Ok(self.ready.next())
    }
}

/// How many entries have a smaller hash.
fn lower_bound(entries: &[u8], hash: u64) -> usize {
    let (mut from, mut to) = (0, entries.len() / ENTRY_BYTES);
    while from < to {
        let middle = from.midpoint(to);
        if u64_at(entries, middle * ENTRY_BYTES) < hash {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    from
}

/// The checksum of a block. It depends on the run and on the block's number, so that bytes which were there before, or
/// belong elsewhere, are not taken for the block.
pub(super) fn block_checksum(block: &[u8], seed: u64, number: usize) -> u64 {
    let seed = seed ^ (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    xxh3_64_with_seed(&block[CHECKSUM_BYTES..], seed)
}

pub(super) fn checksum_of(parts: [&[u8]; 3]) -> u64 {
    let mut checksum = Xxh3::new();
    parts.iter().for_each(|part| checksum.update(part));
    checksum.digest()
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut array = [0; 8];
    array.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(array)
}
