//! An event as a document of `events`.

use crate::commands::size;
use crate::error::MongoError;
use crate::json::Payload;
use crate::positions::signed;
use mongodb::bson::{DateTime, Document, doc};
use prombus::{EventFields, StoredEvent};

/// The largest document that is written whole; the server's limit is 16 MiB.
const MAX_DOCUMENT_BYTES: usize = 15 << 20;

/// The record of an event, with its payload as BSON and, where that would not give the publisher's text back, as `raw`.
pub(super) fn event_document(
    event: &StoredEvent,
    retention_ms: Option<u64>,
) -> Result<Document, MongoError> {
    let head = head(event, retention_ms);
    let mut document = head.clone();
    Payload::of(event.payload()).insert_into(&mut document);
    if size(&document)? <= MAX_DOCUMENT_BYTES {
        return Ok(document);
    }
    // Arrays of small values are several times larger as BSON than as text.
    let mut document = head.clone();
    document.insert("raw", event.payload());
    if size(&document)? <= MAX_DOCUMENT_BYTES {
        return Ok(document);
    }
    let mut document = head;
    document.insert("tooLarge", true);
    Ok(document)
}

/// Everything but the payload.
fn head(event: &StoredEvent, retention_ms: Option<u64>) -> Document {
    let fields = EventFields::of(event);
    let topic = event.topic();
    let mut document = doc! { "_id": format!("{topic}/{}", event.seq()), "id": &*event.id() };
    if let Some(sid) = fields.sid {
        document.insert("sid", sid);
    }
    document.insert("ts", signed(event.ts()));
    document.insert("topic", topic);
    document.insert("seq", signed(event.seq()));
    if let Some(key) = event.key() {
        document.insert("key", &*key);
    }
    if let Some(partition) = fields.partition {
        document.insert("partition", i64::from(partition));
    }
    if !fields.headers.is_empty() {
        let headers = fields.headers.into_iter();
        let headers: Document = headers.map(|(name, value)| (name, value.into())).collect();
        document.insert("headers", headers);
    }
    if !fields.caused_by.is_empty() {
        document.insert("caused_by", fields.caused_by);
    }
    if !fields.tags.is_empty() {
        document.insert("tags", fields.tags);
    }
    if let Some(retention_ms) = retention_ms {
        let expires_ms = event.ts().saturating_add(retention_ms);
        document.insert("expireAt", DateTime::from_millis(signed(expires_ms)));
    }
    document
}
