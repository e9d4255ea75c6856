//! The first 64 bytes of a segment.
//!
//! ```text
//!  0 magic "PROMBUS\n" | 8 format version u16 | 10 layout u8 | 11 recorded u8 | 12 generation u32
//! 16 log id u64 | 24 number u64 | 32 covers up to u64 | 40 created ms u64 | 48 zero u64
//! 56 checksum u64 (XXH3-64 of the 56 bytes before)
//! ```

use xxhash_rust::xxh3::xxh3_64;

/// The format this code writes. It reads this one and all before it.
pub(crate) const FORMAT_VERSION: u16 = 2;
/// Records start here.
pub(crate) const HEADER_BYTES: u64 = 64;

const MAGIC: &[u8; 8] = b"PROMBUS\n";
const CHECKED: usize = 56;
/// Set in segments of a log that keeps a record of its segments: without that record it has lost something.
const RECORDED: u8 = 1;

/// How a segment's records are arranged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Layout {
    /// In the order of their commits, state records among them, a checkpoint first.
    Active = 1,
    /// Events only, topic by topic, each in the order of positions.
    Grouped = 2,
}

/// What a segment says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) layout: Layout,
    /// Counts the rewrites, so that an index can tell whether it belongs to this one.
    pub(crate) generation: u32,
    pub(crate) log_id: u64,
    pub(crate) number: u64,
    /// The last segment that was merged into this one; usually itself.
    pub(crate) covers_to: u64,
    pub(crate) created_ms: u64,
}

/// Why a header cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderError {
    /// It is intact and says that a newer version wrote the segment.
    Newer { version: u16 },
    /// It is not a header, or not any more.
    Damaged,
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_BYTES as usize);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        out.extend_from_slice(&[self.layout as u8, RECORDED]);
        out.extend_from_slice(&self.generation.to_le_bytes());
        for number in [self.log_id, self.number, self.covers_to, self.created_ms, 0] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&xxh3_64(&out).to_le_bytes());
        out
    }

    /// Whether a crash may have left this of a file that was to start with a header.
    pub(crate) fn may_be_unfinished(bytes: &[u8]) -> bool {
        let shown = bytes.len().min(MAGIC.len());
        bytes[..shown] == MAGIC[..shown] || bytes.iter().all(|&byte| byte == 0)
    }

    /// Whether a sound header says that the log keeps a record of its segments.
    pub(crate) fn is_recorded(bytes: &[u8]) -> bool {
        Self::decode(bytes).is_ok() && bytes[11] & RECORDED != 0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, HeaderError> {
        let bytes = bytes
            .get(..HEADER_BYTES as usize)
            .ok_or(HeaderError::Damaged)?;
        let u64_at = |at: usize| {
            let mut array = [0; 8];
            array.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(array)
        };
        if !bytes.starts_with(MAGIC) || xxh3_64(&bytes[..CHECKED]) != u64_at(CHECKED) {
            return Err(HeaderError::Damaged);
        }
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        if version > FORMAT_VERSION {
            return Err(HeaderError::Newer { version });
        }
        let layout = match bytes[10] {
            1 => Layout::Active,
            2 => Layout::Grouped,
            _ => return Err(HeaderError::Damaged),
        };
        Ok(Self {
            layout,
            generation: u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]),
            log_id: u64_at(16),
            number: u64_at(24),
            covers_to: u64_at(32),
            created_ms: u64_at(40),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn headers_round_trip_and_notice_flips(
            grouped: bool, generation: u32, numbers: [u64; 4], flip in 0usize..512,
        ) {
            let [log_id, number, covers_to, created_ms] = numbers;
            let layout = if grouped { Layout::Grouped } else { Layout::Active };
            let header = SegmentHeader { layout, generation, log_id, number, covers_to, created_ms };
            let mut bytes = header.encode();
            prop_assert_eq!(SegmentHeader::decode(&bytes), Ok(header));
            bytes[flip / 8] ^= 1 << (flip % 8);
            prop_assert_eq!(SegmentHeader::decode(&bytes), Err(HeaderError::Damaged));
        }
    }

    #[test]
    fn a_newer_version_is_told_from_damage() {
        let header = SegmentHeader {
            layout: Layout::Active,
            generation: 0,
            log_id: 1,
            number: 1,
            covers_to: 1,
            created_ms: 0,
        };
        let mut bytes = header.encode();
        bytes[8] = 9;
        let checksum = xxh3_64(&bytes[..CHECKED]).to_le_bytes();
        bytes[CHECKED..].copy_from_slice(&checksum);
        assert_eq!(
            SegmentHeader::decode(&bytes),
            Err(HeaderError::Newer { version: 9 })
        );
    }
}
