//! The first snapshot: every document, in the order of `_id`, with the place where it stopped kept in the bus.

use super::event::{FeedEvent, canonical};
use super::progress::{Phase, Progress};
use super::{Changefeed, FeedBus};
use crate::error::FeedError;
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::ReadConcern;

impl Changefeed {
    /// Publishes the documents that are there, from where an earlier attempt stopped on.
    pub(super) async fn snapshot(
        &mut self,
        bus: &impl FeedBus,
        progress: Progress,
    ) -> Result<(), FeedError> {
        let Progress { phase, token } = progress;
        let Phase::Snapshot { snapshot, after } = phase else {
            return Ok(());
        };
        let find = self.collection.find(behind(after, self)?);
        // What a failover could take back is not published.
        let find = find.read_concern(ReadConcern::majority());
        let mut cursor = find.sort(doc! { "_id": 1 }).await?;
        let (mut events, mut bytes) = (Vec::new(), 0);
        let mut last = Bson::Null;
        loop {
            let is_end = !cursor.advance().await?;
            if !is_end {
                let document: Document = cursor.deserialize_current()?;
                last = document.get("_id").cloned().unwrap_or(Bson::Null);
                let event = FeedEvent::of_document(document, &self.options.topic, &snapshot);
                bytes += event.row.payload.len();
                events.push(event);
            }
            let is_full =
                events.len() >= self.options.batch_events || bytes >= self.options.batch_bytes;
            if is_full && !is_end {
                let count = events.len() as u64;
                self.publish_rows(bus, std::mem::take(&mut events)).await?;
                self.total.snapshot += count;
                bytes = 0;
                let phase = Phase::Snapshot {
                    snapshot: snapshot.clone(),
                    after: Some(canonical(&last)),
                };
                let token = token.clone();
                self.save(bus, Progress { phase, token }).await?;
            }
            if is_end {
                let count = events.len() as u64;
                self.publish_rows(bus, events).await?;
                self.total.snapshot += count;
                return self.save(bus, Progress::streaming(token)).await;
            }
        }
    }
}

/// Documents behind this one. Comparing as an expression goes on beyond the type of the `_id`, as the order does.
fn behind(after: Option<serde_json::Value>, feed: &Changefeed) -> Result<Document, FeedError> {
    let Some(after) = after else {
        return Ok(doc! {});
    };
    let after = Bson::try_from(after).map_err(|error| FeedError::BadProgress {
        topic: feed.options.progress_topic(),
        why: error.to_string(),
    })?;
    Ok(doc! { "$expr": { "$gt": ["$_id", { "$literal": after }] } })
}
