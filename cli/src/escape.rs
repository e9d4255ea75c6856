//! Text from events and servers on a terminal. Keys, reasons and payloads are whatever a publisher sent; control
//! characters in them could move the cursor, retitle the window or hide the rest of a line.

use std::borrow::Cow;
use std::fmt::Write;

/// The text with control characters as `\u001b`. JSON stays the same JSON, because they only occur inside its strings.
pub(crate) fn controls(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_control) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_control(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing to a string does not fail.
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

/// C0, DEL and C1, line separators, and what reorders or hides text.
fn is_control(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_spelt_out() {
        assert_eq!(controls("plain – ünï"), "plain – ünï");
        assert_eq!(controls("\u{1b}[2Jx\u{7}"), "\\u001b[2Jx\\u0007");
        assert_eq!(controls("a\nb\u{9b}c"), "a\\u000ab\\u009bc");
        assert_eq!(controls("\u{202e}txt.exe"), "\\u202etxt.exe");
    }

    #[test]
    fn json_keeps_its_value() {
        let raw = "{\"a\":\"x\u{7f}\u{9b}\u{202e}y\"}";
        let escaped = controls(raw);
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
        assert_eq!(value(raw), value(&escaped));
        assert!(escaped.is_ascii());
    }
}
