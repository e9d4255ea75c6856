//! A batch that is published as a whole or not at all. Over HTTP, so that what comes behind it on the socket does not wait.

use super::{PublishBatch, Published};
use crate::client::Client;
use crate::error::{AckPublishError, PublishAtomicError};
use crate::http_client::{ask, bad_reply};
use crate::id::Id;
use http::Method;
use prombus_api::http::PublishAtomicReply;

impl Client {
    /// Publishes a batch, to one topic or many, as a whole or not at all. Where the events are is in their order.
    ///
    /// When the connection breaks before the reply came, all of them may be stored, or none. Events with ids of their own
    /// can be published again: then the reply says `duplicate`.
    pub async fn publish_atomic(
        &self,
        batch: PublishBatch,
    ) -> Result<Vec<Published>, PublishAtomicError> {
        let list = batch.into_list().map_err(|error| match error {
            AckPublishError::NotPublished { at, error } => {
                PublishAtomicError::NotPublished { at, error }
            }
            other => PublishAtomicError::Request(bad_reply(&other)),
        })?;
        let body = [&br#"{"publish":"#[..], &list, b"}"].concat();
        let reply: PublishAtomicReply = ask(self.core(), Method::POST, "/publish", body).await?;
        let published = reply.published.into_iter().map(|event| {
            let id = Id::from_client(&event.id).ok_or_else(|| bad_reply("an id is too long"))?;
            Ok(Published {
                id,
                seq: event.seq,
                due: None,
                duplicate: event.duplicate,
            })
        });
        published.collect()
    }
}
