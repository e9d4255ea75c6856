//! Adding an event to the outbox, inside the caller's own transaction.

use super::{Outbox, rows};
use crate::error::{MongoError, OutboxError};
use crate::json::Payload;
use crate::positions::signed;
use mongodb::bson::{DateTime, Document, doc, oid::ObjectId};
use mongodb::{ClientSession, Database};
use prombus::PublishOptions;
use prombus_connect::outbox::{check_added, to_json};
use serde::Serialize;

/// Why an event was not added.
pub type AddError = prombus_connect::outbox::AddError<OutboxError>;

impl Outbox {
    /// Adds an event whose payload is JSON text; its id. It is published if and only if the session's transaction
    /// commits. Where a write conflict ends the transaction, the caller runs it again, as with any other write.
    ///
    /// What can be seen to be wrong is refused here, where the caller can still do something about it. How large things
    /// may be is for the bus to say.
    pub async fn add(
        session: &mut ClientSession,
        database: &Database,
        topic: &str,
        payload: &str,
        options: &PublishOptions<'_>,
    ) -> Result<String, AddError> {
        let payload = check_added(topic, payload, options)?;
        let place = ObjectId::new();
        let id = options.id.map_or_else(|| place.to_hex(), str::to_owned);
        let mut document = doc! { "_id": place, "id": &id, "topic": topic };
        Payload::of(&payload).insert_into(&mut document);
        add_options(&mut document, options);
        document.insert("created_at", DateTime::now());
        document.insert("state", "pending");
        let rows = rows(database);
        let added = rows.insert_one(document).session(session).await;
        match added.map_err(MongoError::from) {
            Ok(_) => Ok(id),
            Err(MongoError::Duplicate { .. }) => Err(AddError::IdTaken { id }),
            Err(error) => Err(AddError::Outbox(error.into())),
        }
    }

    /// Adds an event whose payload is a value.
    pub async fn add_value<T: Serialize + ?Sized>(
        session: &mut ClientSession,
        database: &Database,
        topic: &str,
        value: &T,
        options: &PublishOptions<'_>,
    ) -> Result<String, AddError> {
        Self::add(session, database, topic, &to_json(value)?, options).await
    }
}

/// Puts what a publisher may say into the document.
fn add_options(document: &mut Document, options: &PublishOptions<'_>) {
    if let Some(key) = options.key {
        document.insert("key", key);
    }
    if let Some(ts) = options.ts {
        document.insert("ts", signed(ts));
    }
    if !options.headers.is_empty() {
        let headers = options.headers.iter();
        let headers: Document = headers
            .map(|(name, value)| (name.clone(), value.as_str().into()))
            .collect();
        document.insert("headers", headers);
    }
    if !options.tags.is_empty() {
        document.insert("tags", options.tags);
    }
    if !options.caused_by.is_empty() {
        document.insert("caused_by", options.caused_by);
    }
    if let Some(sid) = options.sid {
        document.insert("sid", sid);
    }
}
