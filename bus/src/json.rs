//! A JSON scanner that checks a text and drops its insignificant whitespace, in one pass and without touching
//! anything else: number spelling, key order and escapes stay as the publisher wrote them. A text that is already
//! compact is returned as it is, without an allocation.

use crate::error::BadJson;
use std::borrow::Cow;

/// JSON nested deeper than this is refused.
pub const MAX_DEPTH: u32 = 128;

/// How much of a string is looked at in one go.
const BLOCK_BYTES: usize = 32;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = ONES << 7;

/// Checks `text` against RFC 8259 and returns it without insignificant whitespace.
pub fn compact(text: &str) -> Result<Cow<'_, str>, BadJson> {
    let mut scanner = Scanner {
        text,
        bytes: text.as_bytes(),
        at: 0,
        copied: 0,
        kept: String::new(),
        depth: 0,
        objects: 0,
    };
    scanner.document()?;
    if scanner.copied == 0 && scanner.kept.is_empty() {
        return Ok(Cow::Borrowed(text));
    }
    scanner.kept.push_str(&text[scanner.copied..]);
    Ok(Cow::Owned(scanner.kept))
}

struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Everything before this is in `kept`, or was whitespace.
    copied: usize,
    kept: String,
    depth: u32,
    /// One bit per open bracket, the innermost lowest: set where it is an object.
    objects: u128,
}

impl Scanner<'_> {
    fn document(&mut self) -> Result<(), BadJson> {
        self.skip_whitespace();
        loop {
            if !self.value()? {
                continue;
            }
            if self.close_and_separate()? {
                return Ok(());
            }
        }
    }

    /// Takes one value; `false` where it only opened a bracket that is not empty, so that its first value follows.
    fn value(&mut self) -> Result<bool, BadJson> {
        match self.peek() {
            Some(b'"') => self.string()?,
            Some(b'{') => {
                self.open(true)?;
                if self.peek() == Some(b'}') {
                    self.close();
                } else {
                    self.key()?;
                    return Ok(false);
                }
            }
            Some(b'[') => {
                self.open(false)?;
                if self.peek() == Some(b']') {
                    self.close();
                } else {
                    return Ok(false);
                }
            }
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.literal(b"true")?,
            Some(b'f') => self.literal(b"false")?,
            Some(b'n') => self.literal(b"null")?,
            Some(_) => return Err(self.bad("a value should stand here")),
            None => return Err(self.bad("it ends where a value should stand")),
        }
        Ok(true)
    }

    /// Takes what may follow a value: closing brackets, then a comma (`false`) or the end of the text (`true`).
    fn close_and_separate(&mut self) -> Result<bool, BadJson> {
        loop {
            self.skip_whitespace();
            let in_object = self.objects & 1 == 1;
            match self.peek() {
                None if self.depth == 0 => return Ok(true),
                None => return Err(self.bad("it ends inside a bracket")),
                Some(_) if self.depth == 0 => return Err(self.bad("something follows the value")),
                Some(b',') => {
                    self.at += 1;
                    self.skip_whitespace();
                    if in_object {
                        self.key()?;
                    }
                    return Ok(false);
                }
                Some(b'}') if in_object => self.close(),
                Some(b']') if !in_object => self.close(),
                Some(_) => return Err(self.bad("a comma or a closing bracket should stand here")),
            }
        }
    }

    fn open(&mut self, object: bool) -> Result<(), BadJson> {
        if self.depth == MAX_DEPTH {
            return Err(self.bad("it is nested deeper than 128"));
        }
        self.depth += 1;
        self.objects = self.objects << 1 | u128::from(object);
        self.at += 1;
        self.skip_whitespace();
        Ok(())
    }

    fn close(&mut self) {
        self.depth -= 1;
        self.objects >>= 1;
        self.at += 1;
    }

    /// Takes a name and its colon.
    fn key(&mut self) -> Result<(), BadJson> {
        if self.peek() != Some(b'"') {
            return Err(self.bad("a name in quotes should stand here"));
        }
        self.string()?;
        self.skip_whitespace();
        if self.peek() != Some(b':') {
            return Err(self.bad("a colon should stand here"));
        }
        self.at += 1;
        self.skip_whitespace();
        Ok(())
    }

    fn string(&mut self) -> Result<(), BadJson> {
        self.at += 1;
        loop {
            self.skip_plain();
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                Some(_) => return Err(self.bad("a control character has to be escaped")),
                None => return Err(self.bad("it ends inside a string")),
            }
        }
    }

    /// Goes on to the next quote, backslash or control character.
    fn skip_plain(&mut self) {
        // Long stretches go by the block: without an early exit the compiler looks at many bytes at once.
        while let Some(block) = self.rest().first_chunk::<BLOCK_BYTES>() {
            let mut special = [false; BLOCK_BYTES];
            for (special, &byte) in special.iter_mut().zip(block) {
                *special = is_special(byte);
            }
            if special != [false; BLOCK_BYTES] {
                break;
            }
            self.at += BLOCK_BYTES;
        }
        while let Some(&chunk) = self.rest().first_chunk::<8>() {
            let word = u64::from_le_bytes(chunk);
            let quote = word ^ (ONES * 0x22);
            let backslash = word ^ (ONES * 0x5c);
            // The lowest set bit is exact: a borrow only reaches bytes above the first hit.
            let hits = (quote.wrapping_sub(ONES) & !quote
                | backslash.wrapping_sub(ONES) & !backslash
                | word.wrapping_sub(ONES * 0x20) & !word)
                & HIGHS;
            if hits != 0 {
                self.at += (hits.trailing_zeros() / 8) as usize;
                return;
            }
            self.at += 8;
        }
        while self.peek().is_some_and(|byte| !is_special(byte)) {
            self.at += 1;
        }
    }

    fn escape(&mut self) -> Result<(), BadJson> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                let digits = self.bytes.get(self.at + 1..self.at + 5);
                if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                    return Err(self.bad("four hexadecimal digits should follow \\u"));
                }
                self.at += 5;
            }
            _ => return Err(self.bad("there is no such escape")),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), BadJson> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), BadJson> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.bad("a digit should stand here"));
        }
        Ok(())
    }

    fn literal(&mut self, literal: &[u8]) -> Result<(), BadJson> {
        if !self.bytes[self.at..].starts_with(literal) {
            return Err(self.bad("a value should stand here"));
        }
        self.at += literal.len();
        Ok(())
    }

    #[inline(always)]
    fn skip_whitespace(&mut self) {
        if self.peek().is_some_and(is_whitespace) {
            self.drop_whitespace();
        }
    }

    #[cold]
    fn drop_whitespace(&mut self) {
        self.kept.push_str(&self.text[self.copied..self.at]);
        while self.peek().is_some_and(is_whitespace) {
            self.at += 1;
        }
        self.copied = self.at;
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    #[inline(always)]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[cold]
    fn bad(&self, why: &'static str) -> BadJson {
        BadJson { at: self.at, why }
    }
}

/// What ends a plain stretch of a string. Without short cuts, so that a whole block can be tested at once.
fn is_special(byte: u8) -> bool {
    (byte == b'"') | (byte == b'\\') | (byte < 0x20)
}

fn is_whitespace(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

#[cfg(test)]
mod tests;
