//! Snapshots: an image of a copy at one position of the shared log, kept in chunks beside the log, so that a node can start
//! without the messages before it and the log can be trimmed.
//!
//! A snapshot has the number of its position. Its files one behind the other are one run of bytes, cut into chunks 1, 2,
//! 3 …; chunk 0 is the manifest, written last: a snapshot without it does not count. All numbers are little-endian:
//!
//! | chunk | bytes | what |
//! |---|---|---|
//! | k ≥ 1 | 0–3, 4–11, 12–15 | `pbs1`, the snapshot's position, k |
//! | | 16– | its piece of the files |
//! | | last 8 | xxh3 of everything before |
//! | 0 | 0–3, 4–11, 12–19 | `pbm1`, the log's number, the position |
//! | | 20–23, 24–31 | how many chunks there are behind it, and the xxh3 of all their checksums |
//! | | for each file | length of its name (2 bytes), name, bytes that the chunks hold (8), length of the file (8) |
//! | | last 8 | xxh3 of everything before |

pub(crate) mod load;
pub(crate) mod make;

use crate::shared_log::Unavailable;
use bytes::{BufMut, Bytes, BytesMut};
use prombus_store::Answer;
use xxhash_rust::xxh3::xxh3_64;

const CHUNK_MAGIC: &[u8; 4] = b"pbs1";
const MANIFEST_MAGIC: &[u8; 4] = b"pbm1";
const CHUNK_HEAD_BYTES: usize = 16;
const MANIFEST_HEAD_BYTES: usize = 32;
const CHECKSUM_BYTES: usize = 8;
/// The largest piece of a snapshot; smaller where the log takes smaller messages.
const MAX_PIECE_BYTES: usize = 512 << 10;

/// Where snapshots are kept: small binary objects by the number of their snapshot and their own.
///
/// Obligations: `put` answers `Ok` when the chunk is as durable as a commit of the log; a chunk may be put again. `get` and
/// `list` see what was put before they were asked.
pub trait Snapshots: Send + Sync + 'static {
    /// Keeps a chunk.
    fn put(&self, snapshot: u64, chunk: u32, bytes: Bytes) -> Answer<(), Unavailable>;

    /// A chunk, if there is one.
    fn get(&self, snapshot: u64, chunk: u32) -> Answer<Option<Bytes>, Unavailable>;

    /// The snapshots that have a chunk 0, in rising order.
    fn list(&self) -> Answer<Vec<u64>, Unavailable>;

    /// Removes chunks of snapshots below this one. Those that were put later than the first chunk of this one may stay.
    fn remove_below(&self, snapshot: u64) -> Answer<(), Unavailable>;
}

/// How many bytes of the files go into one chunk.
pub(crate) fn piece_bytes(max_message_bytes: usize) -> usize {
    let room = max_message_bytes.saturating_sub(CHUNK_HEAD_BYTES + CHECKSUM_BYTES);
    room.clamp(1, MAX_PIECE_BYTES)
}

/// A chunk with a piece of the files.
pub(crate) fn encode_chunk(snapshot: u64, chunk: u32, piece: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(CHUNK_HEAD_BYTES + piece.len() + CHECKSUM_BYTES);
    out.put_slice(CHUNK_MAGIC);
    out.put_u64_le(snapshot);
    out.put_u32_le(chunk);
    out.put_slice(piece);
    let checksum = xxh3_64(&out);
    out.put_u64_le(checksum);
    out.freeze()
}

/// The piece in a chunk and the chunk's checksum; `None` where it is not that chunk, or damaged.
pub(crate) fn decode_chunk(snapshot: u64, chunk: u32, bytes: &Bytes) -> Option<(Bytes, u64)> {
    let end = bytes.len().checked_sub(CHECKSUM_BYTES)?;
    let checksum = number(bytes, end)?;
    let is_whole = end >= CHUNK_HEAD_BYTES
        && bytes.starts_with(CHUNK_MAGIC)
        && number(bytes, 4)? == snapshot
        && bytes[12..16] == chunk.to_le_bytes()
        && xxh3_64(&bytes[..end]) == checksum;
    is_whole.then(|| (bytes.slice(CHUNK_HEAD_BYTES..end), checksum))
}

/// What a snapshot consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) log_id: u64,
    pub(crate) position: u64,
    pub(crate) chunks: u32,
    /// Of the checksums of all chunks.
    pub(crate) checksum: u64,
    pub(crate) files: Vec<ManifestFile>,
}

/// A file of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ManifestFile {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) file_bytes: u64,
}

impl Manifest {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        out.put_slice(MANIFEST_MAGIC);
        out.put_u64_le(self.log_id);
        out.put_u64_le(self.position);
        out.put_u32_le(self.chunks);
        out.put_u64_le(self.checksum);
        for file in &self.files {
            out.put_u16_le(file.name.len() as u16);
            out.put_slice(file.name.as_bytes());
            out.put_u64_le(file.bytes);
            out.put_u64_le(file.file_bytes);
        }
        let checksum = xxh3_64(&out);
        out.put_u64_le(checksum);
        out.freeze()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let end = bytes.len().checked_sub(CHECKSUM_BYTES)?;
        let is_whole = end >= MANIFEST_HEAD_BYTES
            && bytes.starts_with(MANIFEST_MAGIC)
            && xxh3_64(&bytes[..end]) == number(bytes, end)?;
        if !is_whole {
            return None;
        }
        let chunks: [u8; 4] = bytes[20..24].try_into().ok()?;
        let mut files = Vec::new();
        let mut rest = &bytes[MANIFEST_HEAD_BYTES..end];
        while !rest.is_empty() {
            let (length, behind) = rest.split_first_chunk()?;
            let length = u16::from_le_bytes(*length) as usize;
            let (name, behind) = behind.split_at_checked(length)?;
            files.push(ManifestFile {
                name: std::str::from_utf8(name).ok()?.to_owned(),
                bytes: number(behind, 0)?,
                file_bytes: number(behind, 8)?,
            });
            rest = behind.get(16..)?;
        }
        Some(Self {
            log_id: number(bytes, 4)?,
            position: number(bytes, 12)?,
            chunks: u32::from_le_bytes(chunks),
            checksum: number(bytes, 24)?,
            files,
        })
    }
}

/// The checksum of several.
pub(crate) fn chain(before: u64, checksum: u64) -> u64 {
    let both = [before.to_le_bytes(), checksum.to_le_bytes()];
    xxh3_64(both.as_flattened())
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn manifest() -> Manifest {
        let file = |name: &str, bytes| ManifestFile {
            name: name.into(),
            bytes,
            file_bytes: bytes + 9,
        };
        Manifest {
            log_id: 5,
            position: 77,
            chunks: 3,
            checksum: u64::MAX,
            files: vec![file("SEGMENTS", 0), file("1.seg", 1 << 40)],
        }
    }

    proptest! {
        #[test]
        fn a_changed_byte_is_noticed(at in any::<prop::sample::Index>(), by in 1u8..=255) {
            for bytes in [manifest().encode(), encode_chunk(7, 2, b"piece")] {
                let mut changed = bytes.to_vec();
                let at = at.index(changed.len());
                changed[at] = changed[at].wrapping_add(by);
                prop_assert_eq!(Manifest::decode(&changed), None);
                prop_assert_eq!(decode_chunk(7, 2, &changed.into()), None);
            }
        }

        #[test]
        fn any_bytes_decode_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            prop_assert_eq!(Manifest::decode(&bytes), None);
            prop_assert_eq!(decode_chunk(0, 0, &bytes.into()), None);
        }
    }

    #[test]
    fn both_round_trip() {
        assert_eq!(Manifest::decode(&manifest().encode()), Some(manifest()));
        let bytes = encode_chunk(7, 2, b"piece");
        let (piece, _) = decode_chunk(7, 2, &bytes).expect("a chunk");
        assert_eq!(&piece[..], b"piece");
        assert_eq!(decode_chunk(7, 3, &bytes), None);
        assert_eq!(decode_chunk(8, 2, &bytes), None);
        assert_eq!(piece_bytes(1000), 976);
    }
}
