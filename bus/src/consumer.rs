//! Handlers: a function that is called for each delivery, with its result as the answer.

use crate::group::Ended;
use crate::group::state::Retry;
use crate::subscription::{Delivery, Subscription, SubscriptionControl};
use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A handler at work. Dropping it stops it at once; what it was doing comes again.
pub struct Consumer {
    control: SubscriptionControl,
    subscription: Arc<Subscription>,
    workers: JoinSet<()>,
    stopping: watch::Sender<bool>,
}

/// Starts `concurrency` workers that take deliveries in turn.
pub(crate) fn consume<H, F, E>(
    subscription: Subscription,
    concurrency: usize,
    manual_ack: bool,
    handler: H,
) -> Consumer
where
    H: Fn(Delivery) -> F + Send + Sync + 'static,
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: fmt::Display + 'static,
{
    let control = subscription.control();
    let subscription = Arc::new(subscription);
    let handler = Arc::new(handler);
    let (stopping, _) = watch::channel(false);
    let mut workers = JoinSet::new();
    for _ in 0..concurrency {
        let (subscription, handler) = (subscription.clone(), handler.clone());
        workers.spawn(work(
            subscription,
            handler,
            manual_ack,
            stopping.subscribe(),
        ));
    }
    Consumer {
        control,
        subscription,
        workers,
        stopping,
    }
}

impl Consumer {
    /// The subscription's handle, to pause and resume.
    pub fn control(&self) -> &SubscriptionControl {
        &self.control
    }

    /// Takes nothing new, waits for the handlers that run, and unsubscribes.
    pub async fn stop(mut self) {
        self.stopping.send_replace(true);
        while self.workers.join_next().await.is_some() {}
    }

    /// Waits until no more deliveries come, and says why.
    pub async fn ended(mut self) -> Option<Ended> {
        while self.workers.join_next().await.is_some() {}
        self.subscription.ended()
    }
}

impl fmt::Debug for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer")
            .field("subscription", &self.control)
            .finish_non_exhaustive()
    }
}

async fn work<H, F, E>(
    subscription: Arc<Subscription>,
    handler: Arc<H>,
    manual_ack: bool,
    mut stopping: watch::Receiver<bool>,
) where
    H: Fn(Delivery) -> F + Send + Sync + 'static,
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: fmt::Display + 'static,
{
    loop {
        let delivery = tokio::select! {
            biased;
            _ = stopping.wait_for(|stopping| *stopping) => return,
            delivery = subscription.next() => delivery,
        };
        let Some(delivery) = delivery else {
            return;
        };
        let lease = delivery.lease();
        let handler = handler.clone();
        let handled = async move { handler(delivery).await };
        match CatchPanic::new(handled).await {
            Ok(Ok(())) if manual_ack => {}
            Ok(Ok(())) => lease.ack(),
            Ok(Err(error)) => lease.nack(error.to_string(), Retry::Backoff),
            Err(panic) => lease.nack(panic_text(&*panic), Retry::Backoff),
        }
    }
}

/// A future whose panic is its result.
pub(crate) struct CatchPanic<F>(Pin<Box<F>>);

impl<F> CatchPanic<F> {
    pub(crate) fn new(future: F) -> Self {
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
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", text.unwrap_or("without a message"))
}
