//! Replies that are on their way: what was asked for has been sent when one of these is returned, and awaiting it only
//! waits for the result.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::oneshot;

/// The reply to one request. Dropping it does not undo the request.
#[must_use = "only the reply tells what came of the request"]
pub struct Pending<T>(State<T>);

enum State<T> {
    /// Known without asking; taken by the poll that returns it.
    Known(Option<T>),
    Sent {
        reply: oneshot::Receiver<T>,
        /// How many results the reply has.
        count: usize,
        /// The reply of an owner that ended without one.
        gone: fn(usize) -> T,
    },
}

/// The replies to several requests, in their order.
#[must_use = "only the replies tell what came of the requests"]
pub struct PendingAll<T> {
    pending: Vec<Pending<T>>,
    replies: Vec<T>,
}

impl<T> Pending<T> {
    /// A reply that is known already.
    pub(crate) fn known(reply: T) -> Self {
        Self(State::Known(Some(reply)))
    }

    /// Where the reply is to be sent, and what waits for it. `gone` makes the reply, with `count` results, of an owner
    /// that ends without one.
    pub(crate) fn channel(count: usize, gone: fn(usize) -> T) -> (oneshot::Sender<T>, Self) {
        let (sender, reply) = oneshot::channel();
        (sender, Self(State::Sent { reply, count, gone }))
    }
}

impl<T> PendingAll<T> {
    pub(crate) fn new(pending: Vec<Pending<T>>) -> Self {
        let replies = Vec::with_capacity(pending.len());
        Self { pending, replies }
    }
}

impl<T: Unpin> Future for Pending<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        match &mut self.0 {
            State::Known(reply) => reply.take().map_or(Poll::Pending, Poll::Ready),
            State::Sent { reply, count, gone } => {
                let reply = ready!(Pin::new(reply).poll(context));
                Poll::Ready(reply.unwrap_or_else(|_| gone(*count)))
            }
        }
    }
}

impl<T: Unpin> Future for PendingAll<T> {
    type Output = Vec<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Vec<T>> {
        let this = &mut *self;
        while let Some(next) = this.pending.get_mut(this.replies.len()) {
            this.replies.push(ready!(Pin::new(next).poll(context)));
        }
        Poll::Ready(std::mem::take(&mut this.replies))
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pending")
    }
}

impl<T> fmt::Debug for PendingAll<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingAll")
            .field("count", &self.pending.len())
            .finish_non_exhaustive()
    }
}
