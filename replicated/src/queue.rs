//! The commits that wait to be sent, in the order in which they were asked for.

use crate::message::Kind;
use prombus_store::LockExt;
use prombus_store::{Answer, Batch, CommitError, LimitReached, Receipt};
use std::collections::VecDeque;
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot, watch};

/// Commits that wait may take this much; beyond it further ones are refused.
pub(crate) const MAX_PENDING_BYTES: usize = 64 << 20;

/// Where a commit's outcome goes.
pub(crate) type Reply = oneshot::Sender<Result<Receipt, CommitError>>;

/// What waits.
pub(crate) struct Queue {
    state: Mutex<State>,
    /// Woken when something was added or the queue was closed.
    filled: Notify,
    /// How many of all that were ever accepted have their outcome. They get it in their order.
    finished: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    items: VecDeque<Item>,
    /// Bytes of all that was accepted and has no outcome yet.
    bytes: usize,
    accepted: u64,
    is_closed: bool,
    /// Why nothing is accepted at the moment.
    failure: Option<Arc<str>>,
}

/// Something to be sent.
pub(crate) struct Item {
    pub(crate) work: Work,
    pub(crate) reply: Reply,
}

/// What is to be sent.
pub(crate) enum Work {
    /// A batch, and the same as bytes.
    Commit(Batch, Vec<u8>),
    /// A message of another kind, with its body.
    Mark(Kind, Vec<u8>),
}

impl Work {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Commit(_, bytes) | Self::Mark(_, bytes) => bytes.len(),
        }
    }
}

impl Queue {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::default(),
            filled: Notify::new(),
            finished: watch::Sender::new(0),
        }
    }

    /// Adds work behind all that was added before.
    pub(crate) fn push(&self, work: Work) -> Answer<Receipt, CommitError> {
        let (reply, outcome) = oneshot::channel();
        if let Err(error) = self.accept(work, reply) {
            return Box::pin(ready(Err(error)));
        }
        self.filled.notify_one();
        Box::pin(async move { outcome.await.unwrap_or(Err(CommitError::Closed)) })
    }

    /// Waits until all that was accepted before the call has its outcome.
    pub(crate) fn behind_accepted(&self) -> impl Future<Output = ()> + Send + 'static {
        let accepted = self.lock().accepted;
        let mut finished = self.finished.subscribe();
        async move {
            // The sender is gone only when the store is.
            let _ = finished.wait_for(|finished| *finished >= accepted).await;
        }
    }

    /// Whether all that was accepted has its outcome.
    pub(crate) fn is_settled(&self) -> bool {
        let accepted = self.lock().accepted;
        *self.finished.borrow() >= accepted
    }

    /// Accepts nothing more.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.filled.notify_one();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Refuses all further work with this cause, or takes it again.
    pub(crate) fn set_failure(&self, failure: Option<Arc<str>>) {
        self.lock().failure = failure;
    }

    pub(crate) fn failure(&self) -> Option<Arc<str>> {
        self.lock().failure.clone()
    }

    /// The next item, if `wanted` says so when it sees it.
    pub(crate) fn pop_if(&self, wanted: impl FnOnce(&Work) -> bool) -> Option<Item> {
        let mut state = self.lock();
        let next = state.items.front()?;
        wanted(&next.work)
            .then(|| state.items.pop_front())
            .flatten()
    }

    /// Waits until there may be something.
    pub(crate) async fn filled(&self) {
        self.filled.notified().await;
    }

    /// Gives outcomes to the oldest that have none, and lets go of their bytes.
    pub(crate) fn finish(
        &self,
        outcomes: impl IntoIterator<Item = (Reply, Result<Receipt, CommitError>)>,
        bytes: usize,
    ) {
        let mut count = 0;
        for (reply, outcome) in outcomes {
            // A caller that went away does not undo its commit.
            let _ = reply.send(outcome);
            count += 1;
        }
        let mut state = self.lock();
        state.bytes -= bytes.min(state.bytes);
        drop(state);
        self.finished.send_modify(|finished| *finished += count);
    }

    /// Fails all that waits.
    pub(crate) fn fail_waiting(&self, error: &CommitError) {
        let items = std::mem::take(&mut self.lock().items);
        let bytes = items.iter().map(|item| item.work.bytes()).sum();
        let outcomes = items
            .into_iter()
            .map(|item| (item.reply, Err(error.clone())));
        self.finish(outcomes, bytes);
    }

    fn accept(&self, work: Work, reply: Reply) -> Result<(), CommitError> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(CommitError::Closed);
        }
        if let Some(cause) = &state.failure {
            let cause = cause.clone();
            return Err(CommitError::Unavailable { cause });
        }
        let bytes = state.bytes + work.bytes();
        if bytes > MAX_PENDING_BYTES {
            return Err(CommitError::LimitReached(LimitReached {
                name: "max_pending_bytes",
                limit: MAX_PENDING_BYTES as u64,
            }));
        }
        state.bytes = bytes;
        state.accepted += 1;
        state.items.push_back(Item { work, reply });
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.guard()
    }
}
