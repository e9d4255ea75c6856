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
/// What came of a batch, and the caller that waits for it.
pub(crate) type Outcome = (Reply, Result<Receipt, CommitError>);

/// What waits.
pub(crate) struct Queue {
    state: Mutex<State>,
    /// Batches are joined up to so many bytes.
    max_joined_bytes: usize,
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
    /// Bytes of `items`.
    waiting: usize,
    /// Whoever sends is woken when so much waits; it is awake where this is `None`.
    wake_at: Option<usize>,
    accepted: u64,
    is_closed: bool,
    /// Why nothing is accepted at the moment.
    failure: Option<Arc<str>>,
}

/// Something to be sent.
pub(crate) struct Item {
    pub(crate) work: Work,
    pub(crate) waiters: Vec<Waiter>,
    /// At least what it takes in a message.
    pub(crate) bytes: usize,
}

/// Who waits for what comes of a batch, and how many of its events are theirs.
pub(crate) struct Waiter {
    pub(crate) reply: Reply,
    pub(crate) events: usize,
}

/// What is to be sent.
pub(crate) enum Work {
    /// A batch; where several callers wait for it, it is what they asked for one after the other.
    Commit(Batch),
    /// A message of another kind, with its body.
    Mark(Kind, Vec<u8>),
}

impl Work {
    fn max_bytes(&self) -> usize {
        match self {
            Self::Commit(batch) => batch.max_encoded_bytes(),
            Self::Mark(_, bytes) => bytes.len() + 1,
        }
    }
}

/// Whether what comes of each event of a batch is the same where others stand before it in one batch.
fn can_be_joined(batch: &Batch) -> bool {
    !batch.is_atomic() && batch.changes().is_empty() && !batch.has_expected_positions()
}

impl Queue {
    pub(crate) fn new(max_joined_bytes: usize) -> Self {
        Self {
            state: Mutex::default(),
            max_joined_bytes,
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
    pub(crate) fn pop_if(&self, wanted: impl FnOnce(&Item) -> bool) -> Option<Item> {
        let mut state = self.lock();
        if !wanted(state.items.front()?) {
            return None;
        }
        let item = state.items.pop_front()?;
        state.waiting -= item.bytes;
        Some(item)
    }

    /// Whether so many bytes wait. If not, [`Self::filled`] resolves when they do.
    pub(crate) fn has(&self, bytes: usize) -> bool {
        let mut state = self.lock();
        let has = state.waiting >= bytes;
        state.wake_at = (!has).then_some(bytes);
        has
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
        let mut state = self.lock();
        let items = std::mem::take(&mut state.items);
        let bytes = std::mem::take(&mut state.waiting);
        drop(state);
        let waiters = items.into_iter().flat_map(|item| item.waiters);
        let outcomes = waiters.map(|waiter| (waiter.reply, Err(error.clone())));
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
        let bytes = work.max_bytes();
        if state.bytes + bytes > MAX_PENDING_BYTES {
            return Err(CommitError::LimitReached(LimitReached {
                name: "max_pending_bytes",
                limit: MAX_PENDING_BYTES as u64,
            }));
        }
        state.bytes += bytes;
        state.waiting += bytes;
        state.accepted += 1;
        state.add(work, reply, bytes, self.max_joined_bytes);
        if state.wake_at.is_some_and(|at| state.waiting >= at) {
            state.wake_at = None;
            self.filled.notify_one();
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.guard()
    }
}

impl State {
    /// Adds work to the last batch where that changes nothing, because one batch takes less than many to be sent and
    /// applied on every node; else behind it.
    fn add(&mut self, work: Work, reply: Reply, bytes: usize, max_joined_bytes: usize) {
        let events = match &work {
            Work::Commit(batch) => batch.events().len(),
            Work::Mark(..) => 0,
        };
        let waiter = Waiter { reply, events };
        if let (Some(last), Work::Commit(batch)) = (self.items.back_mut(), &work)
            && let Work::Commit(joined) = &mut last.work
            && last.bytes + bytes <= max_joined_bytes
            && can_be_joined(batch)
            && can_be_joined(joined)
        {
            joined.append(batch);
            last.waiters.push(waiter);
            last.bytes += bytes;
            return;
        }
        self.items.push_back(Item {
            work,
            waiters: vec![waiter],
            bytes,
        });
    }
}
