//! The answers to publishing: futures that are ready when the server has stored the events.

use super::Published;
use super::encode::{Encoded, Safety};
use super::slots::SlotNumber;
use crate::core::Core;
use crate::error::PublishError;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::sync::{AcquireError, OwnedSemaphorePermit};

/// The result of one publish, once the server has stored it. A publish that found room is on its way already, and
/// dropping this does not undo it. One that did not, because [`max_in_flight`](crate::ClientOptions::max_in_flight)
/// was reached, waits for room while this is awaited; see [`Client::room`](crate::Client::room).
#[must_use = "only the answer tells whether the event was stored"]
pub struct PublishFuture {
    core: Arc<Core>,
    state: State,
}

/// One result for each event of a batch, in its order.
#[must_use = "only the answer tells whether the events were stored"]
pub struct BatchFuture {
    answers: Vec<PublishFuture>,
    results: Vec<Result<Published, PublishError>>,
}

enum State {
    Waiting(SlotNumber),
    Deferred(Box<Deferred>),
    Refused(PublishError),
    Done,
}

/// A publish that waits for room.
struct Deferred {
    frame: Vec<u8>,
    safety: Safety,
    units: u32,
    room: Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>,
}

impl PublishFuture {
    /// Takes a frame in where there is room.
    pub(crate) fn send(core: &Arc<Core>, frame: Encoded<'_>) -> Self {
        let units = core.options.units(frame.text.len());
        let state = match core.room.try_acquire_many(units) {
            Ok(permit) => {
                permit.forget();
                enqueue(core, &frame, units)
            }
            Err(_) => State::Deferred(Box::new(Deferred {
                frame: frame.text.to_vec(),
                safety: frame.safety,
                units,
                room: Box::pin(core.room.clone().acquire_many_owned(units)),
            })),
        };
        let core = core.clone();
        Self { core, state }
    }

    pub(crate) fn refused(core: &Arc<Core>, error: PublishError) -> Self {
        let core = core.clone();
        let state = State::Refused(error);
        Self { core, state }
    }

    /// Waits for room where that is needed.
    fn poll_enqueue(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let State::Deferred(deferred) = &mut self.state {
            let permit = ready!(deferred.room.as_mut().poll(context));
            self.state = match permit {
                Ok(permit) => {
                    permit.forget();
                    let text = &deferred.frame;
                    let safety = deferred.safety;
                    enqueue(&self.core, &Encoded { text, safety }, deferred.units)
                }
                Err(_) => State::Refused(PublishError::Ended(self.core.end_reason())),
            };
        }
        Poll::Ready(())
    }
}

fn enqueue(core: &Core, frame: &Encoded<'_>, units: u32) -> State {
    let enqueued = core.outbox().push(frame, units);
    match enqueued {
        Ok(slot) => {
            core.task_waker.wake();
            State::Waiting(slot)
        }
        Err(error) => State::Refused(error),
    }
}

impl Future for PublishFuture {
    type Output = Result<Published, PublishError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        ready!(self.poll_enqueue(context));
        let this = &mut *self;
        if let State::Waiting(slot) = this.state {
            let answer = ready!(this.core.outbox().slots.poll(slot, context));
            this.state = State::Done;
            return Poll::Ready(answer);
        }
        match std::mem::replace(&mut this.state, State::Done) {
            State::Refused(error) => Poll::Ready(Err(error)),
            // Asked again after its answer was given; there is no other.
            _ => Poll::Pending,
        }
    }
}

impl Drop for PublishFuture {
    fn drop(&mut self) {
        if let State::Waiting(slot) = self.state {
            self.core.outbox().slots.abandon(slot);
        }
    }
}

impl BatchFuture {
    pub(crate) fn new(answers: Vec<PublishFuture>) -> Self {
        let results = Vec::with_capacity(answers.len());
        Self { answers, results }
    }
}

impl Future for BatchFuture {
    type Output = Vec<Result<Published, PublishError>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { answers, results } = &mut *self;
        // In order, so that those without room enter in order too.
        for answer in answers.iter_mut() {
            if answer.poll_enqueue(context).is_pending() {
                break;
            }
        }
        while let Some(answer) = answers.get_mut(results.len()) {
            results.push(ready!(Pin::new(answer).poll(context)));
        }
        answers.clear();
        Poll::Ready(std::mem::take(results))
    }
}

impl fmt::Debug for PublishFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PublishFuture")
    }
}

impl fmt::Debug for BatchFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchFuture")
            .field("count", &self.answers.len())
            .finish_non_exhaustive()
    }
}
