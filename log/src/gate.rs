//! Waiting for durability. Everyone whose records go into one group waits at one gate, which is opened once.

use crate::error::{CommitError, StoreFailed};
use crate::receipt::Receipt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// Opens once, with the outcome for all who wait.
#[derive(Debug, Default)]
pub(crate) struct Gate(Mutex<GateState>);

#[derive(Debug, Default)]
struct GateState {
    outcome: Option<Result<(), StoreFailed>>,
    waiting: Vec<Waker>,
}

/// A commit under way. It resolves when the batch is durable; dropping it does not undo the batch.
#[derive(Debug)]
#[must_use = "a batch counts as committed only when this says so"]
pub struct Commit {
    answer: Option<Result<Receipt, CommitError>>,
    gate: Option<Arc<Gate>>,
    /// Where this commit's waker stands among those waiting at the gate.
    place: Option<usize>,
}

impl Gate {
    /// Lets everyone go on with `outcome`. Only the first call counts.
    pub(crate) fn open(&self, outcome: Result<(), StoreFailed>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
    /// Resolves with `receipt` when the gate opens.
    pub(crate) fn at_gate(receipt: Receipt, gate: Arc<Gate>) -> Self {
        Self {
            answer: Some(Ok(receipt)),
            gate: Some(gate),
            place: None,
        }
    }

    /// Is resolved already.
    pub(crate) fn settled(answer: Result<Receipt, CommitError>) -> Self {
        Self {
            answer: Some(answer),
            gate: None,
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
        let outcome = match &this.gate {
            None => Ok(()),
            Some(gate) => match gate.poll(context, &mut this.place) {
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
