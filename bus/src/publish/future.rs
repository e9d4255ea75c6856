//! The answers to publishing: futures that are ready when the events are durable.

use super::Published;
use super::batch::TopicRun;
use crate::core::Core;
use crate::error::{IdConflict, PublishError, SeqMismatch, UnknownTopic};
use prombus_store::{Answer, CommitError, EventOutcome, EventRef, Receipt};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// One result for each event of a batch, in its order, once they are durable. Dropping it does not undo the publish.
#[must_use = "only the answer tells whether the events were stored"]
pub struct BatchFuture {
    core: Arc<Core>,
    count: usize,
    rejected: Vec<(usize, PublishError)>,
    runs: Vec<TopicRun>,
    /// `None` where nothing was left to commit.
    pending: Option<Answer<Receipt, CommitError>>,
}

/// The result of one publish, once it is durable. Dropping it does not undo the publish.
#[must_use = "only the answer tells whether the event was stored"]
pub struct PublishFuture(BatchFuture);

impl BatchFuture {
    pub(super) fn new(
        core: Arc<Core>,
        count: usize,
        rejected: Vec<(usize, PublishError)>,
        runs: Vec<TopicRun>,
        pending: Option<Answer<Receipt, CommitError>>,
    ) -> Self {
        Self {
            core,
            count,
            rejected,
            runs,
            pending,
        }
    }

    /// An answer that refuses every event.
    pub(super) fn rejected(core: Arc<Core>, count: usize, error: PublishError) -> Self {
        let rejected = (0..count).map(|at| (at, error.clone())).collect();
        Self::new(core, count, rejected, Vec::new(), None)
    }

    /// Puts the store's outcomes and the refusals together in the order the events were added.
    fn results(
        &mut self,
        committed: Result<Receipt, CommitError>,
    ) -> Vec<Result<Published, PublishError>> {
        if committed.is_err() {
            self.runs
                .iter()
                .for_each(|run| self.core.topics.forget(&run.topic));
        }
        let mut results = Vec::with_capacity(self.count);
        let mut rejected = std::mem::take(&mut self.rejected).into_iter().peekable();
        let mut committed_count = 0;
        for at in 0..self.count {
            if let Some((_, error)) = rejected.next_if(|(refused_at, _)| *refused_at == at) {
                results.push(Err(error));
                continue;
            }
            results.push(match &committed {
                Ok(receipt) => self.published(committed_count, receipt),
                Err(error) => Err(error.clone().into()),
            });
            committed_count += 1;
        }
        results
    }

    fn published(&self, at: usize, receipt: &Receipt) -> Result<Published, PublishError> {
        let published = outcome(receipt.events.get(at), || self.topic_of(at));
        if let Err(PublishError::UnknownTopic(unknown)) = &published {
            self.core.topics.forget(&unknown.topic);
        }
        published
    }

    fn topic_of(&self, at: usize) -> &str {
        let after = self.runs.partition_point(|run| run.first <= at);
        match self.runs.get(after.saturating_sub(1)) {
            Some(run) => &run.topic,
            None => "",
        }
    }
}

/// What became of an event of a topic, in the words of publishing.
pub(super) fn outcome<'a>(
    outcome: Option<&EventOutcome>,
    topic: impl FnOnce() -> &'a str,
) -> Result<Published, PublishError> {
    let placed = |placed: EventRef, duplicate| Published {
        id: placed.id,
        seq: placed.seq,
        ts: placed.ts,
        duplicate,
    };
    match outcome {
        Some(EventOutcome::Stored(stored)) => Ok(placed(*stored, false)),
        Some(EventOutcome::Duplicate(first)) => Ok(placed(*first, true)),
        Some(EventOutcome::IdConflict(first)) => Err(IdConflict {
            topic: topic().into(),
            id: first.id.to_string(),
            seq: first.seq,
        }
        .into()),
        Some(EventOutcome::SeqMismatch(mismatch)) => Err(SeqMismatch {
            topic: topic().into(),
            mismatch: *mismatch,
            event: 0,
        }
        .into()),
        // A store that answers fewer outcomes than events has not stored the rest.
        Some(EventOutcome::UnknownTopic) | None => Err(UnknownTopic {
            topic: topic().into(),
        }
        .into()),
    }
}

impl Future for BatchFuture {
    type Output = Vec<Result<Published, PublishError>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let committed = match &mut self.pending {
            Some(pending) => ready!(pending.as_mut().poll(context)),
            None => Ok(Receipt::default()),
        };
        self.pending = None;
        Poll::Ready(self.results(committed))
    }
}

impl From<BatchFuture> for PublishFuture {
    fn from(pending: BatchFuture) -> Self {
        Self(pending)
    }
}

impl Future for PublishFuture {
    type Output = Result<Published, PublishError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut results = ready!(Pin::new(&mut self.0).poll(context));
        Poll::Ready(results.pop().unwrap_or(Err(PublishError::Closed)))
    }
}

impl fmt::Debug for BatchFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchFuture")
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for PublishFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PublishFuture")
    }
}
