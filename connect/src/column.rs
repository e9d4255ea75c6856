//! What the columns of a table, or the fields of a document, are filled with.

use crate::error::BadColumn;
use std::fmt;
use std::str::FromStr;

/// The path to a value in a payload: the names of fields, from the outside in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPath(Vec<String>);

/// What a column is filled with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnSource {
    /// A field of the payload, `address.city`.
    Field(FieldPath),
    /// `$payload`: the whole payload as JSON text.
    Payload,
    /// `$id`: the event's id.
    Id,
    /// `$ts`: the event's time in epoch milliseconds.
    Ts,
    /// `$seq`: the event's position.
    Seq,
}

/// The type of a column. What does not fit it is kept as it is, so nothing is lost by a wrong one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColumnType {
    /// Whatever comes: numbers, text, booleans as 0 and 1, objects and arrays as JSON text.
    #[default]
    Any,
    /// Text; numbers are kept as they were spelt.
    Text,
    /// Whole numbers.
    Integer,
    /// Numbers.
    Real,
    /// 0 and 1.
    Boolean,
    /// The JSON as it was published, strings with their quotes.
    Json,
}

/// A column: its name, what it is filled with, its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name in the table.
    pub name: String,
    /// What it is filled with.
    pub source: ColumnSource,
    /// Its type.
    pub kind: ColumnType,
}

/// Keeps what is older from overwriting what is newer: a row is written only where the event's version is not less
/// than the row's.
///
/// An event without a version (the field is missing, or is not of the compared kind) overwrites only a row without
/// one. A tombstone always deletes, and no version is kept of a key that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionGuard {
    /// Where the version is.
    pub source: ColumnSource,
    /// What kind of value it is.
    pub compare: Compare,
}

/// How versions are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compare {
    /// As numbers; only JSON numbers are versions. Those beyond 64 bits are rounded.
    #[default]
    Number,
    /// As text, byte by byte; only JSON strings are versions. Times as RFC 3339 in UTC are in order so.
    Text,
}

impl FieldPath {
    /// A path of these names, which may have dots in them.
    pub fn of<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        Self(names.into_iter().map(N::into).collect())
    }

    /// The names, from the outside in.
    pub fn names(&self) -> &[String] {
        &self.0
    }
}

impl ColumnType {
    const ALL: [(Self, &str); 6] = [
        (Self::Any, "any"),
        (Self::Text, "text"),
        (Self::Integer, "integer"),
        (Self::Real, "real"),
        (Self::Boolean, "boolean"),
        (Self::Json, "json"),
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

impl Column {
    /// A column.
    pub fn new(name: impl Into<String>, source: ColumnSource, kind: ColumnType) -> Self {
        Self {
            name: name.into(),
            source,
            kind,
        }
    }

    /// The default columns beside the key: the payload, and the event's position.
    pub fn defaults() -> Vec<Self> {
        vec![
            Self::new("payload", ColumnSource::Payload, ColumnType::Json),
            Self::new("ts", ColumnSource::Ts, ColumnType::Integer),
            Self::new("seq", ColumnSource::Seq, ColumnType::Integer),
            Self::new("id", ColumnSource::Id, ColumnType::Text),
        ]
    }
}

impl FromStr for FieldPath {
    type Err = BadColumn;

    /// Names with dots between them.
    fn from_str(text: &str) -> Result<Self, BadColumn> {
        if text.split('.').any(str::is_empty) {
            Err(BadColumn::new(
                text,
                "a path is names of fields with dots between them",
            ))
        } else {
            Ok(Self::of(text.split('.')))
        }
    }
}

impl FromStr for ColumnSource {
    type Err = BadColumn;

    fn from_str(text: &str) -> Result<Self, BadColumn> {
        Ok(match text {
            "$payload" => Self::Payload,
            "$id" => Self::Id,
            "$ts" => Self::Ts,
            "$seq" => Self::Seq,
            _ if text.starts_with('$') => {
                let why = "besides fields of the payload there are $payload, $id, $ts and $seq";
                return Err(BadColumn::new(text, why));
            }
            path => Self::Field(path.parse()?),
        })
    }
}

impl FromStr for ColumnType {
    type Err = BadColumn;

    fn from_str(text: &str) -> Result<Self, BadColumn> {
        let found = Self::ALL.iter().find(|(_, word)| *word == text);
        found.map(|(kind, _)| *kind).ok_or_else(|| {
            let why = "the types are any, text, integer, real, boolean and json";
            BadColumn::new(text, why)
        })
    }
}

impl FromStr for Column {
    type Err = BadColumn;

    /// `name=path`, `name=path:type`, or a name alone for the field of that name.
    fn from_str(text: &str) -> Result<Self, BadColumn> {
        let (rest, kind) = match text.rsplit_once(':') {
            Some((rest, kind)) => (rest, kind.parse()?),
            None => (text, ColumnType::Any),
        };
        let (name, path) = rest.split_once('=').unwrap_or((rest, rest));
        Ok(Self::new(name, path.parse()?, kind))
    }
}

impl FromStr for VersionGuard {
    type Err = BadColumn;

    /// `path`, `path:number` or `path:text`.
    fn from_str(text: &str) -> Result<Self, BadColumn> {
        let (path, compare) = match text.rsplit_once(':') {
            Some((path, "number")) => (path, Compare::Number),
            Some((path, "text")) => (path, Compare::Text),
            Some(_) => {
                let why = "versions are compared as number or text";
                return Err(BadColumn::new(text, why));
            }
            None => (text, Compare::Number),
        };
        Ok(Self {
            source: path.parse()?,
            compare,
        })
    }
}

impl fmt::Display for ColumnSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(path) => f.write_str(&path.0.join(".")),
            Self::Payload => f.write_str("$payload"),
            Self::Id => f.write_str("$id"),
            Self::Ts => f.write_str("$ts"),
            Self::Seq => f.write_str("$seq"),
        }
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}:{}", self.name, self.source, self.kind.as_str())
    }
}

impl fmt::Display for VersionGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let compare = match self.compare {
            Compare::Number => "number",
            Compare::Text => "text",
        };
        write!(f, "{}:{compare}", self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_written_and_read() {
        for (text, shown) in [
            ("city", "city=city:any"),
            ("city=address.city", "city=address.city:any"),
            ("city=address.city:text", "city=address.city:text"),
            ("at=$ts:integer", "at=$ts:integer"),
            ("a.b", "a.b=a.b:any"),
        ] {
            let column: Column = text.parse().expect(text);
            assert_eq!(column.to_string(), shown);
            assert_eq!(column.to_string().parse(), Ok(column));
        }
        for text in ["", "a=", "a=b..c", "a=b:number", "a=$nothing", "a=.b"] {
            assert!(text.parse::<Column>().is_err(), "{text}");
        }
    }

    #[test]
    fn versions_are_written_and_read() {
        for (text, shown) in [
            ("version", "version:number"),
            ("meta.at:text", "meta.at:text"),
            ("$ts", "$ts:number"),
        ] {
            let guard: VersionGuard = text.parse().expect(text);
            assert_eq!(guard.to_string(), shown);
        }
        assert!("a:integer".parse::<VersionGuard>().is_err());
    }

    #[test]
    fn the_words_stand_in_the_order_of_the_types() {
        for (kind, word) in ColumnType::ALL {
            assert_eq!(kind.as_str(), word);
        }
    }
}
