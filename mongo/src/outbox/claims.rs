//! The rows that a worker holds: claiming them with a lease, and saying what became of them. The time is an argument.
//!
//! No transaction is needed. A claim is one conditional update of each row; afterwards the worker looks whether an
//! earlier row of the same topic and key is still open in other hands, and gives its own back if so. The earliest open
//! row of a key has none before it, so somebody always goes on.

use super::row::{self, OutboxRow};
use super::{COLLECTION, Outbox, OutboxCounts, all, rows};
use crate::commands::{size, update};
use crate::error::{MongoError, OutboxError};
use crate::positions::signed;
use mongodb::Database;
use mongodb::bson::{Bson, DateTime, Document, doc, oid::ObjectId};
use prombus::Backoff;
use prombus_connect::outbox::{
    ClaimStore, Claimed, DrainerOptions, PublishFailure, SentAt, Settled,
};
use std::collections::HashSet;

/// The most keys whose later rows are left out of a claim because an earlier one is held or waits.
const MAX_BLOCKED_KEYS: i64 = 1_000;

/// One worker's hold on an outbox.
#[derive(Debug, Clone)]
pub struct Claims {
    database: Database,
    worker: String,
    lease_ms: u64,
    backoff: Backoff,
}

impl Claims {
    /// A worker, which has to have a name of its own.
    pub fn new(database: &Database, options: &DrainerOptions) -> Self {
        Self {
            database: database.clone(),
            worker: options.worker.clone(),
            lease_ms: options.lease_ms,
            backoff: options.backoff,
        }
    }

    /// Makes rows pending again whose worker did not come back.
    async fn requeue(&self, now: DateTime) -> Result<(), MongoError> {
        let expired = doc! { "state": "claimed", "lease_until": { "$lte": now } };
        let mut requeue = release();
        if let Ok(set) = requeue.get_document_mut("$set") {
            set.insert("due", now);
            set.insert("error", "the lease of its worker ran out");
        }
        rows(&self.database).update_many(expired, requeue).await?;
        Ok(())
    }

    /// Later rows of keys of which an earlier one is held, or waits for its next attempt.
    async fn blocked(&self, now: DateTime) -> Result<Vec<Document>, MongoError> {
        let open = doc! {
            "key": { "$type": "string" },
            "$or": [{ "state": "claimed" }, { "state": "pending", "due": { "$gt": now } }],
        };
        let first =
            doc! { "_id": { "topic": "$topic", "key": "$key" }, "first": { "$min": "$_id" } };
        let pipeline = [
            doc! { "$match": open },
            doc! { "$group": first },
            doc! { "$limit": MAX_BLOCKED_KEYS },
        ];
        let found = all(rows(&self.database).aggregate(pipeline).await).await?;
        let blocked = found.iter().filter_map(|found| {
            let key = found.get_document("_id").ok()?;
            let (topic, key) = (key.get_str("topic").ok()?, key.get_str("key").ok()?);
            Some(doc! { "topic": topic, "key": key, "_id": { "$gt": found.get("first")? } })
        });
        Ok(blocked.collect())
    }

    /// What may be claimed, in the order of the rows.
    async fn candidates(
        &self,
        now: DateTime,
        max_rows: usize,
        max_bytes: usize,
    ) -> Result<Vec<Bson>, MongoError> {
        let mut due = doc! {
            "state": { "$in": [Bson::Null, "pending"] },
            "due": { "$not": { "$gt": now } },
        };
        let blocked = self.blocked(now).await?;
        if !blocked.is_empty() {
            due.insert("$nor", blocked);
        }
        let rows = rows(&self.database);
        let limit = i64::try_from(max_rows).unwrap_or(i64::MAX);
        let mut cursor = rows.find(due).sort(doc! { "_id": 1 }).limit(limit).await?;
        let (mut places, mut bytes) = (Vec::new(), 0);
        while cursor.advance().await? {
            let mut row: Document = cursor.deserialize_current()?;
            bytes += size(&row)?;
            places.extend(row.remove("_id"));
            if bytes >= max_bytes {
                break;
            }
        }
        Ok(places)
    }

    /// Gives back the rows of this claim that an open row of the same key precedes which is not of it.
    async fn keep_order(&self, claim: &str, held: &mut Vec<Document>) -> Result<(), MongoError> {
        let keys: HashSet<&str> = held
            .iter()
            .filter_map(|row| row.get_str("key").ok())
            .collect();
        let Some(last) = held.last().and_then(|row| row.get("_id")).cloned() else {
            return Ok(());
        };
        if keys.is_empty() {
            return Ok(());
        }
        let open = doc! {
            "key": { "$in": keys.into_iter().collect::<Vec<_>>() },
            "state": { "$in": [Bson::Null, "pending", "claimed"] },
            "_id": { "$lte": last },
        };
        let fields = doc! { "topic": 1, "key": 1, "claim": 1 };
        let rows = rows(&self.database);
        let find = rows.find(open).sort(doc! { "_id": 1 });
        let open = all(find.projection(fields).await).await?;
        let mut blocked: HashSet<(String, String)> = HashSet::new();
        let mut given_back: Vec<Bson> = Vec::new();
        for row in &open {
            let name = |field| row.get_str(field).unwrap_or_default().to_owned();
            let key = (name("topic"), name("key"));
            if row.get_str("claim").ok() != Some(claim) {
                blocked.insert(key);
            } else if blocked.contains(&key) {
                given_back.extend(row.get("_id").cloned());
            }
        }
        if given_back.is_empty() {
            return Ok(());
        }
        let mut release = release();
        release.insert("$inc", doc! { "attempts": -1 });
        let mine = doc! { "_id": { "$in": &given_back }, "claim": claim };
        rows.update_many(mine, release).await?;
        held.retain(|row| {
            row.get("_id")
                .is_some_and(|place| !given_back.contains(place))
        });
        Ok(())
    }

    /// What is written of a row, and to which row.
    fn settlement(
        &self,
        now_ms: u64,
        row: &OutboxRow,
        result: &Result<SentAt, PublishFailure>,
        settled: &mut Settled,
    ) -> (Document, Document) {
        let mine = doc! { "_id": &row.place, "state": "claimed", "worker": &self.worker };
        let mut write = release();
        match result {
            Ok(sent) => {
                settled.sent += 1;
                settled.duplicates += u64::from(sent.duplicate);
                let set =
                    doc! { "state": "sent", "sent_at": date(now_ms), "sent_seq": signed(sent.seq) };
                write.insert("$set", set);
                if let Ok(unset) = write.get_document_mut("$unset") {
                    unset.insert("error", "");
                }
                // The event is in the topic, also if another drainer holds the row now.
                let open = doc! { "$in": [Bson::Null, "pending", "claimed"] };
                (doc! { "_id": &row.place, "state": open }, write)
            }
            Err(failure) => {
                let error = format!("{}: {}", failure.code, failure.why);
                let set = if failure.is_permanent() {
                    settled.failed += 1;
                    doc! { "state": "failed", "error": error }
                } else {
                    settled.retried += 1;
                    let asked_ms = failure.retry_after_ms.unwrap_or(0);
                    let wait_ms = self.backoff.wait_ms(row.attempts).max(asked_ms);
                    let due = date(now_ms.saturating_add(wait_ms));
                    doc! { "state": "pending", "due": due, "error": error }
                };
                write.insert("$set", set);
                (mine, write)
            }
        }
    }
}

impl ClaimStore for Claims {
    type Place = Bson;
    type Error = OutboxError;

    async fn claim(
        &self,
        now_ms: u64,
        max_rows: usize,
        max_bytes: usize,
    ) -> Result<Claimed<Bson>, OutboxError> {
        let now = date(now_ms);
        self.requeue(now).await?;
        let places = self.candidates(now, max_rows, max_bytes).await?;
        if places.is_empty() {
            return Ok((Vec::new(), Settled::default()));
        }
        let claim = ObjectId::new().to_hex();
        let due = doc! {
            "_id": { "$in": places },
            "state": { "$in": [Bson::Null, "pending"] },
        };
        let until = date(now_ms.saturating_add(self.lease_ms));
        let set = doc! {
            "state": "claimed",
            "worker": &self.worker,
            "claim": &claim,
            "lease_until": until,
        };
        let take = doc! { "$set": set, "$inc": { "attempts": 1 } };
        let rows = rows(&self.database);
        rows.update_many(due, take).await?;
        let mine = rows.find(doc! { "claim": &claim }).sort(doc! { "_id": 1 });
        let mut held = all(mine.await).await?;
        self.keep_order(&claim, &mut held).await?;
        let mut claimed = Vec::with_capacity(held.len());
        let (mut settled, mut bad) = (Settled::default(), Vec::new());
        for document in &held {
            match row::read(document) {
                Ok(row) => claimed.push(row),
                Err(why) => {
                    let place = document.get("_id").cloned().unwrap_or(Bson::Null);
                    let mut fail = release();
                    let error = format!("bad_frame: {why}");
                    fail.insert("$set", doc! { "state": "failed", "error": error });
                    bad.push((doc! { "_id": place, "claim": &claim }, fail));
                    settled.failed += 1;
                }
            }
        }
        update(&self.database, COLLECTION, bad, None).await?;
        Ok((claimed, settled))
    }

    async fn settle(
        &self,
        now_ms: u64,
        rows: Vec<OutboxRow>,
        results: Vec<Result<SentAt, PublishFailure>>,
    ) -> Result<Settled, OutboxError> {
        let mut settled = Settled::default();
        let missing = Err(PublishFailure::new("no_answer", "no answer came"));
        let writes = rows.iter().enumerate().map(|(at, row)| {
            let result = results.get(at).unwrap_or(&missing);
            self.settlement(now_ms, row, result, &mut settled)
        });
        let writes = writes.collect();
        update(&self.database, COLLECTION, writes, None).await?;
        Ok(settled)
    }

    async fn prune(&self, sent_until_ms: u64, limit: usize) -> Result<u64, OutboxError> {
        let rows = rows(&self.database);
        let old = doc! { "state": "sent", "sent_at": { "$lte": date(sent_until_ms) } };
        let find = rows.find(old).sort(doc! { "sent_at": 1 });
        let find = find.limit(i64::try_from(limit).unwrap_or(i64::MAX));
        let old = all(find.projection(doc! { "_id": 1 }).await).await?;
        if old.is_empty() {
            return Ok(0);
        }
        let places: Vec<Bson> = old
            .iter()
            .filter_map(|row| row.get("_id").cloned())
            .collect();
        let pruned = rows.delete_many(doc! { "_id": { "$in": places } }).await?;
        Ok(pruned.deleted_count)
    }

    async fn counts(&self) -> Result<OutboxCounts, OutboxError> {
        Outbox::counts(&self.database).await
    }
}

/// Takes a row out of its worker's hands.
fn release() -> Document {
    doc! {
        "$set": { "state": "pending" },
        "$unset": { "worker": "", "claim": "", "lease_until": "" },
    }
}

fn date(ms: u64) -> DateTime {
    DateTime::from_millis(signed(ms))
}
