//! The mark that a properly closed log leaves: how long its last segment was and where each topic ended. A log that is
//! shorter than its mark has lost something that was acknowledged.

use crate::damage::{read_whole, write_whole};
use crate::files::Files;
use std::io;
use xxhash_rust::xxh3::xxh3_64;

pub(crate) const CLOSED_NAME: &str = "CLOSED";
const MAGIC: &[u8; 8] = b"PROMEN2\n";
/// What the mark began with before it named its log.
const NAMELESS_MAGIC: &[u8; 8] = b"PROMEND\n";

/// Where a log ended when it was closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClosedMark {
    /// The log it belongs to, where it says so.
    pub(crate) log_id: Option<u64>,
    pub(crate) segment: u64,
    pub(crate) segment_bytes: u64,
    /// Each topic's number and next position.
    pub(crate) next_seqs: Vec<(u32, u64)>,
}

impl ClosedMark {
    pub(crate) fn write(&self, files: &dyn Files) -> io::Result<()> {
        write_whole(files, CLOSED_NAME, &self.encode())
    }

    /// Reads the mark; `None` where there is none or it makes no sense.
    pub(crate) fn read(files: &dyn Files) -> Option<Self> {
        Self::decode(&read_whole(files, CLOSED_NAME).ok()?)
    }

    /// Takes the mark away, because the log will be written to.
    pub(crate) fn remove(files: &dyn Files) -> io::Result<()> {
        match files.remove(CLOSED_NAME) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => files.sync_names(),
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = match self.log_id {
            Some(log_id) => [&MAGIC[..], &log_id.to_le_bytes()].concat(),
            None => NAMELESS_MAGIC.to_vec(),
        };
        out.extend_from_slice(&self.segment.to_le_bytes());
        out.extend_from_slice(&self.segment_bytes.to_le_bytes());
        for (number, next_seq) in &self.next_seqs {
            out.extend_from_slice(&number.to_le_bytes());
            out.extend_from_slice(&next_seq.to_le_bytes());
        }
        out.extend_from_slice(&xxh3_64(&out).to_le_bytes());
        out
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (content, checksum) = bytes.split_at_checked(bytes.len().checked_sub(8)?)?;
        if checksum != xxh3_64(content).to_le_bytes() {
            return None;
        }
        let u64_of = |bytes: &[u8]| Some(u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?));
        let (log_id, content) = match content.strip_prefix(MAGIC) {
            Some(content) => (Some(u64_of(content)?), content.get(8..)?),
            None => (None, content.strip_prefix(NAMELESS_MAGIC)?),
        };
        let next_seqs = content.get(16..)?.chunks_exact(12).map(|entry| {
            let number = u32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]);
            Some((number, u64_of(&entry[4..])?))
        });
        Some(Self {
            log_id,
            segment: u64_of(content)?,
            segment_bytes: u64_of(&content[8..])?,
            next_seqs: next_seqs.collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn marks_round_trip_and_notice_flips(
            log_id: Option<u64>, segment: u64, segment_bytes: u64, next_seqs: Vec<(u32, u64)>, flip: proptest::sample::Index,
        ) {
            let mark = ClosedMark { log_id, segment, segment_bytes, next_seqs };
            let mut bytes = mark.encode();
            prop_assert_eq!(ClosedMark::decode(&bytes), Some(mark));
            let bit = flip.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(ClosedMark::decode(&bytes), None);
        }
    }
}
