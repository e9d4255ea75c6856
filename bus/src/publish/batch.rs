//! A batch of events to publish, to one topic or many, with one wait for all of them.

use super::validate::{checked_payload, draft};
use super::{BatchFuture, PublishOptions};
use crate::core::Core;
use crate::error::{InvalidPayload, PublishError};
use crate::partition::partition_of_draft;
use crate::schemas::TopicSchemas;
use prombus_store::{Answer, Batch, CommitError, Receipt, Store};
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Events to be published in order, with one durability wait. An event that is not as it should be gets its error in
/// the answer and does not keep the others from being stored.
///
/// Adding an event writes its JSON straight into the batch, without an allocation of its own.
pub struct PublishBatch {
    pub(super) core: Arc<Core>,
    pub(super) batch: Batch,
    /// How many events were added, the refused ones too.
    count: usize,
    /// Which of them were refused, and why.
    pub(super) rejected: Vec<(usize, PublishError)>,
    /// The topics of the events that were not refused: how many of them precede the run, and its topic.
    pub(super) runs: Vec<TopicRun>,
}

/// Consecutive events of one topic.
#[derive(Debug)]
pub(super) struct TopicRun {
    /// How many events of the batch come before this run.
    pub(super) first: usize,
    pub(super) topic: Arc<str>,
    /// Whether the topic was known to exist when the run began.
    known: bool,
    /// What its payloads are held against.
    schemas: Option<Arc<TopicSchemas>>,
    partitions: Option<u32>,
}

impl TopicRun {
    /// Events that were checked before.
    pub(super) fn new(first: usize, topic: Arc<str>) -> Self {
        Self {
            first,
            topic,
            known: false,
            schemas: None,
            partitions: None,
        }
    }
}

impl PublishBatch {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self {
            core,
            batch: Batch::new(),
            count: 0,
            rejected: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// Adds an event whose payload is JSON text.
    pub fn add(&mut self, topic: &str, payload: &str, options: &PublishOptions<'_>) -> &mut Self {
        if let Err(error) = self.try_add(topic, payload, options) {
            self.rejected.push((self.count, error));
        }
        self.count += 1;
        self
    }

    /// Adds an event whose payload is a value.
    pub fn add_value<T: Serialize + ?Sized>(
        &mut self,
        topic: &str,
        value: &T,
        options: &PublishOptions<'_>,
    ) -> &mut Self {
        match serde_json::to_string(value) {
            Ok(payload) => self.add(topic, &payload, options),
            Err(error) => {
                let reason = error.to_string();
                self.rejected
                    .push((self.count, InvalidPayload { reason }.into()));
                self.count += 1;
                self
            }
        }
    }

    /// How many events were added.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether none was added.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Hands the events to the store. They are on their way when this returns.
    pub(crate) fn publish(self) -> BatchFuture {
        self.publish_by(|store, batch| store.commit(batch))
    }

    /// The same for a caller that does nothing else until it has the answer.
    pub(crate) fn publish_inline(self) -> BatchFuture {
        self.publish_by(|store, batch| store.commit_inline(batch))
    }

    fn publish_by(
        self,
        commit: impl FnOnce(&dyn Store, Batch) -> Answer<Receipt, CommitError>,
    ) -> BatchFuture {
        let Self {
            core,
            batch,
            count,
            rejected,
            runs,
        } = self;
        if core.is_closed() {
            return BatchFuture::rejected(core, count, PublishError::Closed);
        }
        for run in runs.iter().filter(|run| !run.known) {
            // Where it may not be made, the store itself says that it is unknown.
            let _ = core.topics.ensure(&run.topic, false);
        }
        let pending = (!batch.is_empty()).then(|| commit(&*core.store, batch));
        BatchFuture::new(core, count, rejected, runs, pending)
    }

    fn try_add(
        &mut self,
        topic: &str,
        payload: &str,
        options: &PublishOptions<'_>,
    ) -> Result<(), PublishError> {
        let is_another_topic = self.runs.last().is_none_or(|run| &*run.topic != topic);
        if is_another_topic {
            let turn = self.turn(topic)?;
            self.runs.push(turn);
        }
        let Some(run) = self.runs.last() else {
            return Ok(());
        };
        let added = add(&self.core, &mut self.batch, run, payload, options);
        if added.is_err() && is_another_topic {
            // An event that is refused does not make its topic.
            self.runs.pop();
        }
        added
    }

    /// The run that begins with an event of another topic than the one before it.
    fn turn(&self, topic: &str) -> Result<TopicRun, PublishError> {
        let named = self.core.topics.checked(topic)?;
        let schemas = match named.traits.schemas {
            Some(generation) => Some(self.core.schemas.of(&named.topic, generation)?),
            None => None,
        };
        Ok(TopicRun {
            first: self.count - self.rejected.len(),
            topic: named.topic,
            known: named.known,
            schemas,
            partitions: named.traits.partitions,
        })
    }
}

/// Adds an event to the batch for the store.
fn add(
    core: &Core,
    batch: &mut Batch,
    run: &TopicRun,
    payload: &str,
    options: &PublishOptions<'_>,
) -> Result<(), PublishError> {
    let limits = &core.options.limits;
    let schemas = run.schemas.as_deref();
    let payload = checked_payload(limits, &run.topic, payload, |payload| {
        schemas.is_some_and(|schemas| schemas.fits_compact(options.headers, payload))
    })?;
    let mut draft = draft(limits, &payload.text, options)?;
    draft.partition = partition_of_draft(&draft, run.partitions, || core.number());
    let stamped = match schemas {
        Some(schemas) => schemas.stamp(&draft, payload.fits)?,
        None => Cow::Borrowed(draft.headers),
    };
    draft.headers = &stamped;
    batch.publish(&run.topic, &draft);
    Ok(())
}

impl fmt::Debug for PublishBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublishBatch")
            .field("count", &self.count)
            .field("rejected", &self.rejected)
            .finish_non_exhaustive()
    }
}
