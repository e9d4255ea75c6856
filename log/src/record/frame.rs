//! The kinds of records that a segment consists of. Their frame is that of every record: see
//! [`prombus_store::record`].

use prombus_store::record::{self, EVENT_KIND, FrameError};

/// What a record is. The numbers are on disk: a retired one is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Event = EVENT_KIND,
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
            EVENT_KIND => Self::Event,
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

/// Checks the record at `at`.
pub(crate) fn read_frame(block: &[u8], at: usize) -> Result<Frame, FrameError> {
    let frame = record::read_frame(block, at)?;
    Ok(Frame {
        kind: Kind::from_byte(frame.kind).ok_or(FrameError::Damaged)?,
        flags: frame.flags,
        bytes: frame.bytes,
    })
}
