//! A change, or a document of the snapshot, as an event.

use crate::error::FeedError;
use crate::json::relaxed;
use mongodb::bson::{Bson, Document};
use mongodb::change_stream::event::{ChangeStreamEvent, OperationType, ResumeToken};
use prombus_connect::outbox::OutboxRow;
use xxhash_rust::xxh3::xxh3_128;

/// The header that says what happened to the document.
pub(super) const OPERATION_HEADER: &str = "op";

/// An event of a changefeed.
#[derive(Debug)]
pub(super) struct FeedEvent {
    pub(super) row: OutboxRow<()>,
    /// Where the stream goes on behind it; none for documents of the snapshot.
    pub(super) token: Option<ResumeToken>,
}

/// What ends a stream for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Invalidation {
    Dropped,
    Renamed,
    DatabaseDropped,
    Ended,
}

impl Invalidation {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Dropped => "dropped",
            Self::Renamed => "renamed",
            Self::DatabaseDropped => "dropped with its database",
            Self::Ended => "dropped or renamed",
        }
    }
}

impl FeedEvent {
    /// A change as an event, or what ended the stream.
    pub(super) fn of_change(
        change: &ChangeStreamEvent<Document>,
        topic: &str,
    ) -> Result<Result<Self, Invalidation>, FeedError> {
        let operation = match &change.operation_type {
            OperationType::Insert => "insert",
            OperationType::Update => "update",
            OperationType::Replace => "replace",
            OperationType::Delete => "delete",
            OperationType::Drop => return Ok(Err(Invalidation::Dropped)),
            OperationType::Rename => return Ok(Err(Invalidation::Renamed)),
            OperationType::DropDatabase => return Ok(Err(Invalidation::DatabaseDropped)),
            _ => return Ok(Err(Invalidation::Ended)),
        };
        let key = change.document_key.as_ref().and_then(|key| key.get("_id"));
        let key = key.cloned().unwrap_or(Bson::Null);
        // An updated document that is gone by now has nothing to show; its delete is about to come.
        let payload = change.full_document.clone();
        let token = serde_json::to_string(&change.id).map_err(|error| FeedError::Bus {
            why: error.to_string(),
            is_transient: false,
        })?;
        let ts = change.wall_time.map(|time| time.timestamp_millis());
        let mut event = Self::new(topic, operation, &key, payload, &format!("c{token}"));
        event.row.ts = ts.and_then(|ts| ts.try_into().ok());
        event.token = Some(change.id.clone());
        Ok(Ok(event))
    }

    /// A document that was there when the feed began.
    pub(super) fn of_document(document: Document, topic: &str, snapshot: &str) -> Self {
        let key = document.get("_id").cloned().unwrap_or(Bson::Null);
        let identity = format!("s{snapshot}{}", canonical(&key));
        Self::new(topic, "snapshot", &key, Some(document), &identity)
    }

    fn new(
        topic: &str,
        operation: &str,
        key: &Bson,
        payload: Option<Document>,
        identity: &str,
    ) -> Self {
        let row = OutboxRow {
            place: (),
            id: format!("{:032x}", xxh3_128(identity.as_bytes())),
            topic: topic.to_owned(),
            payload: payload
                .map_or_else(|| "null".to_owned(), |document| relaxed(&document.into())),
            key: Some(key_text(key)),
            ts: None,
            headers: vec![(OPERATION_HEADER.to_owned(), operation.to_owned())],
            tags: Vec::new(),
            caused_by: Vec::new(),
            sid: None,
            attempts: 1,
        };
        Self { row, token: None }
    }
}

/// A value as canonical Extended JSON, which tells all types apart.
pub(super) fn canonical(value: &Bson) -> serde_json::Value {
    value.clone().into_canonical_extjson()
}

/// An `_id` as the key of an event: text as it is, an ObjectId as hex, everything else as JSON.
fn key_text(id: &Bson) -> String {
    match id {
        Bson::String(text) => text.clone(),
        Bson::ObjectId(id) => id.to_hex(),
        other => relaxed(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mongodb::bson::{doc, oid::ObjectId};

    #[test]
    fn keys_are_what_people_would_write() {
        let id = ObjectId::parse_str("65f0000000000000000000aa").expect("an id");
        assert_eq!(key_text(&id.into()), "65f0000000000000000000aa");
        assert_eq!(key_text(&"a b".into()), "a b");
        assert_eq!(key_text(&7.into()), "7");
        assert_eq!(key_text(&doc! { "a": 1 }.into()), r#"{"a":1}"#);
    }

    #[test]
    fn ids_tell_snapshots_and_documents_apart() {
        let event = |id: Bson, snapshot| {
            FeedEvent::of_document(doc! { "_id": id }, "t", snapshot)
                .row
                .id
        };
        let id = event(1.into(), "a");
        assert_eq!(id, event(1.into(), "a"));
        assert_eq!(id.len(), 32);
        for other in [
            event(2.into(), "a"),
            event(1.into(), "b"),
            event("1".into(), "a"),
        ] {
            assert_ne!(id, other);
        }
    }
}
