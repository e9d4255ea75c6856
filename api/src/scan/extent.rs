//! Where values end, told without checking what is inside. Plain functions of bytes and a place in them, so that all
//! they need stays in registers.

/// In long strings this many bytes are looked at together, and eight in short ones.
const BLOCK_BYTES: usize = 32;
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = ONES * 0x80;

/// Where brackets and strings begin and end.
const IS_STRUCTURE: [bool; 256] = table(b"\"{}[]");
/// What ends a number or a literal.
const ENDS_WORD: [bool; 256] = table(b",:{}[]\" \t\n\r");

/// The place of the next quote, backslash or control character, or the end.
#[inline]
pub(super) fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(word) = word_at(bytes, at) {
        // The lowest set bit is exact: a borrow only reaches bytes above the first hit.
        let hits = zero_bytes(word ^ (ONES * 0x22))
            | zero_bytes(word ^ (ONES * 0x5c))
            | word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
        if hits != 0 {
            return at + (hits.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while bytes
        .get(at)
        .is_some_and(|&byte| !(byte == b'"' || byte == b'\\' || byte < 0x20))
    {
        at += 1;
    }
    at
}

/// The place behind the string whose first quote is at `at`, if it ends.
#[inline]
pub(super) fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        at = quote_or_backslash(bytes, at);
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

/// The place behind the bracket that closes the one at `at`, if there is one. Which kind closes which is not looked
/// at.
pub(super) fn brackets_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0usize;
    loop {
        let byte = *bytes.get(at)?;
        if !IS_STRUCTURE[usize::from(byte)] {
            at += 1;
            continue;
        }
        match byte {
            b'"' => {
                at = string_end(bytes, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            _ => depth -= 1,
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// The place behind the number or literal at `at`.
pub(super) fn word_end(bytes: &[u8], mut at: usize) -> usize {
    while !ends_word(bytes, at) {
        at += 1;
    }
    at
}

/// Whether no number or literal goes on at `at`.
#[inline]
pub(super) fn ends_word(bytes: &[u8], at: usize) -> bool {
    bytes
        .get(at)
        .is_none_or(|&byte| ENDS_WORD[usize::from(byte)])
}

#[inline]
fn quote_or_backslash(bytes: &[u8], mut at: usize) -> usize {
    let mut is_long = false;
    while let Some(word) = word_at(bytes, at) {
        let hits = zero_bytes(word ^ (ONES * 0x22)) | zero_bytes(word ^ (ONES * 0x5c));
        if hits != 0 {
            return at + (hits.trailing_zeros() / 8) as usize;
        }
        at += 8;
        if is_long {
            at = skip_blocks(bytes, at);
        }
        is_long = true;
    }
    while bytes
        .get(at)
        .is_some_and(|&byte| byte != b'"' && byte != b'\\')
    {
        at += 1;
    }
    at
}

/// Passes over blocks that have neither quote nor backslash. Without an early exit inside a block the compiler looks
/// at all its bytes at once.
fn skip_blocks(bytes: &[u8], mut at: usize) -> usize {
    let is_special = |byte| (byte == b'"') | (byte == b'\\');
    while let Some(block) = bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk::<BLOCK_BYTES>())
    {
        if block.map(is_special) != [false; BLOCK_BYTES] {
            break;
        }
        at += BLOCK_BYTES;
    }
    at
}

#[inline]
fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    let chunk = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*chunk))
}

/// The high bit of the lowest zero byte, and maybe of some above it.
#[inline]
fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHS
}

const fn table(bytes: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut at = 0;
    while at < bytes.len() {
        table[bytes[at] as usize] = true;
        at += 1;
    }
    table
}
