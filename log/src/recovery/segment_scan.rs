//! A first look at a segment in commit order: where its last whole batch ends, and what is damaged before that.

use super::{CUT_TAIL_NAME, CutTail};
use crate::damage::{describe, write_whole};
use crate::files::{File, Files};
use crate::record::{Kind, LAST_OF_BATCH, StateRecord};
use crate::segment::{Found, HEADER_BYTES, Scanner, data_name};
use std::io;
use std::ops::Range;

/// How much is read at a time in search of the end of zeros.
const ZEROS_AT_A_TIME: u64 = 64 << 10;

/// Given as what is proven of a segment, it says that the segment once was whole up to its checkpoint.
pub(crate) const CHECKPOINT_BYTES: u64 = HEADER_BYTES + 1;

/// What a look at a segment found.
#[derive(Debug)]
pub(crate) struct SegmentScan {
    /// Behind the last whole batch that counts.
    pub(crate) end: u64,
    /// So many bytes are known to have been synced.
    pub(crate) proven: u64,
    /// The segment got as far as its checkpoint, so that something in it may have been acknowledged.
    pub(crate) has_checkpoint: bool,
    /// The file's length without the zeros at its end, which may have been written ahead for records to come.
    pub(crate) file_bytes: u64,
    /// Bad stretches before the end: lost by the disk, since a later record proves that they were synced.
    pub(crate) damage: Vec<Range<u64>>,
    /// Behind the checkpoint, if it has its end.
    pub(crate) checkpoint_end: Option<u64>,
    /// Whole records of any kind.
    records: u64,
}

impl SegmentScan {
    /// Looks at a segment of which at least `proven` bytes were synced. A bad stretch behind what is proven ends the
    /// log: it is what a crash leaves of writes that were never acknowledged.
    pub(crate) fn of_file(files: &dyn Files, number: u64, proven: u64) -> io::Result<Self> {
        let file = files.open(&data_name(number))?;
        let whole_bytes = file.bytes()?;
        let mut scanner = Scanner::whole(file.clone(), whole_bytes);
        let mut proven = proven;
        let mut batch_end = HEADER_BYTES.min(whole_bytes);
        let mut checkpoint_end = None;
        let mut records = 0;
        // Each with where the last whole batch before it ends.
        let mut bad: Vec<(Range<u64>, u64)> = Vec::new();
        while let Some(found) = scanner.next()? {
            let (at, frame, block, in_block) = match found {
                Found::Damage { from, to } => {
                    bad.push((from..to, batch_end));
                    continue;
                }
                Found::Record {
                    at,
                    frame,
                    block,
                    in_block,
                } => (at, frame, block, in_block),
            };
            records += 1;
            let end = at + frame.bytes as u64;
            if frame.flags & LAST_OF_BATCH != 0 {
                batch_end = end;
            }
            if frame.kind == Kind::CheckpointEnd {
                checkpoint_end = Some(end);
            }
            if frame.kind == Kind::Synced
                && let Some(StateRecord::Synced { bytes }) =
                    StateRecord::read(&block, in_block, &frame)
            {
                proven = proven.max(bytes);
            }
        }
        let mut file_bytes = whole_bytes;
        if let Some((last, _)) = bad.last_mut()
            && last.end == whole_bytes
            && last.start >= proven
        {
            file_bytes = without_zeros(&*file, last.clone())?;
            last.end = file_bytes;
        }
        bad.retain(|(range, _)| !range.is_empty());
        if proven >= CHECKPOINT_BYTES {
            let first_bad = bad.first().map_or(0, |(range, _)| range.start + 1);
            proven = proven.max(checkpoint_end.unwrap_or(first_bad));
        }
        let torn = bad.iter().find(|(range, _)| range.start >= proven);
        let end = torn.map_or(batch_end, |(_, before)| *before);
        // What was synced ended with a whole batch, even where its last record is damaged now or, in a segment that
        // is grouped by topic, is elsewhere.
        let end = end.max(proven.min(file_bytes));
        let damage = bad
            .into_iter()
            .map(|(range, _)| range)
            .filter(|range| range.start < end || range.start < proven)
            .collect();
        let checkpoint_end = checkpoint_end.filter(|&at| at <= end);
        Ok(Self {
            end,
            proven,
            has_checkpoint: checkpoint_end.is_some() || proven >= CHECKPOINT_BYTES,
            file_bytes,
            damage,
            checkpoint_end,
            records,
        })
    }

    /// Whether there is anything of a log in the file.
    pub(crate) fn is_log(&self) -> bool {
        self.records > 0
    }

    /// Moves what is behind the end aside and reports what it was.
    pub(crate) fn cut_tail(&self, files: &dyn Files, segment: u64) -> io::Result<CutTail> {
        let file = files.open(&data_name(segment))?;
        let mut bytes = vec![0; (self.file_bytes - self.end) as usize];
        let read = file.read_at(&mut bytes, self.end)?;
        bytes.truncate(read);
        write_whole(files, CUT_TAIL_NAME, &bytes)?;
        let described = describe(segment, self.end, &bytes);
        Ok(CutTail {
            segment,
            bytes: self.file_bytes - self.end,
            events: described.events,
        })
    }
}

/// The end of a stretch without the zeros that it ends with.
fn without_zeros(file: &dyn File, stretch: Range<u64>) -> io::Result<u64> {
    let mut end = stretch.end;
    while end > stretch.start {
        let from = end.saturating_sub(ZEROS_AT_A_TIME).max(stretch.start);
        let mut bytes = vec![0; (end - from) as usize];
        let read = file.read_at(&mut bytes, from)?;
        if let Some(last) = bytes[..read].iter().rposition(|&byte| byte != 0) {
            return Ok(from + last as u64 + 1);
        }
        end = from;
    }
    Ok(end)
}
