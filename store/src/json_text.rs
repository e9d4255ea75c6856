//! JSON strings and numbers as the record's body encodes them. Only what an event's own fields need: payloads are
//! validated above and copied as they are.

use std::borrow::Cow;

/// Appends `text` as a JSON string, quotes included, with the shortest escapes.
pub(crate) fn push_string(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    // Every byte is looked at whatever was found before: without an early end the compiler does many at a time, and
    // hardly any text has something to escape.
    let is_plain = text
        .bytes()
        .fold(true, |is_plain, byte| is_plain & !needs_escape(byte));
    if is_plain {
        out.extend_from_slice(text.as_bytes())
    } else {
        push_escaped(out, text)
    }
    out.push(b'"');
}

fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

fn push_escaped(out: &mut Vec<u8>, text: &str) {
    let mut copied = 0;
    for (at, byte) in text.bytes().enumerate() {
        if !needs_escape(byte) {
            continue;
        }
        out.extend_from_slice(&text.as_bytes()[copied..at]);
        copied = at + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
        }
    }
    out.extend_from_slice(&text.as_bytes()[copied..]);
}

/// Undoes [`push_string`] on what is between the quotes.
pub(crate) fn unescape(raw: &str) -> Cow<'_, str> {
    if !raw.contains('\\') {
        return Cow::Borrowed(raw);
    }
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        match rest.next() {
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some('t') => text.push('\t'),
            Some('u') => {
                let digits: String = rest.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).unwrap_or(0xfffd);
                text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some(other) => text.push(other),
            None => {}
        }
    }
    Cow::Owned(text)
}

/// Appends an integer in decimal, two digits at a time.
pub(crate) fn push_integer(out: &mut Vec<u8>, value: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = value;
    while rest >= 100 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[(rest % 100) as usize]);
        rest /= 100;
    }
    if rest >= 10 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[rest as usize]);
    } else {
        at -= 1;
        digits[at] = b'0' + rest as u8;
    }
    out.extend_from_slice(&digits[at..]);
}

/// The numbers from 00 to 99.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Writes the last digits of an integer, as many as there is room for.
pub(crate) fn write_digits(out: &mut [u8], value: u64) {
    let mut rest = value;
    for digit in out.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

/// How many decimal digits an integer has.
pub(crate) fn digits_of(value: u64) -> usize {
    value.checked_ilog10().unwrap_or(0) as usize + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn strings_round_trip(text in any::<String>()) {
            let mut out = Vec::new();
            push_string(&mut out, &text);
            let json = String::from_utf8(out).expect("text in, text out");
            prop_assert_eq!(unescape(&json[1..json.len() - 1]), text);
        }

        #[test]
        fn integers_read_back(value in any::<u64>()) {
            let mut out = Vec::new();
            push_integer(&mut out, value);
            prop_assert_eq!(out.len(), digits_of(value));
            prop_assert_eq!(String::from_utf8_lossy(&out).parse::<u64>(), Ok(value));
        }
    }
}
