//! One process at a time mirrors: a document with its holder, and until when by the server's clock.

use super::MirrorOptions;
use crate::error::MongoError;
use mongodb::Database;
use mongodb::bson::{Document, doc};
use mongodb::options::ReturnDocument;
use std::time::Duration;
use tokio::time::Instant;

/// The collection of leases.
const COLLECTION: &str = "prombus_leases";

/// A lease that this process asks for.
#[derive(Debug)]
pub(super) struct Lease {
    database: Database,
    name: &'static str,
    holder: String,
    lease_ms: u64,
    /// When it was asked for and given last.
    held_since: Option<Instant>,
}

/// Whether this process holds the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// Another process does.
    No,
    /// It has just got it.
    Anew,
    /// It goes on holding it.
    Still,
}

impl Lease {
    pub(super) fn new(database: &Database, name: &'static str, options: &MirrorOptions) -> Self {
        Self {
            database: database.clone(),
            name,
            holder: options.holder.clone(),
            lease_ms: options.lease_ms,
            held_since: None,
        }
    }

    /// Takes the lease, or renews it when a third of it is over.
    pub(super) async fn hold(&mut self) -> Result<Held, MongoError> {
        let renew_after = Duration::from_millis(self.lease_ms / 3);
        if self
            .held_since
            .is_some_and(|since| since.elapsed() < renew_after)
        {
            return Ok(Held::Still);
        }
        let asked = Instant::now();
        let lease_ms = i64::try_from(self.lease_ms).unwrap_or(i64::MAX);
        // Numbers compare the same on every server; so whoever asks, the server's clock decides.
        let is_over = doc! { "$lt": [{ "$toLong": "$until" }, { "$toLong": "$$NOW" }] };
        let is_mine = doc! { "$eq": ["$holder", { "$literal": &self.holder }] };
        let may = doc! { "$or": [is_mine, is_over] };
        let holder = doc! { "$cond": [&may, { "$literal": &self.holder }, "$holder"] };
        let until = doc! { "$cond": [&may, { "$add": ["$$NOW", lease_ms] }, "$until"] };
        let take = vec![doc! { "$set": { "holder": holder, "until": until } }];
        let leases = self.database.collection::<Document>(COLLECTION);
        let ask = leases.find_one_and_update(doc! { "_id": self.name }, take);
        let asked_for = ask
            .upsert(true)
            .return_document(ReturnDocument::After)
            .await;
        let had = self.held_since.take();
        let found = match asked_for.map_err(MongoError::from) {
            Ok(found) => found.unwrap_or_default(),
            // Another process has just made the document.
            Err(MongoError::Duplicate { .. }) => return Ok(Held::No),
            Err(error) => return Err(error),
        };
        if found.get_str("holder").ok() != Some(self.holder.as_str()) {
            return Ok(Held::No);
        }
        self.held_since = Some(asked);
        Ok(match had {
            Some(_) => Held::Still,
            None => Held::Anew,
        })
    }
}
