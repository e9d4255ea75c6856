//! Handlers: a function that is called for each delivery, with its result as the answer.

use crate::subscription::{Delivery, Ended, Next, Subscription, SubscriptionControl};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
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

/// What a consumer does when partitions come and go.
pub trait PartitionHooks: Send + Sync + 'static {
    /// Partitions come to this consumer, and their events after this: the place to load what is kept for them.
    fn on_assigned(&self, topic: &str, partitions: &[u32]) -> impl Future<Output = ()> + Send;

    /// Partitions go to another consumer after this: the place to store what is kept for them. After a broken connection
    /// others may have them already. Also called for all of them when the consumer stops, before it unsubscribes.
    fn on_revoked(&self, topic: &str, partitions: &[u32]) -> impl Future<Output = ()> + Send;
}

/// Starts one task that hands deliveries to up to `concurrency` handlers, and calls the hooks in between.
pub(crate) fn consume_partitions<H, F, E, P>(
    subscription: Subscription,
    concurrency: usize,
    manual_ack: bool,
    hooks: P,
    handler: H,
) -> Consumer
where
    H: Fn(Delivery) -> F + Send + Sync + 'static,
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: fmt::Display + 'static,
    P: PartitionHooks,
{
    let control = subscription.control();
    let subscription = Arc::new(subscription);
    let (stopping, mut stopped) = watch::channel(false);
    let mut workers = JoinSet::new();
    let served = subscription.clone();
    workers.spawn(async move {
        let mut running = JoinSet::new();
        let mut held: BTreeMap<Arc<str>, BTreeSet<u32>> = BTreeMap::new();
        loop {
            let next = tokio::select! {
                biased;
                _ = stopped.wait_for(|stopping| *stopping) => break,
                next = served.next_in_order() => next,
            };
            match next {
                None => break,
                Some(Next::Delivery(delivery)) => {
                    while running.len() >= concurrency {
                        running.join_next().await;
                    }
                    running.spawn(handle(delivery, &handler, manual_ack));
                }
                Some(Next::Assignment(assignment)) => {
                    let topic = &assignment.topic;
                    let known = held.entry(topic.clone()).or_default();
                    known.retain(|one| !assignment.revoked.contains(one));
                    known.extend(&assignment.assigned);
                    if !assignment.revoked.is_empty() {
                        // What is under way may be of these partitions.
                        while running.join_next().await.is_some() {}
                        hooks.on_revoked(topic, &assignment.revoked).await;
                        let control = served.control();
                        control.confirm_revoked(topic, &assignment.revoked);
                    }
                    if !assignment.assigned.is_empty() {
                        hooks.on_assigned(topic, &assignment.assigned).await;
                    }
                }
            }
        }
        while running.join_next().await.is_some() {}
        for (topic, partitions) in held.iter().filter(|(_, held)| !held.is_empty()) {
            let partitions: Vec<u32> = partitions.iter().copied().collect();
            hooks.on_revoked(topic, &partitions).await;
        }
    });
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
        // The workers are gone, so this is the only one left.
        if let Some(subscription) = Arc::into_inner(self.subscription) {
            subscription.unsubscribe().await;
        }
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
        handle(delivery, &*handler, manual_ack).await;
    }
}

/// Calls the handler for one delivery, and settles it by the result. The handler itself is called in here, so that a panic
/// of it counts as one of its future.
fn handle<H, F, E>(
    delivery: Delivery,
    handler: &H,
    manual_ack: bool,
) -> impl Future<Output = ()> + use<H, F, E>
where
    H: Fn(Delivery) -> F,
    F: Future<Output = Result<(), E>>,
    E: fmt::Display,
{
    let lease = delivery.handle();
    let lease_ms = delivery.context.ack_deadline_ms;
    let begun = catch_unwind(AssertUnwindSafe(|| handler(delivery)));
    async move {
        let handled = match begun {
            // The handler is polled first, so most of them end before a timer is even made.
            Ok(handling) => tokio::select! {
                biased;
                handled = CatchPanic(Box::pin(handling)) => handled,
                () = keep_extending(lease_ms, |extend_ms| lease.extend(extend_ms)) => return,
            },
            Err(panic) => Err(panic),
        };
        match handled {
            Ok(Ok(())) if manual_ack => {}
            Ok(Ok(())) => lease.ack(),
            Ok(Err(error)) => lease.nack(error.to_string(), None),
            Err(panic) => lease.nack(panic_text(&*panic), None),
        }
    }
}

/// Extends a lease each time a third of it is over, for as long as it is awaited.
async fn keep_extending(lease_ms: u64, extend: impl Fn(u64)) {
    let pause = Duration::from_millis((lease_ms / 3).max(MIN_EXTEND_PAUSE_MS));
    loop {
        tokio::time::sleep(pause).await;
        extend(lease_ms);
    }
}

/// However short a lease is, it is not extended more often than this.
const MIN_EXTEND_PAUSE_MS: u64 = 100;

/// A future whose panic is its result.
struct CatchPanic<F>(Pin<Box<F>>);

impl<F: Future> Future for CatchPanic<F> {
    type Output = Result<F::Output, Box<dyn Any + Send>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // After a panic the future is never polled again, so nobody sees what it left half done.
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(context))) {
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", text.unwrap_or("without a message"))
}
