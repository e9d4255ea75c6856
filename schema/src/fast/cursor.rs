//! A place in JSON text. Every step checks the grammar, and gives up (`None`) on what is rare and hard: `\u` escapes,
//! exponents, very long numbers.

/// The most bytes of a number that is taken: all of these are in range.
const MAX_NUMBER_BYTES: usize = 40;
/// The most digits of a whole number that is taken exactly.
const MAX_WHOLE_DIGITS: usize = 18;

/// Below this every whole number is a float of its own: 2 to the power of 53.
pub(super) const MAX_EXACT: i64 = 1 << 53;

const BLOCK_BYTES: usize = 16;

pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    has_whitespace: bool,
}

/// A string without its quotes.
pub(super) struct Text<'a> {
    raw: &'a str,
    has_escapes: bool,
}

/// A number without an exponent.
pub(super) struct Number<'a> {
    raw: &'a str,
    /// What is before its point, where that has not too many digits.
    integer: Option<i64>,
    has_fraction: bool,
}

impl<'a> Text<'a> {
    /// The text, where it is as it is written.
    pub(super) fn plain(&self) -> Option<&'a str> {
        (!self.has_escapes).then_some(self.raw)
    }

    pub(super) fn is(&self, known: &str) -> bool {
        !self.has_escapes && self.raw == known
    }
}

impl Number<'_> {
    /// Its value, where it is written as a whole number of not too many digits.
    pub(super) fn whole(&self) -> Option<i64> {
        self.integer.filter(|_| !self.has_fraction)
    }

    /// A whole number that it is not below and at most one above, which needs no parsing.
    pub(super) fn floor(&self) -> Option<f64> {
        let integer = self.integer.filter(|integer| integer.abs() < MAX_EXACT)?;
        let below = i64::from(self.has_fraction && integer < 0);
        Some((integer - below) as f64)
    }

    /// Its value, perhaps off by the last bit.
    pub(super) fn value(&self) -> Option<f64> {
        match self.whole() {
            Some(whole) => Some(whole as f64),
            None => self.raw.parse().ok(),
        }
    }
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            has_whitespace: false,
        }
    }

    /// Whether there was whitespace between values on the way here.
    pub(super) fn has_whitespace(&self) -> bool {
        self.has_whitespace
    }

    /// The first byte of what comes next, behind whitespace.
    pub(super) fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = self.byte()?;
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.has_whitespace = true;
            self.at += 1;
        }
    }

    pub(super) fn is_at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    /// Goes past an opening bracket, which was looked at.
    pub(super) fn open(&mut self) -> Option<()> {
        self.at += 1;
        self.peek().map(drop)
    }

    /// Goes to the next member, past the comma before it; `false` behind `close`.
    pub(super) fn next_member(&mut self, close: u8, is_first: bool) -> Option<bool> {
        let byte = self.peek()?;
        if byte == close {
            self.at += 1;
            return Some(false);
        }
        if !is_first {
            (byte == b',').then_some(())?;
            self.at += 1;
            self.peek()?;
        }
        Some(true)
    }

    /// Goes past `text` if it comes next.
    pub(super) fn pass(&mut self, text: &str) -> bool {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let is_next = rest.starts_with(text.as_bytes());
        self.at += if is_next { text.len() } else { 0 };
        is_next
    }

    pub(super) fn colon(&mut self) -> Option<()> {
        (self.peek()? == b':').then_some(())?;
        self.at += 1;
        Some(())
    }

    // Inlined, because returned through memory it is read before it has arrived there, which cost an eighth of a check.
    #[inline(always)]
    pub(super) fn text(&mut self) -> Option<Text<'a>> {
        (self.peek()? == b'"').then_some(())?;
        let start = self.at + 1;
        let mut at = start;
        let mut has_escapes = false;
        let bytes = self.text.as_bytes();
        loop {
            at = end_of_plain(bytes, at);
            match bytes.get(at)? {
                b'"' => break,
                b'\\' => {
                    let escaped = bytes.get(at + 1)?;
                    b"\"\\/bfnrt".contains(escaped).then_some(())?;
                    has_escapes = true;
                    at += 2;
                }
                _ => return None,
            }
        }
        self.at = at + 1;
        let raw = self.text.get(start..at)?;
        Some(Text { raw, has_escapes })
    }

    pub(super) fn flag(&mut self) -> Option<bool> {
        if self.word("true").is_some() {
            return Some(true);
        }
        self.word("false").map(|()| false)
    }

    pub(super) fn null(&mut self) -> Option<()> {
        self.word("null")
    }

    // Inlined for the same reason as a text.
    #[inline(always)]
    pub(super) fn number(&mut self) -> Option<Number<'a>> {
        self.peek()?;
        let start = self.at;
        let is_negative = self.byte() == Some(b'-');
        self.at += usize::from(is_negative);
        let has_zero_first = self.byte() == Some(b'0');
        let (digits, integer) = self.digits();
        if digits == 0 || has_zero_first && (digits > 1 || is_negative) {
            return None;
        }
        let has_fraction = self.byte() == Some(b'.');
        if has_fraction {
            self.at += 1;
            (self.digits().0 > 0).then_some(())?;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) || self.at - start > MAX_NUMBER_BYTES {
            return None;
        }
        let integer = if is_negative {
            integer.wrapping_neg()
        } else {
            integer
        };
        Some(Number {
            raw: self.text.get(start..self.at)?,
            integer: (digits <= MAX_WHOLE_DIGITS).then_some(integer),
            has_fraction,
        })
    }

    /// Goes past digits: how many, and their value where they are not too many.
    fn digits(&mut self) -> (usize, i64) {
        let start = self.at;
        let mut value = 0_i64;
        while let Some(byte @ b'0'..=b'9') = self.byte() {
            value = value.wrapping_mul(10).wrapping_add(i64::from(byte - b'0'));
            self.at += 1;
        }
        (self.at - start, value)
    }

    fn word(&mut self, word: &str) -> Option<()> {
        self.peek()?;
        self.text[self.at..].starts_with(word).then_some(())?;
        self.at += word.len();
        Some(())
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

/// The first byte from `at` on that is a quote, a backslash or a control character, or the end.
fn end_of_plain(bytes: &[u8], mut at: usize) -> usize {
    // Sixteen bytes at a time, in a form that compiles to vector instructions.
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk::<BLOCK_BYTES>) {
        let mut special = [0; BLOCK_BYTES];
        for (special, byte) in special.iter_mut().zip(block) {
            *special = if is_special(*byte) { u8::MAX } else { 0 };
        }
        let special = u128::from_le_bytes(special);
        if special != 0 {
            return at + special.trailing_zeros() as usize / 8;
        }
        at += BLOCK_BYTES;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    let special = rest.iter().position(|byte| is_special(*byte));
    at + special.unwrap_or(rest.len())
}

/// Whether a byte ends a text or is not plain in it. Without branches, see [`end_of_plain`].
fn is_special(byte: u8) -> bool {
    (byte == b'"') | (byte == b'\\') | (byte < 0x20)
}
