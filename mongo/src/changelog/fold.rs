//! What a batch of events comes to, as one write for each key.

use super::ChangelogOptions;
use super::values::{field_value, may_overwrite, version_value};
use crate::json::Payload;
use crate::positions::signed;
use mongodb::bson::{Bson, Document, doc};
use prombus_connect::{Applied, ColumnSource, ColumnType, Compare, Event, Fields};
use std::collections::HashMap;

/// The field that keeps the version of each document, where versions are compared.
pub(super) const VERSION_FIELD: &str = "_version";

/// How an event becomes a document.
#[derive(Debug)]
pub(super) struct Shape {
    fields: Fields,
    columns: Vec<(String, Part, ColumnType)>,
    version: Option<(Part, Compare)>,
}

/// A part of an event; a field by its place among those that are picked.
#[derive(Debug, Clone, Copy)]
enum Part {
    Field(usize),
    Payload,
    Id,
    Ts,
    Seq,
}

impl Shape {
    pub(super) fn new(options: &ChangelogOptions) -> Self {
        let mut fields = Fields::default();
        let mut part = |source: &ColumnSource| match source {
            ColumnSource::Field(path) => Part::Field(fields.want(path)),
            ColumnSource::Payload => Part::Payload,
            ColumnSource::Id => Part::Id,
            ColumnSource::Ts => Part::Ts,
            ColumnSource::Seq => Part::Seq,
        };
        let columns = options.columns.iter();
        let columns =
            columns.map(|column| (column.name.clone(), part(&column.source), column.kind));
        let columns = columns.collect();
        let version = options.version.as_ref();
        let version = version.map(|guard| (part(&guard.source), guard.compare));
        Self {
            fields,
            columns,
            version,
        }
    }

    pub(super) fn is_guarded(&self) -> bool {
        self.version.is_some()
    }

    /// The document of an event, and its version.
    fn document(&self, key: &str, event: &Event) -> (Document, Option<Bson>) {
        let mut found = Vec::new();
        self.fields.pick(event.payload(), &mut found);
        let mut document = doc! { "_id": key };
        for (name, part, kind) in &self.columns {
            let value = match part {
                Part::Field(at) => found[*at].map(|json| field_value(json, *kind)),
                Part::Payload => Some(field_value(event.payload(), *kind)),
                part => Some(whole(*part, event)),
            };
            if let Some(value) = value {
                document.insert(name, value);
            }
        }
        if self.columns.is_empty() {
            Payload::of(event.payload()).insert_into(&mut document);
            for (name, part) in [("ts", Part::Ts), ("seq", Part::Seq), ("id", Part::Id)] {
                document.insert(name, whole(part, event));
            }
        }
        let version = self.version.and_then(|(part, compare)| match part {
            Part::Field(at) => version_value(found[at], compare),
            part => Some(whole(part, event)),
        });
        if let Some(version) = &version {
            document.insert(VERSION_FIELD, version);
        }
        (document, version)
    }
}

/// A part that every event has.
fn whole(part: Part, event: &Event) -> Bson {
    match part {
        Part::Id => Bson::String(event.id().into_owned()),
        Part::Ts => Bson::Int64(signed(event.ts())),
        Part::Payload => Bson::String(event.payload().to_owned()),
        Part::Seq | Part::Field(_) => Bson::Int64(signed(event.seq())),
    }
}

/// What each key comes to.
#[derive(Debug, Default)]
pub(super) struct Fold {
    versions: HashMap<String, Bson>,
    /// What is written of each key; `None` where its document goes.
    writes: HashMap<String, Option<Document>>,
}

impl Fold {
    /// Remembers the versions of documents that are there.
    pub(super) fn load_versions(&mut self, documents: &[Document]) {
        for document in documents {
            if let (Ok(key), Some(version)) = (document.get_str("_id"), document.get(VERSION_FIELD))
            {
                self.versions.insert(key.to_owned(), version.clone());
            }
        }
    }

    /// Takes events in their order.
    pub(super) fn take(&mut self, shape: &Shape, events: &[Event]) -> Applied {
        let mut applied = Applied {
            events: events.len() as u64,
            ..Applied::default()
        };
        for event in events {
            let Some(key) = event.key() else {
                applied.keyless += 1;
                continue;
            };
            if event.is_tombstone() {
                self.versions.remove(&*key);
                self.writes.insert(key.into_owned(), None);
                applied.deletes += 1;
                continue;
            }
            let (document, version) = shape.document(&key, event);
            if shape.is_guarded() && !may_overwrite(self.versions.get(&*key), version.as_ref()) {
                applied.outdated += 1;
                continue;
            }
            match version {
                Some(version) => self.versions.insert(key.to_string(), version),
                None => self.versions.remove(&*key),
            };
            self.writes.insert(key.into_owned(), Some(document));
            applied.upserts += 1;
        }
        applied
    }

    /// The documents that are put, and filters of those that go.
    pub(super) fn into_writes(self) -> (Vec<Document>, Vec<Document>) {
        let (mut puts, mut deletes) = (Vec::new(), Vec::new());
        for (key, write) in self.writes {
            match write {
                Some(document) => puts.push(document),
                None => deletes.push(doc! { "_id": key }),
            }
        }
        (puts, deletes)
    }
}
