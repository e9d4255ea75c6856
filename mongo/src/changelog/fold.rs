//! What a batch of events comes to, as one write for each key.

use super::values::{field_value, may_overwrite, version_value};
use crate::json::Payload;
use crate::positions::signed;
use mongodb::bson::{Bson, Document, doc};
use prombus_connect::{Applied, Event, Part, Shape};
use std::collections::HashMap;

/// The field that keeps the version of each document, where versions are compared.
pub(super) const VERSION_FIELD: &str = "_version";

/// The document of an event, and its version.
fn document(shape: &Shape, key: &str, event: &Event) -> (Document, Option<Bson>) {
    let mut found = Vec::new();
    shape.fields.pick(event.payload(), &mut found);
    let mut document = doc! { "_id": key };
    for (name, part, kind) in &shape.columns {
        let value = match part {
            Part::Field(at) => found[*at].map(|json| field_value(json, *kind)),
            Part::Payload => Some(field_value(event.payload(), *kind)),
            part => Some(whole(*part, event)),
        };
        if let Some(value) = value {
            document.insert(name, value);
        }
    }
    if shape.columns.is_empty() {
        Payload::of(event.payload()).insert_into(&mut document);
        for (name, part) in [("ts", Part::Ts), ("seq", Part::Seq), ("id", Part::Id)] {
            document.insert(name, whole(part, event));
        }
    }
    let version = shape.version.and_then(|(part, compare)| match part {
        Part::Field(at) => version_value(found[at], compare),
        part => Some(whole(part, event)),
    });
    if let Some(version) = &version {
        document.insert(VERSION_FIELD, version);
    }
    (document, version)
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
            let (document, version) = document(shape, &key, event);
            if shape.version.is_some() && !may_overwrite(self.versions.get(&*key), version.as_ref())
            {
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
