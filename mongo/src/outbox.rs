//! An outbox: events that are written to a collection in the same transaction as what they are about, and published
//! afterwards by a drainer. Either both happened or neither did, and a crash in between neither loses nor doubles one.
//!
//! The collection is `prombus_outbox`; services in any language may write to it. A document has to have a `topic`, and
//! a `payload` (any BSON) or `raw` (JSON text).

mod add;
mod claims;
mod row;

pub use add::AddError;
pub use claims::Claims;
pub use prombus_connect::outbox::{
    Drained, DrainerOptions, OutboxCounts, Publish, PublishFailure, SentAt, Settled,
};
pub use row::OutboxRow;

use crate::changelog::create;
use crate::error::{MongoError, OutboxError};
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::IndexOptions;
use mongodb::{Collection, Database, IndexModel};
use prombus::Clock;
use std::sync::Arc;

/// The collection of the outbox.
pub const COLLECTION: &str = "prombus_outbox";

/// The outbox of a database.
#[derive(Debug, Clone, Copy)]
pub struct Outbox;

/// Publishes what is in an outbox.
pub type Drainer = prombus_connect::outbox::Drainer<Claims>;

impl Outbox {
    /// Makes the collection and its indexes where they are not there yet. Doing it twice is fine.
    pub async fn init(database: &Database) -> Result<(), OutboxError> {
        create(database, COLLECTION).await?;
        let index = |name: &str, keys: Document, mut options: IndexOptions| {
            options.name = Some(name.to_owned());
            IndexModel::builder().keys(keys).options(options).build()
        };
        let plain = IndexOptions::default;
        let once = IndexOptions::builder()
            .unique(true)
            .partial_filter_expression(doc! { "id": { "$exists": true } })
            .build();
        let sent = IndexOptions::builder().sparse(true).build();
        let indexes = [
            index("by_state", doc! { "state": 1, "_id": 1 }, plain()),
            index("by_key", doc! { "key": 1, "state": 1, "_id": 1 }, plain()),
            index("by_claim", doc! { "claim": 1 }, sent.clone()),
            index("by_event", doc! { "topic": 1, "id": 1 }, once),
            index("by_sent", doc! { "sent_at": 1 }, sent),
        ];
        rows(database).create_indexes(indexes.to_vec()).await?;
        Ok(())
    }

    /// A drainer of this database, in which the outbox has to be.
    pub async fn drainer(
        database: &Database,
        options: DrainerOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Drainer, OutboxError> {
        options.check()?;
        let names = database.list_collection_names().await?;
        if !names.iter().any(|name| name == COLLECTION) {
            return Err(OutboxError::NoOutbox);
        }
        let claims = Claims::new(database, &options);
        Ok(Drainer::new(claims, options, clock))
    }

    /// How many rows there are.
    pub async fn counts(database: &Database) -> Result<OutboxCounts, OutboxError> {
        let group = doc! { "$group": { "_id": "$state", "count": { "$sum": 1_i64 } } };
        let mut cursor = rows(database).aggregate([group]).await?;
        let mut counts = OutboxCounts::default();
        while cursor.advance().await? {
            let found: Document = cursor.deserialize_current()?;
            let count = crate::positions::unsigned(&found, "count");
            match found.get("_id") {
                None | Some(Bson::Null) => counts.pending += count,
                Some(Bson::String(state)) => match state.as_str() {
                    "pending" => counts.pending += count,
                    "claimed" => counts.claimed += count,
                    "sent" => counts.sent += count,
                    _ => counts.failed += count,
                },
                Some(_) => counts.failed += count,
            }
        }
        Ok(counts)
    }
}

fn rows(database: &Database) -> Collection<Document> {
    database.collection(COLLECTION)
}

/// All documents that a query finds; for queries whose results have a limit.
async fn all(
    cursor: Result<mongodb::Cursor<Document>, mongodb::error::Error>,
) -> Result<Vec<Document>, MongoError> {
    let mut cursor = cursor?;
    let mut found = Vec::new();
    while cursor.advance().await? {
        found.push(cursor.deserialize_current()?);
    }
    Ok(found)
}
