//! Attribute values in HTTP headers: quoted strings, and percent signs for what a header cannot have (section 3.1.3.2 of
//! the HTTP binding).

use std::borrow::Cow;

/// The value that a header has; `None` where it is not UTF-8.
pub(super) fn decode(value: &[u8]) -> Option<String> {
    let unquoted = unquoted(value);
    String::from_utf8(percent_decoded(&unquoted)).ok()
}

/// Takes off the quotes of a quoted string, and the backslashes in it.
fn unquoted(value: &[u8]) -> Cow<'_, [u8]> {
    let inside = value
        .strip_prefix(b"\"")
        .and_then(|rest| rest.strip_suffix(b"\""));
    let Some(inside) = inside else {
        return Cow::Borrowed(value);
    };
    let mut plain = Vec::with_capacity(inside.len());
    let mut bytes = inside.iter().copied();
    while let Some(byte) = bytes.next() {
        plain.push(match byte {
            b'\\' => bytes.next().unwrap_or(byte),
            byte => byte,
        });
    }
    Cow::Owned(plain)
}

/// One round of percent-decoding. A percent sign without two digits behind it is itself.
fn percent_decoded(value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((&byte, behind)) = rest.split_first() {
        let decoded = match (byte, behind) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)),
            _ => None,
        };
        rest = match decoded {
            Some((high, low)) => {
                bytes.push(high << 4 | low);
                &behind[2..]
            }
            None => {
                bytes.push(byte);
                behind
            }
        };
    }
    bytes
}

fn hex(digit: u8) -> Option<u8> {
    let value = char::from(digit).to_digit(16)?;
    u8::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn values_are_decoded_once() {
        for (written, meant) in [
            ("plain", Some("plain")),
            ("Euro%20%E2%82%AC%20%F0%9F%98%80", Some("Euro € 😀")),
            ("Euro%20%e2%82%ac", Some("Euro €")),
            ("100%", Some("100%")),
            ("%zz%4", Some("%zz%4")),
            ("%2541", Some("%41")),
            (r#""a \"b\" \\c""#, Some(r#"a "b" \c"#)),
            (r#""a%22b""#, Some("a\"b")),
            ("\"", Some("\"")),
            ("%FF", None),
        ] {
            assert_eq!(decode(written.as_bytes()).as_deref(), meant, "{written}");
        }
        assert_eq!(decode(b"\xff"), None);
    }
}
