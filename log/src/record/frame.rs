//! The frame around every record: `length u32 | checksum u32 | kind u8 | flags u8 | …`, little-endian. The length
//! counts what follows the checksum; the checksum is the low half of XXH3-64 over exactly that.

use xxhash_rust::xxh3::xxh3_64;

/// Bytes of length and checksum.
pub(crate) const FRAME_BYTES: usize = 8;
/// Flag of the last record of a batch; a batch without it at the end of the log was never acknowledged.
pub(crate) const LAST_OF_BATCH: u8 = 1;
/// No record is longer than this behind its checksum; a length above it is damage.
pub const MAX_RECORD_BYTES: usize = 64 << 20;

/// What a record is. The numbers are on disk: a retired one is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Event = 1,
    KeyedPut = 2,
    KeyedDelete = 3,
    TopicPut = 4,
    TopicDelete = 5,
    Trim = 6,
    CheckpointEnd = 7,
    Synced = 8,
    TopicProgress = 10,
    SegmentEnd = 11,
}

impl Kind {
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Event,
            2 => Self::KeyedPut,
            3 => Self::KeyedDelete,
            4 => Self::TopicPut,
            5 => Self::TopicDelete,
            6 => Self::Trim,
            7 => Self::CheckpointEnd,
            8 => Self::Synced,
            10 => Self::TopicProgress,
            11 => Self::SegmentEnd,
            _ => return None,
        })
    }
}

/// A checked frame inside a block of bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) kind: Kind,
    pub(crate) flags: u8,
    /// Bytes of the whole record, frame included.
    pub(crate) bytes: usize,
}

/// Why there is no record at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameError {
    /// The block ends before the record does; it needs this many bytes from its start.
    Short { needed: usize },
    /// The bytes are not a record.
    Damaged,
}

/// Starts a record at the end of `out` and returns where.
pub(crate) fn start_frame(out: &mut Vec<u8>, kind: Kind, flags: u8) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; FRAME_BYTES]);
    out.push(kind as u8);
    out.push(flags);
    start
}

/// Fills in length and checksum of the record that started at `start` and ends where `out` ends.
pub(crate) fn finish_frame(out: &mut [u8], start: usize) {
    let content = &out[start + FRAME_BYTES..];
    let length = content.len() as u32;
    let checksum = xxh3_64(content) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    out[start + 4..start + FRAME_BYTES].copy_from_slice(&checksum.to_le_bytes());
}

/// Checks the record at `at`.
pub(crate) fn read_frame(block: &[u8], at: usize) -> Result<Frame, FrameError> {
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
    let kind = Kind::from_byte(content[0]).ok_or(FrameError::Damaged)?;
    Ok(Frame {
        kind,
        flags: content[1],
        bytes: FRAME_BYTES + length,
    })
}

/// A little-endian integer that the caller knows to lie inside `bytes`.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut array = [0; 4];
    array.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(array)
}
