//! A JSON scanner: one pass over the text, fields taken without copying.
//!
//! Everything is validated, ignored values too. Only a value taken by [`Scanner::raw`] is passed on with nothing checked
//! but where it ends: payloads are validated by the bus, and doing it twice would cost as much as all the rest.

mod extent;
mod from_json;
mod nearest;
mod object;
mod scan_error;
mod seen;

pub use nearest::nearest;

pub(crate) use from_json::FromJson;
pub(crate) use object::{Member, name_of, object, unknown_member, words};
pub(crate) use scan_error::ScanError;

use seen::Seen;
use serde::de::IgnoredAny;
use std::borrow::Cow;

/// What a 64-bit field holds.
const WHOLE_NUMBER: &str = "a whole number from 0 to 18446744073709551615";
/// What a 32-bit field holds.
const WHOLE_NUMBER_32: &str = "a whole number from 0 to 4294967295";

/// A place in a text. Copying it is how one looks ahead.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// The first field of the object around, where it was taken already; the next [`Scanner::object`] goes on behind it.
    inside: Option<&'static str>,
}

impl<'a> Scanner<'a> {
    /// At the first value of a text.
    pub(crate) fn new(text: &'a str) -> Self {
        let mut scanner = Self {
            text,
            at: 0,
            inside: None,
        };
        scanner.skip_whitespace();
        scanner
    }

    /// The byte at the cursor.
    #[inline]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Takes this byte and the whitespace behind it, if it follows optional whitespace.
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        self.skip_whitespace();
        let stands_here = self.peek() == Some(byte);
        if stands_here {
            self.at += 1;
            self.skip_whitespace();
        }
        stands_here
    }

    /// Nothing but whitespace may be left.
    pub(crate) fn end(&mut self) -> Result<(), ScanError> {
        self.skip_whitespace();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.syntax("unexpected data after the value")),
        }
    }

    /// Walks over an object: `field` is called with each name, and takes the value behind it. No name may come twice.
    #[inline]
    pub(crate) fn object(
        &mut self,
        mut field: impl FnMut(&mut Self, &str) -> Result<(), ScanError>,
    ) -> Result<(), ScanError> {
        let mut seen = Seen::new(self.inside);
        self.members(|scanner, name| {
            if !seen.add(&name) {
                return Err(ScanError::duplicate(&name));
            }
            field(scanner, &name).map_err(|error| error.within(&name))
        })
    }

    /// Walks over an object whose names may come twice.
    #[inline]
    pub(crate) fn members(
        &mut self,
        mut member: impl FnMut(&mut Self, Cow<'a, str>) -> Result<(), ScanError>,
    ) -> Result<(), ScanError> {
        if !self.open()? {
            return Ok(());
        }
        loop {
            let name = self.name()?;
            member(self, name)?;
            if !self.separator(b'}')? {
                return Ok(());
            }
        }
    }

    /// Takes the first field of the object at the cursor, if it has this name and a text without escapes. The
    /// object's other fields are then walked over by [`Scanner::object`].
    #[inline]
    pub(crate) fn first_field(&mut self, name: &'static str) -> Option<&'a str> {
        let mut ahead = *self;
        if !ahead.open().ok()? || ahead.name().ok()? != name {
            return None;
        }
        let Cow::Borrowed(text) = ahead.text().ok()? else {
            return None;
        };
        ahead.inside = Some(name);
        *self = ahead;
        Some(text)
    }

    /// Walks over an array: `item` takes each value.
    #[inline]
    pub(crate) fn array(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<(), ScanError>,
    ) -> Result<(), ScanError> {
        if self.peek() != Some(b'[') {
            return Err(self.wrong("an array"));
        }
        self.at += 1;
        if self.take(b']') {
            return Ok(());
        }
        loop {
            item(self)?;
            if !self.separator(b']')? {
                return Ok(());
            }
        }
    }

    /// Takes the value at the cursor into a field.
    #[inline]
    pub(crate) fn fill<T: FromJson<'a>>(&mut self, slot: &mut T) -> Result<(), ScanError> {
        *slot = T::from_json(self)?;
        Ok(())
    }

    /// Takes a string, borrowed unless it has escapes.
    #[inline(always)]
    pub(crate) fn text(&mut self) -> Result<Cow<'a, str>, ScanError> {
        if self.peek() != Some(b'"') {
            return Err(self.wrong("a string"));
        }
        let start = self.at + 1;
        let end = extent::plain_end(self.text.as_bytes(), start);
        if self.text.as_bytes().get(end) != Some(&b'"') {
            return self.escaped_text();
        }
        self.at = end + 1;
        Ok(Cow::Borrowed(&self.text[start..end]))
    }

    /// Takes a number that is whole and not negative.
    #[inline]
    pub(crate) fn whole_number(&mut self) -> Result<u64, ScanError> {
        let bytes = self.text.as_bytes();
        let mut value = 0u64;
        let mut end = self.at;
        while let Some(byte @ b'0'..=b'9') = bytes.get(end) {
            let shifted = value.checked_mul(10);
            let added = shifted.and_then(|value| value.checked_add(u64::from(byte - b'0')));
            value = added.ok_or_else(|| self.wrong(WHOLE_NUMBER))?;
            end += 1;
        }
        let has_leading_zero = end > self.at + 1 && self.peek() == Some(b'0');
        let is_whole = extent::ends_word(bytes, end);
        if end == self.at || has_leading_zero || !is_whole {
            return Err(self.wrong(WHOLE_NUMBER));
        }
        self.at = end;
        Ok(value)
    }

    /// Takes `true` or `false`.
    pub(crate) fn flag(&mut self) -> Result<bool, ScanError> {
        for (word, value) in [("true", true), ("false", false)] {
            if self.take_word(word) {
                return Ok(value);
            }
        }
        Err(self.wrong("true or false"))
    }

    /// Takes `null` if it is at the cursor.
    #[inline]
    pub(crate) fn null(&mut self) -> bool {
        self.peek() == Some(b'n') && self.take_word("null")
    }

    /// Takes any value as it is written. Nothing is checked but where it ends.
    #[inline]
    pub(crate) fn raw(&mut self) -> Result<&'a str, ScanError> {
        let bytes = self.text.as_bytes();
        let end = match self.peek() {
            Some(b'{' | b'[') => extent::brackets_end(bytes, self.at),
            Some(b'"') => extent::string_end(bytes, self.at),
            Some(_) => Some(extent::word_end(bytes, self.at)),
            None => None,
        };
        let start = self.at;
        match end {
            Some(end) if end > start => self.at = end,
            Some(_) => return Err(self.syntax("expected a value")),
            None => return Err(self.syntax("unterminated value")),
        }
        Ok(&self.text[start..self.at])
    }

    /// Takes any value and forgets it. It has to be JSON all the same.
    pub(crate) fn ignore(&mut self) -> Result<(), ScanError> {
        if self.peek() == Some(b'"') {
            return self.text().map(drop);
        }
        let start = *self;
        let value = self.raw()?;
        let checked = serde_json::from_str::<IgnoredAny>(value);
        checked.map_err(|error| start.syntax(&error.to_string()))?;
        Ok(())
    }

    /// Whether the bracket at the cursor is closed somewhere.
    pub(crate) fn is_closed(&self) -> bool {
        extent::brackets_end(self.text.as_bytes(), self.at).is_some()
    }

    /// What was taken since an earlier place.
    pub(crate) fn since(&self, start: &Self) -> &'a str {
        &self.text[start.at..self.at]
    }

    /// Everything from here on.
    pub(crate) fn left(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// The text at the cursor is not JSON.
    #[cold]
    pub(crate) fn syntax(&self, reason: &str) -> ScanError {
        ScanError::syntax(self.at, reason)
    }

    /// The value at the cursor has the wrong type.
    #[cold]
    pub(crate) fn wrong(&self, expected: &str) -> ScanError {
        let found = match self.peek() {
            Some(b'"') => "a string",
            Some(b'{') => "an object",
            Some(b'[') => "an array",
            Some(b'-' | b'0'..=b'9') if expected == WHOLE_NUMBER || expected == WHOLE_NUMBER_32 => {
                return ScanError::wrong(format!("expected {expected}"));
            }
            Some(b'-' | b'0'..=b'9') => "a number",
            Some(b't' | b'f') => "a boolean",
            Some(b'n') => "null",
            Some(_) => return self.syntax("expected a value"),
            None => return self.syntax("expected a value, found the end"),
        };
        ScanError::wrong(format!("expected {expected}, found {found}"))
    }

    /// Goes to the first name of an object that was not walked over yet; `false` where there is none.
    #[inline]
    fn open(&mut self) -> Result<bool, ScanError> {
        if self.inside.take().is_some() {
            return self.separator(b'}');
        }
        if self.peek() != Some(b'{') {
            return Err(self.wrong("an object"));
        }
        self.at += 1;
        self.skip_whitespace();
        let is_empty = self.peek() == Some(b'}');
        if is_empty {
            self.at += 1;
        }
        Ok(!is_empty)
    }

    /// Takes the name of a field and the colon.
    #[inline(always)]
    fn name(&mut self) -> Result<Cow<'a, str>, ScanError> {
        if self.peek() != Some(b'"') {
            return Err(self.syntax("expected a field name"));
        }
        let name = self.text()?;
        if !self.take(b':') {
            return Err(self.syntax("expected a colon"));
        }
        Ok(name)
    }

    /// Takes what separates two values: a comma (`true`), or the closing bracket (`false`).
    #[inline]
    fn separator(&mut self, closing: u8) -> Result<bool, ScanError> {
        self.skip_whitespace();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                self.skip_whitespace();
                Ok(true)
            }
            Some(byte) if byte == closing => {
                self.at += 1;
                Ok(false)
            }
            Some(_) => Err(self.syntax("expected a comma or a closing bracket")),
            None => Err(self.syntax("unclosed bracket")),
        }
    }

    #[cold]
    fn escaped_text(&mut self) -> Result<Cow<'a, str>, ScanError> {
        let text = serde_json::from_str(self.raw()?);
        // It may be JSON that is no text, half a surrogate pair for instance.
        let text = text.map_err(|error| ScanError::wrong(error.to_string()))?;
        Ok(Cow::Owned(text))
    }

    fn take_word(&mut self, word: &str) -> bool {
        let end = extent::word_end(self.text.as_bytes(), self.at);
        let stands_here = self.text.as_bytes().get(self.at..end) == Some(word.as_bytes());
        if stands_here {
            self.at = end;
        }
        stands_here
    }

    #[inline]
    fn skip_whitespace(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests;
