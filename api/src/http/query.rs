//! Query strings: names and values with percent signs, taken apart and put together.

use crate::code::Code;
use crate::error::ParseError;
use crate::options::{PositionParts, word};
use prombus_interface::StartAt;
use std::borrow::Cow;

/// The largest whole number that every JSON reader keeps.
const MAX_NUMBER: u64 = (1 << 53) - 1;

/// The parameters of a request. An unknown parameter is ignored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query<'a> {
    pairs: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

/// A query string that is being written.
#[derive(Debug, Clone, Default)]
pub struct QueryWriter {
    text: String,
}

impl<'a> Query<'a> {
    /// Parses what follows the question mark.
    pub fn parse(query: &'a str) -> Result<Self, ParseError> {
        let parts = query.split('&').filter(|part| !part.is_empty());
        let pairs = parts.map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            Ok((decode(name)?, decode(value)?))
        });
        let pairs = pairs.collect::<Result<_, ParseError>>()?;
        Ok(Self { pairs })
    }

    /// The value of a parameter; the first where there are several.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// The value of a parameter that has to be there.
    pub fn required(&self, name: &str) -> Result<&str, ParseError> {
        self.get(name).ok_or_else(|| bad(name, "missing"))
    }

    /// All values of a parameter.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let pairs = self.pairs.iter().filter(move |(found, _)| found == name);
        pairs.map(|(_, value)| &**value)
    }

    /// All parameters, in their order.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.pairs.iter();
        pairs.map(|(name, value)| (&**name, &**value))
    }

    /// A parameter that is a whole number.
    pub fn number(&self, name: &str) -> Result<Option<u64>, ParseError> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        // Rust's own reading takes a plus sign, JSON's does not.
        let number = value.parse().ok().filter(|_| !value.starts_with('+'));
        match number {
            Some(number) if number <= MAX_NUMBER => Ok(Some(number)),
            _ => Err(bad(
                name,
                "expected a whole number from 0 to 9007199254740991",
            )),
        }
    }

    /// A parameter that is yes (`1`, `true`, or nothing behind the name) or no (`0`, `false`).
    pub fn flag(&self, name: &str) -> Result<Option<bool>, ParseError> {
        match self.get(name) {
            None => Ok(None),
            Some("1" | "true" | "") => Ok(Some(true)),
            Some("0" | "false") => Ok(Some(false)),
            Some(_) => Err(bad(name, "expected 1 or 0")),
        }
    }

    /// The place that `from`, `ts`, `afterId` and `seq` name together.
    pub fn position(&self) -> Result<Option<StartAt>, ParseError> {
        let parts = PositionParts {
            from: self.get("from").map(str::to_owned),
            ts: self.number("ts")?,
            after_id: self.get("afterId").map(str::to_owned),
            seq: self.number("seq")?,
        };
        Ok(parts.position()?)
    }
}

impl QueryWriter {
    /// Adds a parameter.
    pub fn push(&mut self, name: &str, value: &str) -> &mut Self {
        if !self.text.is_empty() {
            self.text.push('&');
        }
        encode(&mut self.text, name);
        self.text.push('=');
        encode(&mut self.text, value);
        self
    }

    /// Adds a parameter if there is a value.
    pub fn push_if(&mut self, name: &str, value: Option<impl ToString>) -> &mut Self {
        match value {
            Some(value) => self.push(name, &value.to_string()),
            None => self,
        }
    }

    /// Adds the parameters that name a place.
    pub fn push_position(&mut self, position: &StartAt) -> &mut Self {
        self.push("from", word(position));
        match position {
            StartAt::Latest | StartAt::Earliest => self,
            StartAt::Ts(ts) => self.push("ts", &ts.to_string()),
            StartAt::AfterId(id) => self.push("afterId", id),
            StartAt::Seq(seq) => self.push("seq", &seq.to_string()),
        }
    }

    /// What goes behind the question mark.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.text)
    }
}

/// What a field of a query is: a value under the field's name, or several parameters that are one value together.
pub(super) trait Parameter: Sized {
    /// Takes it from a query.
    fn read(query: &Query<'_>, name: &str) -> Result<Self, ParseError>;

    /// Adds it to a query, or leaves it out where there is nothing to say.
    fn write(&self, query: &mut QueryWriter, name: &str);
}

/// The parameters of a query, in their order.
#[cfg(test)]
pub(crate) trait Parameters {
    const NAMES: &'static [&'static str];
}

impl Parameter for String {
    fn read(query: &Query<'_>, name: &str) -> Result<Self, ParseError> {
        query.required(name).map(str::to_owned)
    }

    fn write(&self, query: &mut QueryWriter, name: &str) {
        query.push(name, self);
    }
}

impl Parameter for Option<String> {
    fn read(query: &Query<'_>, name: &str) -> Result<Self, ParseError> {
        Ok(query.get(name).map(str::to_owned))
    }

    fn write(&self, query: &mut QueryWriter, name: &str) {
        query.push_if(name, self.as_ref());
    }
}

impl Parameter for Option<u64> {
    fn read(query: &Query<'_>, name: &str) -> Result<Self, ParseError> {
        query.number(name)
    }

    fn write(&self, query: &mut QueryWriter, name: &str) {
        query.push_if(name, *self);
    }
}

impl Parameter for u64 {
    fn read(query: &Query<'_>, name: &str) -> Result<Self, ParseError> {
        query.number(name)?.ok_or_else(|| bad(name, "missing"))
    }

    fn write(&self, query: &mut QueryWriter, name: &str) {
        query.push(name, &self.to_string());
    }
}

impl Parameter for Vec<String> {
    fn read(query: &Query<'_>, name: &str) -> Result<Self, ParseError> {
        Ok(query.all(name).map(str::to_owned).collect())
    }

    fn write(&self, query: &mut QueryWriter, name: &str) {
        for value in self {
            query.push(name, value);
        }
    }
}

impl Parameter for bool {
    fn read(query: &Query<'_>, name: &str) -> Result<Self, ParseError> {
        Ok(query.flag(name)?.unwrap_or(false))
    }

    fn write(&self, query: &mut QueryWriter, name: &str) {
        query.push_if(name, self.then_some(1));
    }
}

impl Parameter for Option<StartAt> {
    fn read(query: &Query<'_>, _: &str) -> Result<Self, ParseError> {
        query.position()
    }

    fn write(&self, query: &mut QueryWriter, _: &str) {
        if let Some(position) = self {
            query.push_position(position);
        }
    }
}

/// Declares the query of a route: a struct with a field for each parameter, which has its Rust name there unless `as`
/// gives another.
macro_rules! query {
    ($(#[$meta:meta])* pub struct $type:ident {
        $($(#[$field_meta:meta])* pub $field:ident: $kind:ty $(as $name:literal)?,)+
    }) => {
        $(#[$meta])*
        pub struct $type {
            $($(#[$field_meta])* $(#[schemars(rename = $name)])? pub $field: $kind,)+
        }

        #[cfg(test)]
        impl $crate::http::query::Parameters for $type {
            const NAMES: &'static [&'static str] = &[$($crate::scan::name_of!($field $($name)?)),+];
        }

        impl $type {
            /// Reads the query.
            pub fn parse(query: &$crate::http::Query<'_>) -> Result<Self, $crate::error::ParseError> {
                use $crate::http::query::Parameter;
                Ok(Self {
                    $($field: Parameter::read(query, $crate::scan::name_of!($field $($name)?))?,)+
                })
            }

            /// Writes the query.
            pub fn to_query(&self) -> String {
                use $crate::http::query::Parameter;
                let mut query = $crate::http::QueryWriter::default();
                $(Parameter::write(&self.$field, &mut query, $crate::scan::name_of!($field $($name)?));)+
                query.finish()
            }
        }
    };
}

pub(super) use query;

fn bad(name: &str, reason: &str) -> ParseError {
    ParseError::new(Code::BadFrame, format!("{name}: {reason}"))
}

fn decode(text: &str) -> Result<Cow<'_, str>, ParseError> {
    if !text.contains(['%', '+']) {
        return Ok(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                match (digit(rest.next()), digit(rest.next())) {
                    (Some(high), Some(low)) => (high * 16 + low) as u8,
                    _ => return Err(bad("query", "two hexadecimal digits have to follow %")),
                }
            }
            _ => byte,
        });
    }
    let text = String::from_utf8(bytes).map_err(|_| bad("query", "must be UTF-8"))?;
    Ok(Cow::Owned(text))
}

/// A text as it is written in a path or a query.
pub fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    encode(&mut out, text);
    out
}

fn encode(out: &mut String, text: &str) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => {
                out.push('%');
                out.push(char::from(HEX[usize::from(byte >> 4)]));
                out.push(char::from(HEX[usize::from(byte & 15)]));
            }
        }
    }
}
