//! Walking through a segment's records, over damage too: behind a bad stretch the next whole record is looked for.

use super::header::HEADER_BYTES;
use crate::files::File;
use crate::record::{FRAME_BYTES, Frame, FrameError, Kind, read_frame};
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// How much is read at a time where a whole segment is gone through.
const WHOLE_SEGMENT_BLOCK_BYTES: usize = 1 << 20;

/// What is at a place.
#[derive(Debug)]
pub(crate) enum Found {
    /// A whole record, at `in_block` of `block`.
    Record {
        at: u64,
        frame: Frame,
        block: Arc<Vec<u8>>,
        in_block: usize,
    },
    /// Bytes that are no record. If `to` is the end of the file, nothing whole follows.
    Damage { from: u64, to: u64 },
}

/// Reads a segment from front to back.
pub(crate) struct Scanner {
    file: Arc<dyn File>,
    at: u64,
    end: u64,
    block: Arc<Vec<u8>>,
    block_at: u64,
    block_bytes: usize,
}

impl Scanner {
    /// Starts behind the header and goes up to `end`.
    pub(crate) fn whole(file: Arc<dyn File>, end: u64) -> Self {
        let range = HEADER_BYTES.min(end)..end;
        Self::over(file, range, WHOLE_SEGMENT_BLOCK_BYTES)
    }

    /// Goes through `range`, reading `block_bytes` at a time. A record keeps its whole block in memory.
    pub(crate) fn over(file: Arc<dyn File>, range: Range<u64>, block_bytes: usize) -> Self {
        Self {
            file,
            at: range.start,
            end: range.end,
            block: Arc::default(),
            block_at: 0,
            block_bytes,
        }
    }

    /// Goes on at another place, where a record is said to begin.
    pub(crate) fn seek(&mut self, at: u64) {
        self.at = at;
    }

    /// The next record or bad stretch, `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Found>> {
        if self.at >= self.end {
            return Ok(None);
        }
        let at = self.at;
        if let Some(found) = self.record_at(at)? {
            return Ok(Some(found));
        }
        // Most damage leaves the length alone, and then the next record is easily found.
        let resumes_at = match self.after_claimed_length(at)? {
            Some(next) if self.record_at(next)?.is_some() => next,
            _ => self.next_whole_record(at + 1)?,
        };
        self.at = resumes_at;
        Ok(Some(Found::Damage {
            from: at,
            to: resumes_at,
        }))
    }

    /// Where the first whole record at or behind `from` starts; the end where there is none.
    fn next_whole_record(&mut self, from: u64) -> io::Result<u64> {
        let mut candidate = from;
        while candidate < self.end {
            if self.looks_like_record(candidate)? && self.record_at(candidate)?.is_some() {
                return Ok(candidate);
            }
            candidate = (candidate + 1).max(self.behind_zeros(candidate)?);
        }
        Ok(self.end)
    }

    /// Where a record may begin if nothing but zeros follows for a while, as in room that was made ahead: its length is
    /// not zero.
    fn behind_zeros(&mut self, at: u64) -> io::Result<u64> {
        const LENGTH_BYTES: u64 = 4;
        self.load(at, FRAME_BYTES)?;
        let in_block = (at - self.block_at) as usize;
        let rest = self.block.get(in_block..).unwrap_or_default();
        let zeros = rest.iter().take_while(|&&byte| byte == 0).count() as u64;
        Ok(at + zeros.saturating_sub(LENGTH_BYTES - 1))
    }

    /// The whole record at `at`; moves behind it.
    fn record_at(&mut self, at: u64) -> io::Result<Option<Found>> {
        let mut needed = FRAME_BYTES;
        loop {
            self.load(at, needed)?;
            let in_block = (at - self.block_at) as usize;
            match read_frame(&self.block, in_block) {
                Ok(frame) => {
                    self.at = at + frame.bytes as u64;
                    let block = self.block.clone();
                    return Ok(Some(Found::Record {
                        at,
                        frame,
                        block,
                        in_block,
                    }));
                }
                Err(FrameError::Short { needed: more })
                    if more > needed && at + more as u64 <= self.end =>
                {
                    needed = more;
                }
                Err(_) => return Ok(None),
            }
        }
    }

    /// Where the next record starts if the length at `at` can be believed.
    fn after_claimed_length(&mut self, at: u64) -> io::Result<Option<u64>> {
        self.load(at, FRAME_BYTES)?;
        let in_block = (at - self.block_at) as usize;
        let length = self
            .block
            .get(in_block..in_block + 4)
            .map(|bytes| u64::from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])));
        let next = length.map(|length| at + FRAME_BYTES as u64 + length);
        Ok(next.filter(|&next| next > at + 1 && next < self.end))
    }

    /// A cheap look before a checksum is computed: the kind and the flags have few values.
    fn looks_like_record(&mut self, at: u64) -> io::Result<bool> {
        self.load(at, FRAME_BYTES + 2)?;
        let in_block = (at - self.block_at) as usize;
        let kind_and_flags = self
            .block
            .get(in_block + FRAME_BYTES..in_block + FRAME_BYTES + 2);
        Ok(
            kind_and_flags
                .is_some_and(|bytes| Kind::from_byte(bytes[0]).is_some() && bytes[1] < 16),
        )
    }

    /// Sees to it that the block holds `needed` bytes from `at`, as far as the file goes.
    fn load(&mut self, at: u64, needed: usize) -> io::Result<()> {
        let block_end = self.block_at + self.block.len() as u64;
        let wanted_end = (at + needed as u64).min(self.end);
        if at >= self.block_at && wanted_end <= block_end {
            return Ok(());
        }
        let bytes = (self.end - at).min(needed.max(self.block_bytes) as u64);
        self.block = Arc::new(self.file.read_block(at, bytes as usize)?);
        self.block_at = at;
        Ok(())
    }
}
