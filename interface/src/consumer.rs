//! Handlers: a function that is called for each delivery, with its result as the answer.

use crate::delivered::Subscribed;
use crate::handler::handle;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A handler at work. Dropping it stops it at once; what it was doing comes again.
pub struct Consumer<S: Subscribed> {
    control: S::Control,
    subscription: Arc<S>,
    workers: JoinSet<()>,
    stopping: watch::Sender<bool>,
}

impl<S: Subscribed> Consumer<S> {
    /// Starts `concurrency` workers that take deliveries in turn.
    pub fn start<H, F, E>(subscription: S, concurrency: usize, manual_ack: bool, handler: H) -> Self
    where
        H: Fn(S::Delivery) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display + 'static,
    {
        let mut consumer = Self::idle(subscription);
        let handler = Arc::new(handler);
        for _ in 0..concurrency {
            let handler = handler.clone();
            consumer
                .spawn(|subscription, stopping| work(subscription, handler, manual_ack, stopping));
        }
        consumer
    }

    /// Starts one worker that takes deliveries its own way until it is stopped.
    pub fn with_worker<F>(
        subscription: S,
        worker: impl FnOnce(Arc<S>, watch::Receiver<bool>) -> F,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut consumer = Self::idle(subscription);
        consumer.spawn(worker);
        consumer
    }

    fn idle(subscription: S) -> Self {
        Self {
            control: subscription.control(),
            subscription: Arc::new(subscription),
            workers: JoinSet::new(),
            stopping: watch::Sender::new(false),
        }
    }

    fn spawn<F>(&mut self, worker: impl FnOnce(Arc<S>, watch::Receiver<bool>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let worker = worker(self.subscription.clone(), self.stopping.subscribe());
        self.workers.spawn(worker);
    }

    /// The subscription's handle, to pause and resume.
    pub fn control(&self) -> &S::Control {
        &self.control
    }

    /// Takes nothing new, waits for the handlers that run, and unsubscribes.
    pub async fn stop(mut self) {
        self.stopping.send_replace(true);
        while self.workers.join_next().await.is_some() {}
        // The workers are gone, so this is the only one left.
        if let Some(subscription) = Arc::into_inner(self.subscription) {
            subscription.unsubscribe().await;
        }
    }

    /// Waits until no more deliveries come, and says why.
    pub async fn ended(mut self) -> Option<S::Ended> {
        while self.workers.join_next().await.is_some() {}
        self.subscription.ended()
    }
}

async fn work<S, H, F, E>(
    subscription: Arc<S>,
    handler: Arc<H>,
    manual_ack: bool,
    mut stopping: watch::Receiver<bool>,
) where
    S: Subscribed,
    H: Fn(S::Delivery) -> F + Send + Sync + 'static,
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
        handle(delivery, &*handler, manual_ack).await;
    }
}

impl<S: Subscribed> fmt::Debug for Consumer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer")
            .field("subscription", &self.control)
            .finish_non_exhaustive()
    }
}
