//! What a projector says while it folds: events to emit, and events it could make nothing of.

use crate::error::{InvalidPayload, PublishError, TooLarge};
use crate::options::Limits;
use crate::partition::partition_of_draft;
use crate::publish::{PublishOptions, draft};
use crate::schemas::TopicSchemas;
use prombus_store::{Batch, StoredEvent};
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A tick leaves the rest for later when it has emitted so many events.
const FULL_EVENTS: usize = 1_024;
/// Or so many bytes of payloads.
const FULL_BYTES: usize = 1 << 20;

/// Takes what a projector emits, until it is committed together with the position.
pub struct Emitter {
    topic: Arc<str>,
    limits: Limits,
    /// What payloads are held against.
    schemas: Option<Arc<TopicSchemas>>,
    /// How many partitions the topic has.
    partitions: Option<u32>,
    pub(super) batch: Batch,
    /// The id of the event that is folded.
    cause: Option<String>,
    bytes: usize,
    pub(super) emitted: u64,
    pub(super) rejected: u64,
    pub(super) last_rejection: Option<Arc<str>>,
}

impl Emitter {
    pub(super) fn new(
        topic: &Arc<str>,
        limits: Limits,
        schemas: Option<Arc<TopicSchemas>>,
        partitions: Option<u32>,
    ) -> Self {
        Self {
            topic: topic.clone(),
            limits,
            schemas,
            partitions,
            batch: Batch::atomic(),
            cause: None,
            bytes: 0,
            emitted: 0,
            rejected: 0,
            last_rejection: None,
        }
    }

    /// Emits a value as JSON to the output topic. Unless the options name other causes, `caused_by` names the event
    /// that is folded; a projector whose record is lost finds its position by that. The bus makes the id, whatever the
    /// options say. Nothing is emitted where this is an error.
    pub fn emit<T: Serialize + ?Sized>(
        &mut self,
        value: &T,
        options: &PublishOptions<'_>,
    ) -> Result<(), PublishError> {
        let payload = serde_json::to_string(value).map_err(|error| InvalidPayload {
            reason: error.to_string(),
        })?;
        let (bytes, limit) = (payload.len(), self.limits.max_payload_bytes);
        if bytes > limit {
            return Err(TooLarge::bytes("payload", bytes, limit).into());
        }
        let caused_by = if options.caused_by.is_empty() {
            self.cause.as_slice()
        } else {
            options.caused_by
        };
        let options = PublishOptions {
            id: None,
            caused_by,
            ..*options
        };
        let mut draft = draft(&self.limits, &payload, &options)?;
        draft.partition = partition_of_draft(&draft, self.partitions, || self.emitted);
        let stamped = match &self.schemas {
            Some(schemas) => schemas.stamp(&draft, false)?,
            None => Cow::Borrowed(draft.headers),
        };
        draft.headers = &stamped;
        self.batch.publish(&self.topic, &draft);
        self.emitted += 1;
        self.bytes += bytes;
        Ok(())
    }

    /// Counts the event that is folded as one that nothing could be made of, and keeps the reason for the status.
    pub fn reject(&mut self, reason: impl fmt::Display) {
        self.rejected += 1;
        let cause = self.cause.as_deref().unwrap_or("a tick");
        self.last_rejection = Some(format!("{cause}: {reason}").into());
    }

    /// Whether so much was emitted that the rest should wait for the next batch.
    pub fn is_full(&self) -> bool {
        self.emitted >= FULL_EVENTS as u64 || self.bytes >= FULL_BYTES
    }

    /// From now on what is emitted comes from this event.
    pub(super) fn begin(&mut self, event: &StoredEvent) {
        self.cause = Some(event.id().into_owned());
    }
}

impl fmt::Debug for Emitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emitter")
            .field("emitted", &self.emitted)
            .field("rejected", &self.rejected)
            .finish_non_exhaustive()
    }
}
