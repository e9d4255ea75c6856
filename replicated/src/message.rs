//! One commit as a message of the shared log. All numbers are little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 0–2 | `pbc` |
//! | 3 | format, 1 |
//! | 4–5 | rules: how messages are applied; a node that meets a higher number than its own stops |
//! | 6 | kind: 1 batches, 2 maintenance, 3 heartbeat, 4 a snapshot is begun, 5 a snapshot is durable |
//! | 7 | 0 |
//! | 8–15 | boot: a number that the sending node drew when it started |
//! | 16–23 | number: 1 for the first message of the boot, then one more each |
//! | 24–31 | now: epoch milliseconds by the sender's clock |
//! | 32–35, 36–39 | part k of n, from 1 |
//! | 40–47, 48–55 | a position that the sender had applied, and the digest of outcomes up to it |
//! | 56– | body: of a commit in one part, its batches; else the k-th piece of them |
//! | last 8 | xxh3 of everything before |
//!
//! A message counts if its number is the last one of its boot plus one, so the second copy of a message is void. The
//! parts of a commit have a number each; it takes effect with the last one.

use bytes::{BufMut, Bytes, BytesMut};
use xxhash_rust::xxh3::xxh3_64;

/// The format of messages that this version writes and reads.
pub const FORMAT: u8 = 1;
/// The rules by which this version applies messages. Raised by every change after which the same messages would give
/// another copy: 2 compares what events expect of what is stored before them; in 3 maintenance says what is trimmed, and
/// there are snapshots.
pub const RULES: u16 = 3;
/// The rules of messages with events that expect something.
pub const RULES_WITH_EXPECTATIONS: u16 = 2;
/// The rules of messages without such events, which nodes of an older version apply alike. So nodes of both versions go on
/// together until the first event that expects something.
pub const RULES_WITHOUT_EXPECTATIONS: u16 = 1;

const MAGIC: &[u8; 3] = b"pbc";
const HEAD_BYTES: usize = 56;
const CHECKSUM_BYTES: usize = 8;
/// What a message needs beside its body.
pub const OVERHEAD_BYTES: usize = HEAD_BYTES + CHECKSUM_BYTES;

/// What a message does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Commits batches.
    Batches = 1,
    /// Applies compaction at its time, and the trims that its body says, on every node.
    Maintenance = 2,
    /// Only says that the node is alive.
    Heartbeat = 3,
    /// The node that sent it makes a snapshot of its copy at this position, if its body names the last such message (or
    /// 0). Parts of commits that are not complete count for nothing from here on, so that no message before it is needed.
    BeginSnapshot = 4,
    /// The snapshot of the position in its body is durable.
    Snapshot = 5,
}

/// What is said of a message beside its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// What it does.
    pub kind: Kind,
    /// The rules it is to be applied by.
    pub rules: u16,
    /// The boot of the node that sent it.
    pub boot: u64,
    /// Its number among the messages of that boot.
    pub number: u64,
    /// The sender's time.
    pub now_ms: u64,
    /// Which part of its commit it is, from 1.
    pub part: u32,
    /// How many parts the commit has.
    pub parts: u32,
    /// Where the sender was when it made the message.
    pub progress: Progress,
}

/// How far a copy is, and what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// The last position that was applied.
    pub position: u64,
    /// The digest of all outcomes up to it. Copies that are equal have equal digests.
    pub digest: u64,
}

/// A message of the shared log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// What is said of it.
    pub head: Head,
    /// The commit, or a part of it.
    pub body: Bytes,
    /// Tells it from other messages of the same number, of which only one can count.
    pub checksum: u64,
}

/// Why bytes are no message that this version can apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Somebody else wrote it, or it was changed.
    #[error("not a commit of prombus")]
    Foreign,
    /// Its checksum does not fit.
    #[error("the message was changed after it was written")]
    Damaged,
    /// A newer version wrote it.
    #[error("the message has format {format}, this version reads up to {FORMAT}")]
    NewerFormat {
        /// Its format.
        format: u8,
    },
    /// A newer version wrote it, and it is to be applied by rules that this version does not know.
    #[error("the message has to be applied by rules {rules}, this version knows up to {RULES}")]
    NewerRules {
        /// Its rules.
        rules: u16,
    },
}

impl Message {
    /// The message as it is appended.
    pub fn encode(head: &Head, body: &[u8]) -> Bytes {
        let mut bytes = BytesMut::with_capacity(OVERHEAD_BYTES + body.len());
        bytes.put_slice(MAGIC);
        bytes.put_u8(FORMAT);
        bytes.put_u16_le(head.rules);
        bytes.put_u8(head.kind as u8);
        bytes.put_u8(0);
        bytes.put_u64_le(head.boot);
        bytes.put_u64_le(head.number);
        bytes.put_u64_le(head.now_ms);
        bytes.put_u32_le(head.part);
        bytes.put_u32_le(head.parts);
        bytes.put_u64_le(head.progress.position);
        bytes.put_u64_le(head.progress.digest);
        bytes.put_slice(body);
        let checksum = xxh3_64(&bytes);
        bytes.put_u64_le(checksum);
        bytes.freeze()
    }

    /// Reads a message back. What a newer version wrote is told apart from what nobody of ours did.
    pub fn decode(bytes: &Bytes) -> Result<Self, DecodeError> {
        if bytes.len() < OVERHEAD_BYTES || !bytes.starts_with(MAGIC) {
            return Err(DecodeError::Foreign);
        }
        if bytes[3] > FORMAT {
            return Err(DecodeError::NewerFormat { format: bytes[3] });
        }
        let (content, checksum) = bytes.split_at(bytes.len() - CHECKSUM_BYTES);
        let checksum = number_at(checksum, 0);
        if xxh3_64(content) != checksum || bytes[3] == 0 {
            return Err(DecodeError::Damaged);
        }
        let rules = u16::from_le_bytes([bytes[4], bytes[5]]);
        if rules > RULES {
            return Err(DecodeError::NewerRules { rules });
        }
        let kind = match bytes[6] {
            1 => Kind::Batches,
            2 => Kind::Maintenance,
            3 => Kind::Heartbeat,
            4 => Kind::BeginSnapshot,
            5 => Kind::Snapshot,
            _ => return Err(DecodeError::Foreign),
        };
        let parts = number_at(bytes, 32);
        let head = Head {
            kind,
            rules,
            boot: number_at(bytes, 8),
            number: number_at(bytes, 16),
            now_ms: number_at(bytes, 24),
            part: parts as u32,
            parts: (parts >> 32) as u32,
            progress: Progress {
                position: number_at(bytes, 40),
                digest: number_at(bytes, 48),
            },
        };
        if head.part == 0 || head.part > head.parts {
            return Err(DecodeError::Foreign);
        }
        Ok(Self {
            head,
            body: bytes.slice(HEAD_BYTES..bytes.len() - CHECKSUM_BYTES),
            checksum,
        })
    }
}

/// The checksum of an encoded message, as [`Message::checksum`] has it once it is decoded.
pub fn checksum_of(message: &[u8]) -> u64 {
    let at = message.len().saturating_sub(CHECKSUM_BYTES);
    number_at(message, at)
}

fn number_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    if let Some(found) = bytes.get(at..at + 8) {
        number.copy_from_slice(found);
    }
    u64::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn head(kind: Kind) -> Head {
        Head {
            kind,
            rules: RULES,
            boot: 0x0102_0304_0506_0708,
            number: 9,
            now_ms: 1_700_000_000_000,
            part: 2,
            parts: 3,
            progress: Progress {
                position: 17,
                digest: u64::MAX,
            },
        }
    }

    proptest! {
        #[test]
        fn messages_round_trip(
            boot: u64, number: u64, now_ms: u64, parts in 1u32..9, position: u64, digest: u64,
            body in proptest::collection::vec(any::<u8>(), 0..64),
        ) {
            for kind in [Kind::Batches, Kind::Maintenance, Kind::Heartbeat, Kind::BeginSnapshot, Kind::Snapshot] {
                let progress = Progress { position, digest };
                let head = Head { kind, rules: RULES, boot, number, now_ms, part: parts, parts, progress };
                let bytes = Message::encode(&head, &body);
                let message = Message::decode(&bytes).expect("a message");
                prop_assert_eq!(&message.head, &head);
                prop_assert_eq!(&message.body[..], &body[..]);
                prop_assert_eq!(message.checksum, checksum_of(&bytes));
            }
        }

        #[test]
        fn any_bytes_decode_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..128)) {
            prop_assert!(Message::decode(&bytes.into()).is_err());
        }

        #[test]
        fn a_changed_byte_is_noticed(at in 0usize..OVERHEAD_BYTES + 5, by in 1u8..=255) {
            let bytes = Message::encode(&head(Kind::Batches), b"batch");
            let mut changed = bytes.to_vec();
            changed[at] = changed[at].wrapping_add(by);
            prop_assert!(Message::decode(&changed.into()).is_err());
        }
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let bytes = Message::encode(&head(Kind::Maintenance), b"body");
        assert_eq!(&bytes[..8], b"pbc\x01\x03\x00\x02\x00");
        assert_eq!(&bytes[8..16], &[8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(&bytes[32..40], &[2, 0, 0, 0, 3, 0, 0, 0]);
        assert_eq!(&bytes[56..60], b"body");
        assert_eq!(bytes.len(), 68);
    }

    #[test]
    fn newer_versions_are_told_from_strangers() {
        let newer = Head {
            rules: RULES + 1,
            ..head(Kind::Batches)
        };
        let error = Message::decode(&Message::encode(&newer, b"")).expect_err("newer rules");
        assert_eq!(error, DecodeError::NewerRules { rules: RULES + 1 });
        let mut format = Message::encode(&head(Kind::Batches), b"").to_vec();
        format[3] = FORMAT + 1;
        let error = Message::decode(&format.into()).expect_err("a newer format");
        assert_eq!(error, DecodeError::NewerFormat { format: 2 });
        let error = Message::decode(&Bytes::from_static(b"hello")).expect_err("no message");
        assert_eq!(error, DecodeError::Foreign);
    }
}
