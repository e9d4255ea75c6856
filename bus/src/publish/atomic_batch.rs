//! Events that are published as a whole or not at all, together with something else that the store commits.

use super::Published;
use super::batch::{PublishBatch, TopicRun};
use super::future::outcome;
use crate::error::{AckPublishError, IdConflict, NotPublished, PublishError, UnknownTopic};
use crate::topics::Topics;
use prombus_store::{Batch, CommitError, EventOutcome, StoreFailed};
use std::sync::Arc;

/// A batch of which every event is as it should be.
#[derive(Debug)]
pub(crate) struct AtomicBatch {
    batch: Batch,
    runs: Vec<TopicRun>,
}

impl PublishBatch {
    /// The events as a whole, or why they cannot be one.
    pub(crate) fn into_atomic(self) -> Result<AtomicBatch, AckPublishError> {
        if self.core.is_closed() {
            return Err(AckPublishError::Closed);
        }
        if let Some((at, error)) = self.rejected.into_iter().next() {
            return Err(NotPublished { at, error }.into());
        }
        Ok(AtomicBatch {
            batch: self.batch,
            runs: self.runs,
        })
    }
}

impl PublishBatch {
    /// Publishes all events or none. What does not blame an event is reported of the first one.
    pub(crate) async fn publish_atomic(self) -> Result<Vec<Published>, NotPublished> {
        let core = self.core.clone();
        let of_first = |error| NotPublished { at: 0, error };
        let events = self.into_atomic().map_err(not_published)?;
        if events.is_empty() {
            return Ok(Vec::new());
        }
        events.check_topics(&core.topics)?;
        let mut batch = Batch::atomic();
        events.append_to(&mut batch);
        let commit = core.topics.commit_creating(batch, events.topics());
        match commit.await {
            Ok(receipt) => events.published(&receipt.events),
            Err(CommitError::VersionMismatch(error)) => {
                let cause = error.to_string().into();
                Err(of_first(StoreFailed { cause }.into()))
            }
            Err(error) => {
                events.forget_topics(&core.topics);
                Err(not_published(events.attribute(error)))
            }
        }
    }
}

/// Why events were not published, where nothing was to be acknowledged with them.
fn not_published(error: AckPublishError) -> NotPublished {
    let error = match error {
        AckPublishError::NotPublished(error) => return error,
        AckPublishError::StoreFailed(error) => error.into(),
        AckPublishError::LimitReached(error) => error.into(),
        _ => PublishError::Closed,
    };
    NotPublished { at: 0, error }
}

impl AtomicBatch {
    /// How many events there are.
    pub(crate) fn len(&self) -> usize {
        self.batch.events().len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// As bytes, for another node.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.batch.encode(&mut bytes);
        bytes
    }

    /// What another node encoded; `None` where that cannot be understood.
    pub(crate) fn decode(mut bytes: &[u8]) -> Option<Self> {
        let batch = Batch::decode(&mut bytes)
            .ok()
            .filter(|_| bytes.is_empty())?;
        let mut runs: Vec<TopicRun> = Vec::new();
        for (first, event) in batch.events().enumerate() {
            if runs.last().is_none_or(|run| run.topic != *event.topic()) {
                runs.push(TopicRun::new(first, event.topic().clone()));
            }
        }
        Some(Self { batch, runs })
    }

    /// Bytes of their JSON.
    pub(crate) fn bytes(&self) -> usize {
        self.batch.text_bytes()
    }

    /// Refuses events of topics that do not exist and may not be made.
    pub(crate) fn check_topics(&self, topics: &Topics) -> Result<(), NotPublished> {
        for run in &self.runs {
            topics.check(&run.topic).map_err(|unknown| NotPublished {
                at: run.first,
                error: unknown.into(),
            })?;
        }
        Ok(())
    }

    /// The topics of the events.
    pub(crate) fn topics(&self) -> impl Iterator<Item = &Arc<str>> {
        self.runs.iter().map(|run| &run.topic)
    }

    /// Whether their topics exist has to be asked anew: nothing was committed, perhaps not even what makes them.
    pub(crate) fn forget_topics(&self, topics: &Topics) {
        self.runs.iter().for_each(|run| topics.forget(&run.topic));
    }

    /// Puts them behind what is in `batch`.
    pub(crate) fn append_to(&self, batch: &mut Batch) {
        batch.append(&self.batch);
    }

    /// Their positions, from the store's outcomes.
    pub(crate) fn published(
        &self,
        outcomes: &[EventOutcome],
    ) -> Result<Vec<Published>, NotPublished> {
        let events = self.batch.events().enumerate();
        let published = events.map(|(at, event)| {
            let published = outcome(outcomes.get(at), || event.topic());
            published.map_err(|error| NotPublished { at, error })
        });
        published.collect()
    }

    /// Why they were not committed, with the event that is to blame where one is.
    pub(crate) fn attribute(&self, error: CommitError) -> AckPublishError {
        let (at, error) = match error {
            CommitError::IdConflict(conflict) => {
                (self.index_of(&conflict), PublishError::from(conflict))
            }
            CommitError::SeqMismatch(mismatch) => (mismatch.event, PublishError::from(mismatch)),
            CommitError::UnknownTopic(unknown) => {
                (self.index_in(&unknown), PublishError::from(unknown))
            }
            CommitError::LimitReached(error) => return error.into(),
            CommitError::StoreFailed(error) => return error.into(),
            CommitError::Unavailable { cause } | CommitError::Unknown { cause } => {
                return StoreFailed { cause }.into();
            }
            // Only the group's record is expected at a version, and the owner that wrote it has the group now.
            CommitError::VersionMismatch(_) => return AckPublishError::Gone,
            CommitError::Closed => return AckPublishError::Closed,
        };
        NotPublished { at, error }.into()
    }

    /// The last event with the id: where two of a batch conflict, the first one was here first.
    fn index_of(&self, conflict: &IdConflict) -> usize {
        let events = self.batch.events().enumerate();
        let has_id = events.filter(|(_, event)| {
            *event.topic() == conflict.topic
                && event.id().is_some_and(|id| id.as_str() == conflict.id)
        });
        has_id.last().map_or(0, |(at, _)| at)
    }

    fn index_in(&self, unknown: &UnknownTopic) -> usize {
        let run = self.runs.iter().find(|run| run.topic == unknown.topic);
        run.map_or(0, |run| run.first)
    }
}
