//! The frame around every record: `length u32 | checksum u32 | kind u8 | flags u8 | …`, little-endian. The length
//! counts what follows the checksum; the checksum is the low half of XXH3-64 over exactly that.

use xxhash_rust::xxh3::xxh3_64;

/// Bytes of length and checksum.
pub const FRAME_BYTES: usize = 8;
/// Flag of the last record of a batch; a batch without it at the end of a log was never acknowledged.
pub const LAST_OF_BATCH: u8 = 1;
/// No record is longer than this behind its checksum; a length above it is damage.
pub const MAX_RECORD_BYTES: usize = 64 << 20;
/// The kind of an event's record. Other kinds belong to the stores that write them.
pub const EVENT_KIND: u8 = 1;

/// A frame inside a block of bytes whose checksum holds.
#[derive(Debug, Clone, Copy)]
pub struct RawFrame {
    /// What kind of record it is.
    pub kind: u8,
    /// [`LAST_OF_BATCH`], and what the kind defines.
    pub flags: u8,
    /// Bytes of the whole record, frame included.
    pub bytes: usize,
}

/// Why there is no record at an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// The block ends before the record does.
    Short {
        /// How many bytes the record needs from its start.
        needed: usize,
    },
    /// The bytes are not a record.
    Damaged,
}

/// Starts a record at the end of `out` and returns where.
pub fn start_frame(out: &mut Vec<u8>, kind: u8, flags: u8) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; FRAME_BYTES]);
    out.push(kind);
    out.push(flags);
    start
}

/// Fills in length and checksum of the record that started at `start` and ends where `out` ends.
pub fn finish_frame(out: &mut [u8], start: usize) {
    let content = &out[start + FRAME_BYTES..];
    let length = content.len() as u32;
    let checksum = xxh3_64(content) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    out[start + 4..start + FRAME_BYTES].copy_from_slice(&checksum.to_le_bytes());
}

/// Checks the record at `at`.
pub fn read_frame(block: &[u8], at: usize) -> Result<RawFrame, FrameError> {
    let rest = block.get(at..).unwrap_or_default();
    let Some((frame, content)) = rest.split_at_checked(FRAME_BYTES) else {
        return Err(FrameError::Short {
            needed: FRAME_BYTES,
        });
    };
    let length = u32_at(frame, 0) as usize;
    if !(2..=MAX_RECORD_BYTES).contains(&length) {
        return Err(FrameError::Damaged);
    }
    let Some(content) = content.get(..length) else {
        return Err(FrameError::Short {
            needed: FRAME_BYTES + length,
        });
    };
    if xxh3_64(content) as u32 != u32_at(frame, 4) {
        return Err(FrameError::Damaged);
    }
    Ok(RawFrame {
        kind: content[0],
        flags: content[1],
        bytes: FRAME_BYTES + length,
    })
}

/// A little-endian integer that the caller knows to are inside `bytes`.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut array = [0; 4];
    array.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(array)
}
