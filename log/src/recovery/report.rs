//! What opening a log found, and why it could not be opened.

use prombus_store::{Damage, DamagedEvent};
use std::io;

/// Why a folder could not be opened as a log. Nothing in it was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder holds something else.
    #[error("the folder holds files but no log: {found} is none of ours; choose an empty folder")]
    NotALog {
        /// One of the files.
        found: String,
    },
    /// Nothing is there, and nothing was to be made.
    #[error("the folder holds no log")]
    NoLog,
    /// A newer prombus wrote it.
    #[error(
        "the log has format {version}, this version reads up to {readable}; use a newer prombus"
    )]
    NewerFormat {
        /// The format that was found.
        version: u16,
        /// The newest one this code reads.
        readable: u16,
    },
    /// Another process has it open.
    #[error("another process has this log open")]
    InUse,
    /// The folder holds a copy of another log.
    #[error("the folder holds a copy of log {found:016x}, not of {expected:016x}")]
    OtherLog {
        /// The id of the log it is a copy of.
        found: u64,
        /// The id that was asked for.
        expected: u64,
    },
    /// An option is larger than the format allows.
    #[error("{name} may be at most {limit}")]
    OptionTooLarge {
        /// The option's name.
        name: &'static str,
        /// Its bound.
        limit: u64,
    },
    /// The disk failed.
    #[error("opening the log failed: {0}")]
    Io(#[from] io::Error),
}

/// What opening a log found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenReport {
    /// All damage that is known, new and old.
    pub damage: Vec<Damage>,
    /// The unacknowledged tail that was cut off.
    pub cut_tail: Option<CutTail>,
}

/// Bytes at the end of the log that were not whole. No answer was given for what they held, unless the disk itself
/// damaged them; they are kept in `cut-tail.bytes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutTail {
    /// The segment.
    pub segment: u64,
    /// How many bytes were cut.
    pub bytes: u64,
    /// The events that can be told from them.
    pub events: Vec<DamagedEvent>,
}
