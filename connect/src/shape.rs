//! Which parts of an event become the columns of a row or the fields of a document.

use crate::column::{Column, ColumnSource, ColumnType, Compare, VersionGuard};
use crate::fields::Fields;

/// How an event becomes a row or a document.
#[derive(Debug)]
pub struct Shape {
    /// The fields of payloads that are picked.
    pub fields: Fields,
    /// The columns beside the key, with their names and types.
    pub columns: Vec<(String, Part, ColumnType)>,
    /// What versions are, where they are compared.
    pub version: Option<(Part, Compare)>,
}

/// A part of an event; a field by its index among those that are picked.
#[derive(Debug, Clone, Copy)]
pub enum Part {
    /// A field of the payload.
    Field(usize),
    /// The whole payload.
    Payload,
    /// The event's id.
    Id,
    /// The event's time.
    Ts,
    /// The event's position.
    Seq,
}

impl Shape {
    /// The shape of these columns.
    pub fn new(columns: &[Column], version: Option<&VersionGuard>) -> Self {
        let mut fields = Fields::default();
        let mut part = |source: &ColumnSource| match source {
            ColumnSource::Field(path) => Part::Field(fields.want(path)),
            ColumnSource::Payload => Part::Payload,
            ColumnSource::Id => Part::Id,
            ColumnSource::Ts => Part::Ts,
            ColumnSource::Seq => Part::Seq,
        };
        let columns = columns.iter();
        let columns =
            columns.map(|column| (column.name.clone(), part(&column.source), column.kind));
        let columns = columns.collect();
        let version = version.map(|guard| (part(&guard.source), guard.compare));
        Self {
            fields,
            columns,
            version,
        }
    }
}
