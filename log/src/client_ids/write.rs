//! Writing a run.

use super::run::{
    BLOCK_BYTES, BLOCK_ENTRIES, BLOCKS_AT, Covered, IdEntry, IdRun, MAGIC, VERSION, block_checksum,
    checksum_of, run_name,
};
use crate::files::{File, Files};
use crate::filter::{FilterBuilder, HugeBytes};
use crate::segment::index::IndexError;
use crate::segment::unfinished;
use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Bits of a run's filter for each id: less than one of a hundred ids that are not there costs a block. Some ten runs are
/// asked, so that with 8 bits it was one of five.
const FILTER_BITS: usize = 12;
/// How much is written at a time.
const WRITE_BYTES: usize = 256 << 10;
/// A sync never has more than this to write out, so that others' syncs do not queue behind it.
const SYNC_BYTES: u64 = 4 << 20;

/// Writes the entries of a run in ascending order.
pub(crate) struct RunWriter {
    file: Arc<dyn File>,
    segments: RangeInclusive<u64>,
    log_id: u64,
    seed: u64,
    /// Blocks that are not written yet; the last one is open.
    buffer: Vec<u8>,
    written: u64,
    synced: u64,
    entries: u64,
    last: Option<IdEntry>,
    fences: Vec<u64>,
    filter: Option<FilterBuilder>,
}

impl RunWriter {
    /// A run for `segments` with at most `most_entries`. It gets a filter if that is no larger than the limit.
    pub(crate) fn create(
        files: &dyn Files,
        log_id: u64,
        segments: RangeInclusive<u64>,
        most_entries: u64,
        filter_limit_bytes: usize,
    ) -> io::Result<Self> {
        let mut what = Vec::with_capacity(32);
        for number in [log_id, *segments.start(), *segments.end(), most_entries] {
            what.extend_from_slice(&number.to_le_bytes());
        }
        let filter = FilterBuilder::new(most_entries as usize, FILTER_BITS, filter_limit_bytes);
        Ok(Self {
            file: files.create(&unfinished(&run_name(&segments)))?,
            segments,
            log_id,
            seed: xxh3_64(&what),
            buffer: Vec::with_capacity(WRITE_BYTES),
            written: BLOCKS_AT,
            synced: BLOCKS_AT,
            entries: 0,
            last: None,
            fences: Vec::new(),
            filter,
        })
    }

    /// Adds an entry that is not smaller than the one before. Equal ones are kept once.
    pub(crate) fn push(&mut self, entry: IdEntry) -> io::Result<()> {
        debug_assert!(self.last <= Some(entry), "entries must ascend");
        if self.last == Some(entry) {
            return Ok(());
        }
        if self.entries.is_multiple_of(BLOCK_ENTRIES as u64) {
            self.close_block()?;
            self.fences.push(entry.hash);
            self.buffer.extend_from_slice(&[0; 8]);
        }
        let ahead = entry.segment.saturating_sub(*self.segments.start()) as u32;
        self.buffer.extend_from_slice(&entry.hash.to_le_bytes());
        self.buffer.extend_from_slice(&ahead.to_le_bytes());
        if let Some(filter) = &mut self.filter {
            filter.insert(entry.hash);
        }
        self.entries += 1;
        self.last = Some(entry);
        Ok(())
    }

    /// Puts the run in its place. Returns it with its filter.
    pub(crate) fn finish(
        mut self,
        files: &dyn Files,
        covered: &[Covered],
    ) -> io::Result<(IdRun, Option<HugeBytes>)> {
        self.close_block()?;
        self.flush()?;
        let fences: Vec<u8> = self
            .fences
            .iter()
            .flat_map(|one| one.to_le_bytes())
            .collect();
        let filter = self.filter.map(FilterBuilder::into_bytes);
        let filter_bytes = filter.as_deref().unwrap_or_default();
        let mut table = Vec::new();
        covered.iter().for_each(|one| one.write(&mut table));
        let mut at = self.written;
        for part in [&fences[..], filter_bytes, &table] {
            self.file.write_at(part, at)?;
            at += part.len() as u64;
        }
        let mut header = Vec::with_capacity(BLOCK_BYTES);
        header.extend_from_slice(MAGIC);
        header.extend_from_slice(&VERSION.to_le_bytes());
        header.extend_from_slice(&[0; 2]);
        header.extend_from_slice(&(covered.len() as u32).to_le_bytes());
        let checksum = checksum_of([&fences, filter_bytes, &table]);
        let filter_length = filter_bytes.len() as u64;
        for number in [
            self.log_id,
            self.entries,
            filter_length,
            self.seed,
            checksum,
        ] {
            header.extend_from_slice(&number.to_le_bytes());
        }
        header.extend_from_slice(&xxh3_64(&header).to_le_bytes());
        header.resize(BLOCK_BYTES, 0);
        self.file.write_at(&header, 0)?;
        self.file.sync()?;
        let name = run_name(&self.segments);
        files.rename(&unfinished(&name), &name)?;
        files.sync_names()?;
        let run = IdRun::open(files, &name, self.log_id).map_err(|error| match error {
            IndexError::Io(error) => error,
            IndexError::Damaged => io::Error::other("an id run that was just written is damaged"),
        })?;
        Ok((run, filter))
    }

    /// Fills up the open block and gives it its checksum.
    fn close_block(&mut self) -> io::Result<()> {
        let Some(number) = self.fences.len().checked_sub(1) else {
            return Ok(());
        };
        let start = self.buffer.len() / BLOCK_BYTES * BLOCK_BYTES;
        if start == self.buffer.len() {
            return Ok(());
        }
        self.buffer.resize(start + BLOCK_BYTES, 0);
        let block = &mut self.buffer[start..];
        let checksum = block_checksum(block, self.seed, number);
        block[..8].copy_from_slice(&checksum.to_le_bytes());
        if self.buffer.len() >= WRITE_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_at(&self.buffer, self.written)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        if self.written - self.synced >= SYNC_BYTES {
            self.file.sync()?;
            self.synced = self.written;
        }
        Ok(())
    }
}
