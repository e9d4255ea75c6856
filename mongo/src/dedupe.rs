//! Dedupe marks in the collection `prombus_dedupe`, removed by the server when they ran out.
//!
//! [`MongoDedupe`] is a place for marks like any other. [`seen`] and [`mark`] do the same inside a session of the
//! caller's own: where the mark commits together with the effect, the effect happens exactly once.

use crate::error::MongoError;
use mongodb::bson::{DateTime, Document, doc};
use mongodb::options::IndexOptions;
use mongodb::{ClientSession, Collection, Database, IndexModel};
use prombus::error::DedupeError;
use prombus::{Answer, Clock, DedupeStore};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The collection of marks.
const COLLECTION: &str = "prombus_dedupe";

/// Marks in a database.
#[derive(Clone)]
pub struct MongoDedupe {
    database: Database,
    clock: Arc<dyn Clock>,
}

/// Makes the collection's index, by which the server removes marks that ran out.
pub async fn init(database: &Database) -> Result<(), MongoError> {
    let expiry = IndexOptions::builder()
        .name("by_expiry".to_owned())
        .expire_after(Duration::ZERO)
        .build();
    let index = IndexModel::builder()
        .keys(doc! { "expireAt": 1 })
        .options(expiry)
        .build();
    marks(database).create_index(index).await?;
    Ok(())
}

/// Whether `id` is marked in `scope`, and its mark has not run out. The server may keep a mark for a while longer; that
/// does not count.
pub async fn seen(
    database: &Database,
    session: Option<&mut ClientSession>,
    scope: &str,
    id: &str,
    now_ms: u64,
) -> Result<bool, MongoError> {
    let marks = marks(database);
    let live = doc! { "_id": mark_id(scope, id), "expireAt": { "$gt": date(now_ms) } };
    let mut find = marks.find_one(live);
    if let Some(session) = session {
        find = find.session(session);
    }
    Ok(find.await?.is_some())
}

/// Marks `id` in `scope` for `ttl_ms` from now; marking it again renews the time.
pub async fn mark(
    database: &Database,
    session: Option<&mut ClientSession>,
    scope: &str,
    id: &str,
    ttl_ms: u64,
    now_ms: u64,
) -> Result<(), MongoError> {
    let marks = marks(database);
    let until = doc! { "$set": { "expireAt": date(now_ms.saturating_add(ttl_ms)) } };
    let filter = doc! { "_id": mark_id(scope, id) };
    let mut mark = marks.update_one(filter, until).upsert(true);
    if let Some(session) = session {
        mark = mark.session(session);
    }
    mark.await?;
    Ok(())
}

fn marks(database: &Database) -> Collection<Document> {
    database.collection(COLLECTION)
}

fn mark_id(scope: &str, id: &str) -> Document {
    doc! { "scope": scope, "id": id }
}

fn date(ms: u64) -> DateTime {
    DateTime::from_millis(ms.try_into().unwrap_or(i64::MAX))
}

impl MongoDedupe {
    /// Marks in this database; the collection is made where there is none.
    pub async fn open(database: &Database, clock: Arc<dyn Clock>) -> Result<Self, MongoError> {
        init(database).await?;
        let database = database.clone();
        Ok(Self { database, clock })
    }
}

impl DedupeStore for MongoDedupe {
    fn seen(&self, scope: &str, id: &str) -> Answer<bool, DedupeError> {
        let (this, scope, id) = (self.clone(), scope.to_owned(), id.to_owned());
        Box::pin(async move {
            let now_ms = this.clock.now_ms();
            let seen = seen(&this.database, None, &scope, &id, now_ms).await;
            seen.map_err(DedupeError::failed)
        })
    }

    fn mark(&self, scope: &str, id: &str, ttl_ms: u64) -> Answer<(), DedupeError> {
        let (this, scope, id) = (self.clone(), scope.to_owned(), id.to_owned());
        Box::pin(async move {
            let now_ms = this.clock.now_ms();
            let mark = mark(&this.database, None, &scope, &id, ttl_ms, now_ms).await;
            mark.map_err(DedupeError::failed)
        })
    }
}

impl fmt::Debug for MongoDedupe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MongoDedupe").finish_non_exhaustive()
    }
}
