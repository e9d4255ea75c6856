//! JSON that is written piece by piece into a buffer that its owner reuses.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// What can be written as JSON.
pub(crate) trait ToJson {
    /// Appends the value.
    fn write_json(&self, out: &mut Vec<u8>);

    /// Whether it says nothing, so that its field is left out.
    fn is_absent(&self) -> bool {
        false
    }
}

/// JSON text that goes in as it is.
pub(crate) struct Raw<'a>(pub(crate) &'a [u8]);

/// An object that is being written. The names of its fields have no need of escapes.
pub(crate) struct ObjectWriter<'o> {
    out: &'o mut Vec<u8>,
    is_empty: bool,
}

impl<'o> ObjectWriter<'o> {
    pub(crate) fn new(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        let is_empty = true;
        Self { out, is_empty }
    }

    /// Writes a field, or leaves it out where there is nothing to say.
    pub(crate) fn field(&mut self, name: &str, value: &(impl ToJson + ?Sized)) -> &mut Self {
        if value.is_absent() {
            return self;
        }
        self.name(name);
        value.write_json(self.out);
        self
    }

    /// Writes a field whose value says something even where it is empty.
    pub(crate) fn list(&mut self, name: &str, items: &[impl ToJson]) -> &mut Self {
        self.name(name);
        write_list(self.out, items, |out, item| item.write_json(out));
        self
    }

    pub(crate) fn end(&mut self) {
        self.out.push(b'}');
    }

    #[inline]
    fn name(&mut self, name: &str) {
        if !std::mem::replace(&mut self.is_empty, false) {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }
}

/// Appends a string with its quotes.
#[inline]
pub(crate) fn write_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    // Without an early exit the compiler looks at many bytes at once.
    let has_special = text
        .bytes()
        .fold(false, |found, byte| found | is_special(byte));
    if has_special {
        write_escaped(out, text);
    } else {
        out.extend_from_slice(text.as_bytes());
    }
    out.push(b'"');
}

/// Appends a number.
#[inline]
pub(crate) fn write_number(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends values with commas between, in brackets.
pub(crate) fn write_list<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

#[cold]
fn write_escaped(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 => {
                let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', HEX[high], HEX[low]]);
            }
            _ => out.push(byte),
        }
    }
}

fn is_special(byte: u8) -> bool {
    (byte == b'"') | (byte == b'\\') | (byte < 0x20)
}

impl ToJson for Raw<'_> {
    fn write_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0);
    }
}

impl ToJson for str {
    fn write_json(&self, out: &mut Vec<u8>) {
        write_text(out, self);
    }
}

impl ToJson for String {
    fn write_json(&self, out: &mut Vec<u8>) {
        write_text(out, self);
    }
}

impl ToJson for Cow<'_, str> {
    fn write_json(&self, out: &mut Vec<u8>) {
        write_text(out, self);
    }
}

impl ToJson for u64 {
    fn write_json(&self, out: &mut Vec<u8>) {
        write_number(out, *self);
    }
}

impl ToJson for u32 {
    fn write_json(&self, out: &mut Vec<u8>) {
        write_number(out, u64::from(*self));
    }
}

impl ToJson for usize {
    fn write_json(&self, out: &mut Vec<u8>) {
        write_number(out, *self as u64);
    }
}

impl ToJson for bool {
    fn write_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if *self { b"true" } else { b"false" });
    }

    /// What may be left out is false where it is.
    fn is_absent(&self) -> bool {
        !self
    }
}

impl<T: ToJson + ?Sized> ToJson for &T {
    fn write_json(&self, out: &mut Vec<u8>) {
        T::write_json(self, out);
    }

    fn is_absent(&self) -> bool {
        T::is_absent(self)
    }
}

impl<T: ToJson> ToJson for Option<T> {
    fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Some(value) => value.write_json(out),
            None => out.extend_from_slice(b"null"),
        }
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<T: ToJson> ToJson for Vec<T> {
    fn write_json(&self, out: &mut Vec<u8>) {
        write_list(out, self, |out, item| item.write_json(out));
    }

    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

impl ToJson for Vec<(String, String)> {
    fn write_json(&self, out: &mut Vec<u8>) {
        write_pairs(out, self.iter().map(|(name, value)| (name, value)));
    }

    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

impl ToJson for BTreeMap<String, String> {
    fn write_json(&self, out: &mut Vec<u8>) {
        write_pairs(out, self);
    }

    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

fn write_pairs<'a>(out: &mut Vec<u8>, pairs: impl IntoIterator<Item = (&'a String, &'a String)>) {
    out.push(b'{');
    for (at, (name, value)) in pairs.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_text(out, name);
        out.push(b':');
        write_text(out, value);
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn strings_and_numbers_read_back(text in any::<String>(), number in any::<u64>()) {
            let mut out = Vec::new();
            write_text(&mut out, &text);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
            out.clear();
            write_number(&mut out, number);
            prop_assert_eq!(serde_json::from_slice::<u64>(&out).unwrap(), number);
        }
    }

    #[test]
    fn every_control_character_is_escaped() {
        let text: String = (0..0x80u8).map(char::from).collect();
        let mut out = Vec::new();
        write_text(&mut out, &text);
        assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
    }

    #[test]
    fn fields_that_say_nothing_are_left_out() {
        let mut out = Vec::new();
        let none: Option<u64> = None;
        let mut object = ObjectWriter::new(&mut out);
        object
            .field("a", &none)
            .field("b", &1u64)
            .field("c", &false);
        object
            .field("d", &Vec::<String>::new())
            .field("e", "x")
            .end();
        assert_eq!(String::from_utf8(out).unwrap(), r#"{"b":1,"e":"x"}"#);
    }
}
