//! Event ids: a type that holds one without an allocation, and the maker of ids for publishes that may have to be sent
//! twice.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};

/// The longest id.
const MAX_ID_BYTES: usize = 64;

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

/// Makes ids that no other client makes: 96 random bits for the client and a number for the event.
#[derive(Debug)]
pub(crate) struct IdMaker {
    prefix: String,
    next: AtomicU64,
}

impl IdMaker {
    /// `random` is 12 random bytes.
    pub(crate) fn new(random: [u8; 12]) -> Self {
        let mut prefix: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        prefix.push('-');
        let next = AtomicU64::new(1);
        Self { prefix, next }
    }

    /// Writes the next id into `text`, which is emptied first.
    pub(crate) fn make(&self, text: &mut String) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        text.clear();
        text.push_str(&self.prefix);
        push_hex(text, number);
    }
}

fn push_hex(text: &mut String, number: u64) {
    let digits = (64 - number.leading_zeros()).div_ceil(4).max(1);
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
        let maker = IdMaker::new([7; 12]);
        let (mut one, mut other) = (String::new(), String::new());
        maker.make(&mut one);
        (0..300).for_each(|_| maker.make(&mut other));
        assert_eq!(one, "070707070707070707070707-1");
        assert_eq!(other, "070707070707070707070707-12d");
        assert!(Id::new(&other).is_some());
    }
}
