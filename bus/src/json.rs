//! A JSON scanner that checks a text and drops its insignificant whitespace without touching anything else: number
//! spelling, key order and escapes stay as the publisher wrote them. A text that is already compact, as most are, is
//! returned as it is, without an allocation.
//!
//! The grammar is written once. The first pass assumes that there is no whitespace, with everything in registers;
//! only a text that does not pass so is gone through again, to take its whitespace out or to say what is wrong with it.

use crate::error::InvalidJson;
use std::borrow::Cow;

/// JSON nested deeper than this is refused.
pub const MAX_DEPTH: u32 = 128;

/// How much of a long string is looked at in one go.
const BLOCK_BYTES: usize = 32;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = ONES << 7;

/// Checks `text` against RFC 8259 and returns it without insignificant whitespace.
pub fn compact(text: &str) -> Result<Cow<'_, str>, InvalidJson> {
    if document(text.as_bytes(), &mut NoGaps).is_some() {
        return Ok(Cow::Borrowed(text));
    }
    let mut gaps = Dropped {
        text,
        copied: 0,
        kept: String::new(),
        fault: None,
    };
    match (document(text.as_bytes(), &mut gaps), gaps.fault) {
        (None, Some(fault)) => Err(fault),
        _ => {
            gaps.kept.push_str(&text[gaps.copied..]);
            Ok(Cow::Owned(gaps.kept))
        }
    }
}

/// What happens where whitespace may be, and when something is wrong.
trait Gaps {
    /// The place behind the whitespace at `at`.
    fn pass(&mut self, bytes: &[u8], at: usize) -> usize;

    /// Notes what is wrong. Always `None`, to be returned at once.
    fn fault(&mut self, at: usize, reason: &'static str) -> Option<usize>;
}

/// Whitespace is unexpected.
struct NoGaps;

/// Whitespace is left out of a copy.
struct Dropped<'a> {
    text: &'a str,
    /// Everything before this is in `kept`, or was whitespace.
    copied: usize,
    kept: String,
    fault: Option<InvalidJson>,
}

impl Gaps for NoGaps {
    #[inline(always)]
    fn pass(&mut self, _bytes: &[u8], at: usize) -> usize {
        at
    }

    #[inline(always)]
    fn fault(&mut self, _at: usize, _why: &'static str) -> Option<usize> {
        None
    }
}

impl Gaps for Dropped<'_> {
    fn pass(&mut self, bytes: &[u8], at: usize) -> usize {
        let is_whitespace = |byte: &&u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
        let rest = bytes.get(at..).unwrap_or_default();
        let behind = at + rest.iter().take_while(is_whitespace).count();
        if behind > at {
            self.kept.push_str(&self.text[self.copied..at]);
            self.copied = behind;
        }
        behind
    }

    fn fault(&mut self, at: usize, reason: &'static str) -> Option<usize> {
        self.fault.get_or_insert(InvalidJson { at, reason });
        None
    }
}

/// Goes through one value and all that is in it, up to the end of the text.
fn document(bytes: &[u8], gaps: &mut impl Gaps) -> Option<usize> {
    let mut depth = 0;
    // One bit per open bracket, the innermost lowest: set where it is an object.
    let mut objects = 0_u128;
    let mut at = gaps.pass(bytes, 0);
    loop {
        match byte(bytes, at) {
            Some(b'"') => at = string(bytes, at, gaps)?,
            Some(open @ (b'{' | b'[')) => {
                if depth == MAX_DEPTH {
                    return gaps.fault(at, "nested deeper than 128 levels");
                }
                let is_object = open == b'{';
                depth += 1;
                objects = objects << 1 | u128::from(is_object);
                at = gaps.pass(bytes, at + 1);
                let close = if is_object { b'}' } else { b']' };
                // An empty one is closed below.
                if byte(bytes, at) != Some(close) {
                    if is_object {
                        at = key(bytes, at, gaps)?;
                    }
                    continue;
                }
            }
            Some(b'-' | b'0'..=b'9') => at = number(bytes, at, gaps)?,
            Some(b't') => at = literal(bytes, at, b"true", gaps)?,
            Some(b'f') => at = literal(bytes, at, b"false", gaps)?,
            Some(b'n') => at = literal(bytes, at, b"null", gaps)?,
            Some(_) => return gaps.fault(at, "expected a value"),
            None => return gaps.fault(at, "expected a value, found the end"),
        }
        // Closing brackets may follow, then a comma or the end.
        loop {
            at = gaps.pass(bytes, at);
            let in_object = objects & 1 == 1;
            match byte(bytes, at) {
                None if depth == 0 => return Some(at),
                None => return gaps.fault(at, "expected a closing bracket, found the end"),
                Some(_) if depth == 0 => return gaps.fault(at, "unexpected text after the value"),
                Some(b',') => {
                    at = gaps.pass(bytes, at + 1);
                    if in_object {
                        at = key(bytes, at, gaps)?;
                    }
                    break;
                }
                Some(close @ (b'}' | b']')) if (close == b'}') == in_object => {
                    depth -= 1;
                    objects >>= 1;
                    at += 1;
                }
                Some(_) => {
                    return gaps.fault(at, "expected a comma or a closing bracket");
                }
            }
        }
    }
}

/// Takes a name and its colon.
#[inline]
fn key(bytes: &[u8], at: usize, gaps: &mut impl Gaps) -> Option<usize> {
    if byte(bytes, at) != Some(b'"') {
        return gaps.fault(at, "expected a quoted field name");
    }
    let at = string(bytes, at, gaps)?;
    let at = gaps.pass(bytes, at);
    match byte(bytes, at) {
        Some(b':') => Some(gaps.pass(bytes, at + 1)),
        _ => gaps.fault(at, "expected a colon"),
    }
}

/// Parses the string whose first quote is at `at`.
#[inline]
fn string(bytes: &[u8], at: usize, gaps: &mut impl Gaps) -> Option<usize> {
    let mut at = at + 1;
    loop {
        at = plain_end(bytes, at);
        match byte(bytes, at) {
            Some(b'"') => return Some(at + 1),
            Some(b'\\') => at = escape(bytes, at + 1, gaps)?,
            Some(_) => return gaps.fault(at, "unescaped control character"),
            None => return gaps.fault(at, "expected a closing quote, found the end"),
        }
    }
}

/// Takes what follows a backslash.
fn escape(bytes: &[u8], at: usize, gaps: &mut impl Gaps) -> Option<usize> {
    match byte(bytes, at) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Some(at + 1),
        Some(b'u') => {
            let digits = bytes.get(at + 1..at + 5);
            if digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                Some(at + 5)
            } else {
                gaps.fault(at, "expected four hexadecimal digits after \\u")
            }
        }
        _ => gaps.fault(at, "invalid escape"),
    }
}

#[inline]
fn number(bytes: &[u8], mut at: usize, gaps: &mut impl Gaps) -> Option<usize> {
    if byte(bytes, at) == Some(b'-') {
        at += 1;
    }
    at = match byte(bytes, at) {
        Some(b'0') => at + 1,
        _ => digits(bytes, at, gaps)?,
    };
    if byte(bytes, at) == Some(b'.') {
        at = digits(bytes, at + 1, gaps)?;
    }
    if let Some(b'e' | b'E') = byte(bytes, at) {
        let has_sign = matches!(byte(bytes, at + 1), Some(b'+' | b'-'));
        at = digits(bytes, at + 1 + usize::from(has_sign), gaps)?;
    }
    Some(at)
}

#[inline]
fn digits(bytes: &[u8], start: usize, gaps: &mut impl Gaps) -> Option<usize> {
    let mut at = start;
    // Times and ids have many.
    while chunk_at(bytes, at).is_some_and(|chunk| are_digits(u64::from_le_bytes(chunk))) {
        at += 8;
    }
    while let Some(b'0'..=b'9') = byte(bytes, at) {
        at += 1;
    }
    if at == start {
        gaps.fault(at, "expected a digit")
    } else {
        Some(at)
    }
}

fn literal(bytes: &[u8], at: usize, literal: &[u8], gaps: &mut impl Gaps) -> Option<usize> {
    if bytes
        .get(at..)
        .is_some_and(|rest| rest.starts_with(literal))
    {
        Some(at + literal.len())
    } else {
        gaps.fault(at, "expected a value")
    }
}

/// The place of the next quote, backslash or control character, or the end. Most strings are short, so it begins with a
/// few bytes at a time, and goes by the block where that was not enough.
#[inline]
fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    let mut is_long = false;
    while let Some(word) = chunk_at(bytes, at).map(u64::from_le_bytes) {
        let quote = word ^ (ONES * 0x22);
        let backslash = word ^ (ONES * 0x5c);
        // The lowest set bit is exact: a borrow only reaches bytes above the first hit.
        let hits = (quote.wrapping_sub(ONES) & !quote
            | backslash.wrapping_sub(ONES) & !backslash
            | word.wrapping_sub(ONES * 0x20) & !word)
            & HIGHS;
        if hits != 0 {
            return at + (hits.trailing_zeros() / 8) as usize;
        }
        at += 8;
        if is_long {
            at = skip_blocks(bytes, at);
        }
        is_long = true;
    }
    while byte(bytes, at).is_some_and(|byte| !is_special(byte)) {
        at += 1;
    }
    at
}

/// Passes over blocks that are plain. Without an early exit inside a block the compiler looks at many bytes at once.
fn skip_blocks(bytes: &[u8], mut at: usize) -> usize {
    while let Some(block) = chunk_at::<BLOCK_BYTES>(bytes, at) {
        if block
            .iter()
            .fold(false, |any, &byte| any | is_special(byte))
        {
            break;
        }
        at += BLOCK_BYTES;
    }
    at
}

/// Whether all eight bytes are digits: their high half is 3, also when 6 is added.
#[inline(always)]
fn are_digits(word: u64) -> bool {
    const HIGH_HALVES: u64 = ONES * 0xf0;
    let (plain, added) = (
        word & HIGH_HALVES,
        word.wrapping_add(ONES * 0x06) & HIGH_HALVES,
    );
    (plain, added) == (ONES * 0x30, ONES * 0x30)
}

#[inline(always)]
fn chunk_at<const COUNT: usize>(bytes: &[u8], at: usize) -> Option<[u8; COUNT]> {
    bytes.get(at..)?.first_chunk::<COUNT>().copied()
}

#[inline(always)]
fn byte(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

/// What ends a plain stretch of a string. Without short cuts, so that a whole block can be tested at once.
fn is_special(byte: u8) -> bool {
    (byte == b'"') | (byte == b'\\') | (byte < 0x20)
}

#[cfg(test)]
mod tests;
