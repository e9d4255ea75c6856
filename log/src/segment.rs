//! Segments: the files the log consists of. A segment first holds its records in commit order (`active`); once
//! full it is sealed, which means that its events are grouped by topic and have an index on disk (`sealed`, `index`).

pub(crate) mod active;
pub(crate) mod cache;
mod header;
pub(crate) mod index;
mod scan;
pub(crate) mod sealed;

pub(crate) use header::{FORMAT_VERSION, HEADER_BYTES, HeaderError, Layout, SegmentHeader};
pub(crate) use scan::{Found, Scanner};

/// The name of a segment's data file.
pub(crate) fn data_name(number: u64) -> String {
    format!("{number:016x}.seg")
}

/// The name of a sealed segment's index file.
pub(crate) fn index_name(number: u64) -> String {
    format!("{number:016x}.idx")
}

/// The name a file has until it is whole.
pub(crate) fn unfinished(name: &str) -> String {
    format!("{name}.new")
}

/// The number of the segment that a data file holds.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    number_before(name, ".seg")
}

/// The number of the segment that an index file is for.
pub(crate) fn index_number_of(name: &str) -> Option<u64> {
    number_before(name, ".idx")
}

fn number_before(name: &str, suffix: &str) -> Option<u64> {
    let digits = name.strip_suffix(suffix)?;
    (digits.len() == 16).then(|| u64::from_str_radix(digits, 16).ok())?
}
