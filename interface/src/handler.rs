//! One delivery and its handler: the handler's result settles it, a panic counts as a failure, and the lease of a handler
//! that takes long is extended.

use crate::delivered::{Delivered, Lease};
use crate::settle::SettleOp;
use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// However short a lease is, it is not extended more often than this.
const MIN_EXTEND_PAUSE_MS: u64 = 100;

/// Calls the handler for one delivery, and settles it by the result: success acknowledges unless that is left to the
/// handler, an error or a panic brings the event back with its text as the reason. The handler itself is called in here,
/// so that a panic of it counts as one of its future.
pub fn handle<D, H, F, E>(
    delivery: D,
    handler: &H,
    manual_ack: bool,
) -> impl Future<Output = ()> + use<D, H, F, E>
where
    D: Delivered,
    H: Fn(D) -> F,
    F: Future<Output = Result<(), E>>,
    E: fmt::Display,
{
    let (lease, lease_ms) = (delivery.lease(), delivery.lease_ms());
    let begun = catch_unwind(AssertUnwindSafe(|| handler(delivery)));
    async move {
        let handled = match begun {
            // The handler is polled first, so most of them end before a timer is even made.
            Ok(handling) => tokio::select! {
                biased;
                handled = CatchPanic::new(handling) => handled,
                () = keep_extending(&lease, lease_ms) => return,
            },
            Err(panic) => Err(panic),
        };
        match handled {
            Ok(Ok(())) if manual_ack => {}
            Ok(Ok(())) => lease.settle(SettleOp::Ack),
            Ok(Err(error)) => lease.settle(SettleOp::nack(error.to_string(), None)),
            Err(panic) => lease.settle(SettleOp::nack(panic_text(&*panic), None)),
        }
    }
}

/// Extends a lease each time a third of it is over, for as long as it is awaited.
async fn keep_extending(lease: &impl Lease, lease_ms: u64) {
    let pause = Duration::from_millis((lease_ms / 3).max(MIN_EXTEND_PAUSE_MS));
    loop {
        tokio::time::sleep(pause).await;
        lease.settle(SettleOp::extend(lease_ms));
    }
}

/// A future whose panic is its result.
#[derive(Debug)]
pub struct CatchPanic<F>(Pin<Box<F>>);

impl<F> CatchPanic<F> {
    /// Watches over a future.
    pub fn new(future: F) -> Self {
        Self(Box::pin(future))
    }
}

impl<F: Future> Future for CatchPanic<F> {
    type Output = Result<F::Output, Box<dyn Any + Send>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // After a panic the future is never polled again, so its broken invariants are never observed.
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(context))) {
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}

/// What a panic says.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", text.unwrap_or("without a message"))
}
