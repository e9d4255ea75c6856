//! The index of a sealed segment: a file beside the data that can always be made again from it.
//!
//! ```text
//!  0 magic "PROMIDX\n" | 8 format version u16 | 10 zero u16 | 12 generation u32 | 16 number u64 | 24 data bytes u64
//! 32 seven sections, each: offset u64 | length u64 | checksum u64 (XXH3-64)
//! 200 checksum u64 of the 200 bytes before
//! ```
//! Sections: the directory of runs (`directory`); points (`seq u64 | highest ts so far u64 | offset u32`) that let a reader start
//! near a position; the order (`ts u64 | seq u64 | offset u32`, sorted) of runs whose ts is not; the blocks, fences
//! and filter of the name table; and a copy of the checkpoint that the next segment starts with.

mod build;
mod directory;

pub(crate) use build::{IndexBuilder, KEY_SPACE, OWN_ID_SPACE};
pub(crate) use directory::{IdPrefix, RunInfo, prefix_of};

use super::active::ActiveEntry;
use super::cache::{SectionCache, WHOLE};
use crate::files::File;
use crate::key_index;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: &[u8; 8] = b"PROMIDX\n";
/// The version of the index format, which changes apart from the segments': an index can always be made again.
const INDEX_VERSION: u16 = 2;
/// The first version, which differs in the directory only.
const FIRST_VERSION: u16 = 1;
const SECTIONS: usize = 7;
const SECTIONS_AT: usize = 32;
const CHECKED: usize = SECTIONS_AT + SECTIONS * 24;
const INDEX_HEADER_BYTES: usize = CHECKED + 8;
/// So many entries of the directory are read and kept together.
const DIRECTORY_BLOCK_ENTRIES: usize = 33;
/// Bytes of one point, and of one entry of the order.
pub(crate) const POINT_BYTES: usize = 20;

/// The parts of an index, in the order they are on disk. The numbers are on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Section {
    Directory = 0,
    Points = 1,
    Order = 2,
    KeyBlocks = 3,
    Fences = 4,
    Filter = 5,
    Checkpoint = 6,
}

impl Section {
    pub(crate) const ALL: [Self; SECTIONS] = [
        Self::Directory,
        Self::Points,
        Self::Order,
        Self::KeyBlocks,
        Self::Fences,
        Self::Filter,
        Self::Checkpoint,
    ];
}

/// Why an index could not be used: it has to be made again, or the disk failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IndexError {
    #[error("the index is damaged or belongs to other data")]
    Damaged,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What an index is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexFor {
    pub(crate) number: u64,
    pub(crate) generation: u32,
    pub(crate) data_bytes: u64,
}

/// An index on disk, of which parts are loaded when asked for.
pub(crate) struct Index {
    file: Arc<dyn File>,
    owner: IndexFor,
    version: u16,
    sections: [(u64, u64, u64); SECTIONS],
    cache: Arc<SectionCache>,
}

/// One place to start reading from, or one event in the order of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) seq: u64,
    pub(crate) ts: u64,
    pub(crate) offset: u32,
}

impl Index {
    /// Opens the index of exactly this data.
    pub(crate) fn open(
        file: Arc<dyn File>,
        owner: IndexFor,
        cache: Arc<SectionCache>,
    ) -> Result<Self, IndexError> {
        let index = Self::open_for_any_data(file, cache)?;
        if index.owner == owner {
            Ok(index)
        } else {
            Err(IndexError::Damaged)
        }
    }

    /// Opens an index whatever data it was made for.
    pub(crate) fn open_for_any_data(
        file: Arc<dyn File>,
        cache: Arc<SectionCache>,
    ) -> Result<Self, IndexError> {
        let mut header = [0; INDEX_HEADER_BYTES];
        if file.read_at(&mut header, 0)? < INDEX_HEADER_BYTES {
            return Err(IndexError::Damaged);
        }
        let u64_at = |at: usize| {
            let mut array = [0; 8];
            array.copy_from_slice(&header[at..at + 8]);
            u64::from_le_bytes(array)
        };
        let version = u16::from_le_bytes([header[8], header[9]]);
        let sound = header.starts_with(MAGIC)
            && (FIRST_VERSION..=INDEX_VERSION).contains(&version)
            && u64_at(CHECKED) == xxh3_64(&header[..CHECKED]);
        if !sound {
            return Err(IndexError::Damaged);
        }
        let owner = IndexFor {
            number: u64_at(16),
            generation: (u64_at(8) >> 32) as u32,
            data_bytes: u64_at(24),
        };
        let sections = std::array::from_fn(|section| {
            let at = SECTIONS_AT + section * 24;
            (u64_at(at), u64_at(at + 8), u64_at(at + 16))
        });
        Ok(Self {
            file,
            owner,
            version,
            sections,
            cache,
        })
    }

    /// The number of the segment it was made for.
    pub(crate) fn number(&self) -> u64 {
        self.owner.number
    }

    /// The generation of the data it was made for.
    pub(crate) fn generation(&self) -> u32 {
        self.owner.generation
    }

    /// Bytes of the whole index.
    pub(crate) fn bytes(&self) -> u64 {
        let sections = self.sections.iter().map(|(_, length, _)| length);
        INDEX_HEADER_BYTES as u64 + sections.sum::<u64>()
    }

    /// Writes an index from its sections and returns the bytes of the whole file.
    pub(crate) fn encode(owner: IndexFor, sections: &[Vec<u8>; SECTIONS]) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&INDEX_VERSION.to_le_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&owner.generation.to_le_bytes());
        out.extend_from_slice(&owner.number.to_le_bytes());
        out.extend_from_slice(&owner.data_bytes.to_le_bytes());
        let mut offset = INDEX_HEADER_BYTES as u64;
        for section in sections {
            let length = section.len() as u64;
            for number in [offset, length, xxh3_64(section)] {
                out.extend_from_slice(&number.to_le_bytes());
            }
            offset += length;
        }
        out.extend_from_slice(&xxh3_64(&out).to_le_bytes());
        for section in sections {
            out.extend_from_slice(section);
        }
        out
    }

    /// A whole section, checked.
    pub(crate) fn section(&self, section: Section) -> Result<Arc<Vec<u8>>, IndexError> {
        let key = self.key(section, WHOLE);
        if let Some(cached) = self.cache.get(key) {
            return Ok(cached);
        }
        let loaded = Arc::new(self.load(section)?);
        self.cache.put(key, &loaded);
        Ok(loaded)
    }

    fn key(&self, section: Section, block: u32) -> (u64, u32, u8, u32) {
        let IndexFor {
            number, generation, ..
        } = self.owner;
        (number, generation, section as u8, block)
    }

    /// Whether a run can be read without the others.
    pub(crate) fn has_fixed_entries(&self) -> bool {
        self.version > FIRST_VERSION
    }

    /// All runs of the directory.
    pub(crate) fn runs(&self) -> Result<Vec<RunInfo>, IndexError> {
        let bytes = self.load(Section::Directory)?;
        directory::read_all(&bytes, self.version).ok_or(IndexError::Damaged)
    }

    /// The names of the topics of all runs.
    pub(crate) fn topic_names(&self) -> Result<Vec<Arc<str>>, IndexError> {
        let bytes = self.load(Section::Directory)?;
        directory::read_names(&bytes, self.version).ok_or(IndexError::Damaged)
    }

    /// One run of a directory of fixed entries. Only its block of the directory is read.
    pub(crate) fn run(&self, slot: usize) -> Result<RunInfo, IndexError> {
        let block = slot / DIRECTORY_BLOCK_ENTRIES;
        let key = self.key(Section::Directory, block as u32);
        let bytes = match self.cache.get(key) {
            Some(bytes) => bytes,
            None => {
                let bytes = Arc::new(self.directory_block(block)?);
                self.cache.put(key, &bytes);
                bytes
            }
        };
        let at = slot % DIRECTORY_BLOCK_ENTRIES * directory::ENTRY_BYTES;
        let entry = bytes.get(at..at + directory::ENTRY_BYTES);
        entry.and_then(RunInfo::read).ok_or(IndexError::Damaged)
    }

    fn directory_block(&self, block: usize) -> Result<Vec<u8>, IndexError> {
        let (offset, length, _) = self.sections[Section::Directory as usize];
        let bytes = DIRECTORY_BLOCK_ENTRIES * directory::ENTRY_BYTES;
        let start = directory::HEAD_BYTES + block * bytes;
        let left = length.saturating_sub(start as u64);
        let mut buffer = vec![0; bytes.min(left as usize)];
        let read = self.file.read_at(&mut buffer, offset + start as u64)?;
        buffer.truncate(read);
        Ok(buffer)
    }

    /// A whole section, checked, that is not worth keeping.
    pub(crate) fn load(&self, section: Section) -> Result<Vec<u8>, IndexError> {
        let (offset, length, checksum) = self.sections[section as usize];
        if offset.saturating_add(length) > self.file.bytes()? {
            return Err(IndexError::Damaged);
        }
        let mut bytes = vec![0; length as usize];
        let read = self.file.read_at(&mut bytes, offset)?;
        if read < bytes.len() || xxh3_64(&bytes) != checksum {
            return Err(IndexError::Damaged);
        }
        Ok(bytes)
    }

    /// Whether the segment may hold a name; false is certain.
    pub(crate) fn may_hold(&self, name: &key_index::KeyRef<'_>) -> Result<bool, IndexError> {
        let (_, length, _) = self.sections[Section::Filter as usize];
        if length == 0 {
            return Ok(false);
        }
        let filter = self.section(Section::Filter)?;
        Ok(crate::filter::may_hold(&filter, key_index::hash(name)))
    }

    /// Whether what is in memory is enough to say that the segment does not hold a name.
    pub(crate) fn rules_out(&self, name: &key_index::KeyRef<'_>) -> bool {
        let filter = self.cache.get(self.key(Section::Filter, WHOLE));
        filter.is_some_and(|filter| !crate::filter::may_hold(&filter, key_index::hash(name)))
    }

    /// Looks a name up.
    pub(crate) fn find(
        &self,
        name: &key_index::KeyRef<'_>,
    ) -> Result<Option<key_index::KeyEntry>, IndexError> {
        if !self.may_hold(name)? {
            return Ok(None);
        }
        let fences = self.section(Section::Fences)?;
        let Some(range) = key_index::block_for(&fences, name) else {
            return Ok(None);
        };
        let block = self.name_block(range)?;
        key_index::find_in(&block, name).map_err(|_| IndexError::Damaged)
    }

    /// Hands over the hash of every client id.
    pub(crate) fn client_id_hashes(&self, mut each: impl FnMut(u64)) -> Result<(), IndexError> {
        let fences = self.load(Section::Fences)?;
        let from = key_index::KeyRef {
            space: OWN_ID_SPACE,
            topic: 0,
            name: b"",
        };
        for range in key_index::blocks_from(&fences, &from) {
            let block = self.name_block(range)?;
            for (name, _) in key_index::entries(&block).map_err(|_| IndexError::Damaged)? {
                if name.space != OWN_ID_SPACE {
                    return Ok(());
                }
                each(key_index::hash(&name));
            }
        }
        Ok(())
    }

    /// A block of the name table; its entries check themselves.
    pub(crate) fn name_block(&self, range: Range<u32>) -> Result<Vec<u8>, IndexError> {
        let (offset, length, _) = self.sections[Section::KeyBlocks as usize];
        if range.start > range.end || u64::from(range.end) > length {
            return Err(IndexError::Damaged);
        }
        let mut block = vec![0; range.len()];
        let read = self
            .file
            .read_at(&mut block, offset + u64::from(range.start))?;
        if read == block.len() {
            Ok(block)
        } else {
            Err(IndexError::Damaged)
        }
    }
}

impl Point {
    fn of(entry: &ActiveEntry) -> Self {
        Self {
            seq: entry.seq,
            ts: entry.ts,
            offset: entry.offset,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.seq.to_le_bytes());
        out.extend_from_slice(&self.ts.to_le_bytes());
        out.extend_from_slice(&self.offset.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Self {
        let u64_at = |at: usize| {
            let mut array = [0; 8];
            array.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(array)
        };
        Self {
            seq: u64_at(0),
            ts: u64_at(8),
            offset: u32::from_le_bytes([bytes[16], bytes[17], bytes[18], bytes[19]]),
        }
    }
}

/// Points as they are in a section, one after the other.
#[derive(Clone, Copy)]
pub(crate) struct Points<'a>(&'a [u8]);

impl<'a> Points<'a> {
    /// The points of `range` in `section`, as far as they are there.
    pub(crate) fn of(section: &'a [u8], range: &Range<u32>) -> Self {
        let bytes = range.start as usize * POINT_BYTES..range.end as usize * POINT_BYTES;
        Self(section.get(bytes).unwrap_or_default())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len() / POINT_BYTES
    }

    pub(crate) fn get(&self, at: usize) -> Option<Point> {
        let bytes = self.0.get(at * POINT_BYTES..(at + 1) * POINT_BYTES)?;
        Some(Point::read(bytes))
    }

    /// How many points at the front satisfy `holds`, which must hold for a prefix only.
    pub(crate) fn partition_point(&self, holds: impl Fn(&Point) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle).is_some_and(|point| holds(&point)) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        low
    }
}
