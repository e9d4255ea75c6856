//! Waiting for durability. Everyone whose records go into one group waits for one completion, which is resolved once.

use prombus_store::LockExt;
use prombus_store::{CommitError, Receipt, StoreFailed};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// Resolves once, with the outcome for all who wait.
#[derive(Debug, Default)]
pub(crate) struct Completion(Mutex<CompletionState>);

#[derive(Debug, Default)]
struct CompletionState {
    outcome: Option<Result<(), StoreFailed>>,
    waiting: Vec<Waker>,
}

/// A commit under way. It resolves when the batch is durable; dropping it does not undo the batch.
#[derive(Debug)]
#[must_use = "a batch counts as committed only when this says so"]
pub struct Commit {
    answer: Option<Result<Receipt, CommitError>>,
    completion: Option<Arc<Completion>>,
    /// Where this commit's waker is among those that wait for the completion.
    place: Option<usize>,
}

impl Completion {
    /// Resolves with `outcome`. Only the first call counts.
    pub(crate) fn complete(&self, outcome: Result<(), StoreFailed>) {
        let mut state = self.0.guard();
        if state.outcome.is_some() {
            return;
        }
        state.outcome = Some(outcome);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        for waker in waiting {
            waker.wake();
        }
    }

    fn poll(
        &self,
        context: &Context<'_>,
        place: &mut Option<usize>,
    ) -> Poll<Result<(), StoreFailed>> {
        let mut state = self.0.guard();
        if let Some(outcome) = &state.outcome {
            return Poll::Ready(outcome.clone());
        }
        match *place {
            Some(at) => state.waiting[at].clone_from(context.waker()),
            None => {
                *place = Some(state.waiting.len());
                state.waiting.push(context.waker().clone());
            }
        }
        Poll::Pending
    }
}

impl Commit {
    /// Resolves with `receipt` when the completion does.
    pub(crate) fn waiting_for(receipt: Receipt, completion: Arc<Completion>) -> Self {
        Self {
            answer: Some(Ok(receipt)),
            completion: Some(completion),
            place: None,
        }
    }

    /// Is resolved already.
    pub(crate) fn resolved(answer: Result<Receipt, CommitError>) -> Self {
        Self {
            answer: Some(answer),
            completion: None,
            place: None,
        }
    }

    /// Waits on this thread.
    pub fn wait(self) -> Result<Receipt, CommitError> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut commit = pin!(self);
        loop {
            match commit.as_mut().poll(&mut context) {
                Poll::Ready(answer) => return answer,
                Poll::Pending => std::thread::park(),
            }
        }
    }
}

impl Future for Commit {
    type Output = Result<Receipt, CommitError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let outcome = match &this.completion {
            None => Ok(()),
            Some(completion) => match completion.poll(context, &mut this.place) {
                Poll::Ready(outcome) => outcome,
                Poll::Pending => return Poll::Pending,
            },
        };
        let answer = this.answer.take().unwrap_or(Err(CommitError::Closed));
        Poll::Ready(outcome.map_err(CommitError::from).and(answer))
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
