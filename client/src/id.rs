//! Event ids: a type that holds one without an allocation, and the maker of ids for publishes that may have to be sent
//! twice.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// The longest id.
const MAX_ID_BYTES: usize = 64;
/// Digits of the time in an id that was made: enough that all are equally long for the next 500 years.
const TIME_DIGITS: u32 = 11;

/// The id of an event: 1 to 64 printable ASCII characters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id {
    bytes: [u8; MAX_ID_BYTES],
    len: u8,
}

impl Id {
    /// An id from its text, `None` where it is not one.
    pub fn new(text: &str) -> Option<Self> {
        let is_printable = |byte: u8| (b' '..=b'~').contains(&byte);
        if text.is_empty() || text.len() > MAX_ID_BYTES || !text.bytes().all(is_printable) {
            return None;
        }
        let mut bytes = [0; MAX_ID_BYTES];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        let len = u8::try_from(text.len()).ok()?;
        Some(Self { bytes, len })
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        // Always ASCII, see `new`.
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl Deref for Id {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// Makes ids that no other client makes: the time, 96 random bits for the client and a number for the event. They begin
/// with the time because a server that keeps names in order then knows where an id would have to be, without looking
/// through all that it holds.
#[derive(Debug)]
pub(crate) struct IdGenerator {
    client: String,
    next: AtomicU64,
}

impl IdGenerator {
    /// `random` is 12 random bytes.
    pub(crate) fn new(random: [u8; 12]) -> Self {
        let client: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let client = format!("-{client}-");
        let next = AtomicU64::new(1);
        Self { client, next }
    }

    /// Writes the next id into `text`, which is emptied first.
    pub(crate) fn make(&self, text: &mut String) {
        self.make_at(now_ms(), text);
    }

    fn make_at(&self, now_ms: u64, text: &mut String) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        text.clear();
        push_hex(text, now_ms, TIME_DIGITS);
        text.push_str(&self.client);
        push_hex(text, number, 1);
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "an id is unique by its other parts; the time only tells servers where to look for it"
)]
fn now_ms() -> u64 {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since_epoch.map_or(0, |time| time.as_millis() as u64)
}

/// Writes a number with at least `digits` digits.
fn push_hex(text: &mut String, number: u64, digits: u32) {
    let digits = (64 - number.leading_zeros()).div_ceil(4).max(digits);
    for place in (0..digits).rev() {
        let digit = (number >> (place * 4)) & 0xf;
        text.push(char::from(
            b"0123456789abcdef"[usize::try_from(digit).unwrap_or(0)],
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_keep_their_text_and_refuse_what_is_none() {
        let longest = "x".repeat(MAX_ID_BYTES);
        for text in ["a", "with \"quotes\" and \\", &longest] {
            assert_eq!(Id::new(text).unwrap().as_str(), text);
        }
        for text in ["", "ä", "a\n", &"x".repeat(MAX_ID_BYTES + 1)] {
            assert_eq!(Id::new(text), None);
        }
    }

    #[test]
    fn made_ids_differ_and_are_valid() {
        let maker = IdGenerator::new([7; 12]);
        let (mut one, mut other) = (String::new(), String::new());
        maker.make_at(1_750_000_000_000, &mut one);
        (0..300).for_each(|_| maker.make_at(1_750_000_000_001, &mut other));
        assert_eq!(one, "1977420dc00-070707070707070707070707-1");
        assert_eq!(other, "1977420dc01-070707070707070707070707-12d");
        assert!(one < other);
        maker.make_at(u64::MAX, &mut other);
        assert!(Id::new(&other).is_some());
    }
}
