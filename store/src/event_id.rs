//! Event ids. The ids that the bus makes are UUIDv7 that carry where the event is, so finding an event by such an
//! id, or seeing that it is new, needs no index: `48 bits ms | version 7 | 12 bits tag | variant | 18 bits tag | 44
//! bits seq`. The tag is fixed per topic and log; within a topic ms never falls and seq always rises, so the ids
//! strictly increase, as numbers and as text.

use std::fmt;
use std::ops::Deref;
use xxhash_rust::xxh3::xxh3_64;

/// The longest id a publisher may choose.
pub const MAX_ID_BYTES: usize = 64;
/// The highest position a topic can reach: an id made by the bus has 44 bits for it.
pub const MAX_SEQ: u64 = (1 << 44) - 1;
/// The tag that tells one topic's ids from another's has this many bits.
pub const TAG_BITS: u32 = 30;

const UUID_TEXT_BYTES: usize = 36;
const SEQ_BITS: u32 = 44;
const TAG_LOW_BITS: u32 = 18;
/// The indexes of the hyphens in the text of a UUID.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// An event's id as text, kept inline.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id {
    text: [u8; MAX_ID_BYTES],
    length: u8,
}

/// What an id made by the bus says about its event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GeneratedId {
    /// The millisecond it was made in.
    pub ms: u64,
    /// The tag of its topic.
    pub tag: u32,
    /// Its event's position in the topic.
    pub seq: u64,
}

/// Makes the ids of one topic. Those of one millisecond differ in their last digits only, so the rest is encoded once.
#[derive(Debug)]
pub struct IdGenerator {
    tag: u32,
    ms: u64,
    last: Id,
}

impl Id {
    /// A publisher's client id, or `None` unless it is 1 to 64 printable ASCII characters.
    pub fn from_client(text: &str) -> Option<Self> {
        let valid = (1..=MAX_ID_BYTES).contains(&text.len())
            && text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
        valid.then(|| Self::inline(text.as_bytes()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.text[..usize::from(self.length)]
    }

    fn inline(bytes: &[u8]) -> Self {
        let mut text = [0; MAX_ID_BYTES];
        text[..bytes.len()].copy_from_slice(bytes);
        Self {
            length: bytes.len() as u8,
            text,
        }
    }
}

impl GeneratedId {
    /// The id's text.
    pub fn to_id(self) -> Id {
        let tag_high = u128::from(self.tag >> TAG_LOW_BITS);
        let tag_low = u128::from(self.tag & ((1 << TAG_LOW_BITS) - 1));
        let bits = u128::from(self.ms) << 80
            | 0x7 << 76
            | tag_high << 64
            | 0b10 << 62
            | tag_low << SEQ_BITS
            | u128::from(self.seq & MAX_SEQ);
        let mut text = [0; MAX_ID_BYTES];
        for at in HYPHENS {
            text[at] = b'-';
        }
        let digits = [bits >> 96, bits >> 64, bits >> 32, bits].map(|bits| hex_digits(bits as u32));
        text[..8].copy_from_slice(&digits[0]);
        text[9..13].copy_from_slice(&digits[1][..4]);
        text[14..18].copy_from_slice(&digits[1][4..]);
        text[19..23].copy_from_slice(&digits[2][..4]);
        text[24..28].copy_from_slice(&digits[2][4..]);
        text[28..UUID_TEXT_BYTES].copy_from_slice(&digits[3]);
        Id {
            length: UUID_TEXT_BYTES as u8,
            text,
        }
    }

    /// Reads an id back, or `None` where it is not of the form the bus writes (lower case, version 7).
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.as_bytes();
        if text.len() != UUID_TEXT_BYTES {
            return None;
        }
        let mut bits = 0u128;
        for (at, &byte) in text.iter().enumerate() {
            let digit = match byte {
                b'-' if HYPHENS.contains(&at) => continue,
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                _ => return None,
            };
            bits = bits << 4 | u128::from(digit);
        }
        let well_formed = HYPHENS.iter().all(|&at| text[at] == b'-')
            && (bits >> 76) & 0xf == 0x7
            && (bits >> 62) & 0b11 == 0b10;
        let tag_high = ((bits >> 64) & 0xfff) as u32;
        let tag_low = ((bits >> SEQ_BITS) & ((1 << TAG_LOW_BITS) - 1)) as u32;
        well_formed.then_some(Self {
            ms: (bits >> 80) as u64,
            tag: tag_high << TAG_LOW_BITS | tag_low,
            seq: bits as u64 & MAX_SEQ,
        })
    }
}

impl IdGenerator {
    /// Makes ids with the tag of a topic.
    pub fn new(tag: u32) -> Self {
        let (ms, seq) = (0, 0);
        let last = GeneratedId { ms, tag, seq }.to_id();
        Self { tag, ms, last }
    }

    /// The id of the event at `seq`, made at `ms`.
    pub fn make(&mut self, ms: u64, seq: u64) -> Id {
        let tag = self.tag;
        if ms != self.ms {
            self.last = GeneratedId { ms, tag, seq }.to_id();
            self.ms = ms;
            return self.last;
        }
        let bits = u64::from(tag) << SEQ_BITS | seq & MAX_SEQ;
        let text = &mut self.last.text;
        text[24..28].copy_from_slice(&hex_digits((bits >> 32) as u32)[4..]);
        text[28..UUID_TEXT_BYTES].copy_from_slice(&hex_digits(bits as u32));
        self.last
    }
}

/// The tag of the ids that the log with this id makes in its topic of this number.
pub fn tag_of(log_id: u64, number: u32) -> u32 {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&log_id.to_le_bytes());
    bytes[8..].copy_from_slice(&number.to_le_bytes());
    xxh3_64(&bytes) as u32 & ((1 << TAG_BITS) - 1)
}

/// A number in lower-case hexadecimal. All digits are made at once, each in its byte of a word: ids are encoded as often
/// as events are stored.
fn hex_digits(number: u32) -> [u8; 8] {
    let mut word = u64::from(number);
    word = (word & 0xffff_0000) << 16 | (word & 0xffff);
    word = (word & 0x0000_ff00_0000_ff00) << 8 | (word & 0x0000_00ff_0000_00ff);
    word = (word & 0x00f0_00f0_00f0_00f0) << 4 | (word & 0x000f_000f_000f_000f);
    let is_letter = (word + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    let digits = word + 0x3030_3030_3030_3030 + is_letter * u64::from(b'a' - b'0' - 10);
    digits.to_be_bytes()
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Deref for Id {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({})", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn made_ids_round_trip(ms in 0u64..1 << 48, tag in 0u32..1 << TAG_BITS, seq in 0..=MAX_SEQ) {
            let made = GeneratedId { ms, tag, seq };
            prop_assert_eq!(GeneratedId::parse(made.to_id().as_str()), Some(made));
        }

        #[test]
        fn made_ids_sort_like_their_parts(ms in 0u64..1 << 47, step in 0u64..3, tag in 0u32..1 << TAG_BITS, seq in 0..MAX_SEQ) {
            let earlier = GeneratedId { ms, tag, seq }.to_id();
            let later = GeneratedId { ms: ms + step, tag, seq: seq + 1 }.to_id();
            prop_assert!(earlier.as_str() < later.as_str());
        }

        #[test]
        fn parsing_never_panics(text in "\\PC{0,40}") {
            let _ = GeneratedId::parse(&text);
            let _ = Id::from_client(&text);
        }
    }

    proptest! {
        #[test]
        fn a_maker_spells_like_each_id_alone(
            tag in 0u32..1 << TAG_BITS,
            places in proptest::collection::vec((0u64..3, 0..=MAX_SEQ), 1..9),
        ) {
            let mut maker = IdGenerator::new(tag);
            for (ms, seq) in places {
                prop_assert_eq!(maker.make(ms, seq), GeneratedId { ms, tag, seq }.to_id());
            }
        }
    }

    #[test]
    fn made_ids_are_spelled_like_every_uuid() {
        let made = GeneratedId {
            ms: 0x0123_4567_89ab,
            tag: 0x3fed_cba9,
            seq: 0xfed_cba9_8765,
        };
        assert_eq!(
            made.to_id().as_str(),
            "01234567-89ab-7ffb-9cba-9fedcba98765"
        );
    }

    #[test]
    fn own_ids_are_printable_ascii_up_to_64() {
        for text in ["a", "a b", "with \"quotes\" and \\", &"x".repeat(64)] {
            assert_eq!(Id::from_client(text).unwrap().as_str(), text);
        }
        for bad in ["", "tab\t", "a\n", "ü", &"x".repeat(65)] {
            assert!(Id::from_client(bad).is_none(), "{bad:?}");
        }
    }
}
