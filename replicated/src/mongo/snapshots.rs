//! Snapshots in the collection `snapshots`: one document for each chunk, `{_id: "p/k", s: p, k, b: bytes}`.

use super::{Shared, concern, number, signed, unavailable};
use crate::{Snapshots, Unavailable};
use bytes::Bytes;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, Document, doc};
use mongodb::error::Error;
use mongodb::options::ReadConcern;
use prombus_store::{Answer, Durability};
use std::sync::Arc;

/// The snapshots of a log in MongoDB.
pub(super) struct MongoSnapshots(pub(super) Arc<Shared>);

fn id(snapshot: u64, chunk: u32) -> String {
    format!("{snapshot}/{chunk}")
}

impl Shared {
    async fn put_chunk(&self, snapshot: u64, chunk: u32, bytes: Bytes) -> Result<(), Error> {
        let content = Binary {
            subtype: BinarySubtype::Generic,
            bytes: bytes.to_vec(),
        };
        let document = doc! { "_id": id(snapshot, chunk), "s": signed(snapshot), "k": i64::from(chunk), "b": content };
        let filter = doc! { "_id": id(snapshot, chunk) };
        // It may be put again after a lost answer.
        let put = self.snapshots.replace_one(filter, document).upsert(true);
        put.write_concern(concern(Durability::Fsync)).await?;
        Ok(())
    }

    async fn get_chunk(&self, snapshot: u64, chunk: u32) -> Result<Option<Bytes>, Error> {
        let find = self.snapshots.find_one(doc! { "_id": id(snapshot, chunk) });
        let found = find.read_concern(ReadConcern::majority()).await?;
        let Some(mut found) = found else {
            return Ok(None);
        };
        Ok(match found.remove("b") {
            Some(Bson::Binary(content)) => Some(content.bytes.into()),
            _ => None,
        })
    }

    async fn list_snapshots(&self) -> Result<Vec<u64>, Error> {
        let find = self.snapshots.find(doc! { "k": 0_i64 });
        let find = find.projection(doc! { "s": 1 });
        let mut cursor = find.read_concern(ReadConcern::majority()).await?;
        let mut snapshots = Vec::new();
        while cursor.advance().await? {
            let document: Document = cursor.deserialize_current()?;
            snapshots.push(number(&document, "s"));
        }
        snapshots.sort_unstable();
        Ok(snapshots)
    }
}

impl Snapshots for MongoSnapshots {
    fn put(&self, snapshot: u64, chunk: u32, bytes: Bytes) -> Answer<(), Unavailable> {
        let shared = self.0.clone();
        Box::pin(async move {
            let put = shared.put_chunk(snapshot, chunk, bytes).await;
            put.map_err(unavailable)
        })
    }

    fn get(&self, snapshot: u64, chunk: u32) -> Answer<Option<Bytes>, Unavailable> {
        let shared = self.0.clone();
        Box::pin(async move {
            let found = shared.get_chunk(snapshot, chunk).await;
            found.map_err(unavailable)
        })
    }

    fn list(&self) -> Answer<Vec<u64>, Unavailable> {
        let shared = self.0.clone();
        Box::pin(async move { shared.list_snapshots().await.map_err(unavailable) })
    }

    fn remove_below(&self, snapshot: u64) -> Answer<(), Unavailable> {
        let shared = self.0.clone();
        Box::pin(async move {
            // The manifests first: what has none does not count.
            for filter in [
                doc! { "s": { "$lt": signed(snapshot) }, "k": 0_i64 },
                doc! { "s": { "$lt": signed(snapshot) } },
            ] {
                let removed = shared.snapshots.delete_many(filter).await;
                removed.map_err(unavailable)?;
            }
            Ok(())
        })
    }
}
