//! Handlers whose effects are not repeated: a delivery whose event is marked as done is acknowledged without calling
//! the handler, and a handler that succeeds has its event marked before it is acknowledged.
//!
//! ```text
//!  seen? ──yes──────────────────────────────▶ ack
//!    │ no
//!    ▼
//!  handler ──failed──▶ nack, comes again
//!    │ done
//!    ▼          a crash here runs the handler again
//!  mark
//!    │          a crash here does not
//!    ▼
//!  ack
//! ```
//!
//! This is at-least-once delivery with dedupe. Between the handler's success and its mark there is a moment in which
//! a crash loses the mark, and a lease that runs out while the handler works lets another member begin too. Only a
//! mark that is written in the handler's own transaction closes that gap.

use crate::consumer::Consumer;
use crate::dedupe::{Dedupe, DedupeError};
use crate::delivered::{Delivered, Lease as _, Subscribed};
use crate::settle::SettleOp;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How often marks are looked up or written before that is given up: about half a minute altogether.
const MAX_TRIES: u32 = 12;
/// The wait after the first failure; it doubles.
const INITIAL_BACKOFF_MS: u64 = 50;
/// The most it grows to.
const MAX_BACKOFF_MS: u64 = 5_000;
/// How much time the lease is given for each try, beyond the wait before it.
const TRY_MS: u64 = 10_000;

/// A handler at work whose effects are not repeated: it is not called again for an event it succeeded on, neither when
/// the acknowledgement was lost nor when the cursor is set back, as long as the mark is kept. Dropping it stops it at
/// once; what it was doing comes again.
///
/// What is promised is at-least-once with dedupe: a crash after the handler succeeded and before its event was marked
/// runs it again. Handlers that cannot bear that write their mark in their own transaction.
///
/// The handler must not settle its delivery itself. Its lease is extended while it runs.
#[derive(Debug)]
pub struct ExactlyOnce<S: Subscribed> {
    consumer: Consumer<S>,
    counts: Arc<Counts>,
}

/// What became of deliveries so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EffectCounts {
    /// The handler succeeded.
    pub handled: u64,
    /// The event was marked as done, so the handler was not called.
    pub skipped: u64,
    /// The handler succeeded, but its mark could not be written. The event was acknowledged all the same: it comes
    /// again only if that is lost too.
    pub unmarked: u64,
}

#[derive(Debug, Default)]
struct Counts {
    handled: AtomicU64,
    skipped: AtomicU64,
    unmarked: AtomicU64,
}

impl<S: Subscribed> ExactlyOnce<S> {
    /// Starts `concurrency` workers. The scope of the marks is `<topic>/<group>`.
    pub fn start<H, F, E>(
        subscription: S,
        group: &str,
        concurrency: usize,
        dedupe: Dedupe,
        handler: H,
    ) -> Self
    where
        H: Fn(S::Delivery) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display + Send + 'static,
    {
        let counts = Arc::new(Counts::default());
        let once = Arc::new(Once {
            group: group.into(),
            dedupe,
            handler,
            counts: counts.clone(),
        });
        let handle = move |delivery| once.clone().handle(delivery);
        let consumer = Consumer::start(subscription, concurrency, false, handle);
        Self { consumer, counts }
    }

    /// What became of deliveries so far.
    pub fn counts(&self) -> EffectCounts {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        EffectCounts {
            handled: count(&self.counts.handled),
            skipped: count(&self.counts.skipped),
            unmarked: count(&self.counts.unmarked),
        }
    }

    /// The subscription's handle, to pause and resume.
    pub fn control(&self) -> &S::Control {
        self.consumer.control()
    }

    /// Takes nothing new, waits for the handlers that run, and unsubscribes.
    pub async fn stop(self) {
        self.consumer.stop().await;
    }

    /// Waits until no more deliveries come, and says why.
    pub async fn ended(self) -> Option<S::Ended> {
        self.consumer.ended().await
    }
}

/// A handler with its marks.
struct Once<H> {
    group: Arc<str>,
    dedupe: Dedupe,
    handler: H,
    counts: Arc<Counts>,
}

impl<H> Once<H> {
    async fn handle<D, F, E>(self: Arc<Self>, delivery: D) -> Result<(), String>
    where
        D: Delivered,
        H: Fn(D) -> F,
        F: Future<Output = Result<(), E>>,
        E: fmt::Display,
    {
        let Dedupe { store, ttl_ms } = &self.dedupe;
        let scope = format!("{}/{}", delivery.topic(), self.group);
        let id = delivery.id().into_owned();
        let lease = delivery.lease();
        let extend = |wait_ms| lease.settle(SettleOp::extend(wait_ms + TRY_MS));
        let seen = retry_with_backoff(|| store.seen(&scope, &id), extend).await;
        match seen {
            Ok(true) => {
                self.counts.skipped.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            Ok(false) => {}
            Err(error) => return Err(error.to_string()),
        }
        let handled = (self.handler)(delivery).await;
        handled.map_err(|error| error.to_string())?;
        self.counts.handled.fetch_add(1, Ordering::Relaxed);
        let marked = retry_with_backoff(|| store.mark(&scope, &id, *ttl_ms), extend).await;
        if marked.is_err() {
            // Bringing the event back would repeat its effect for certain.
            self.counts.unmarked.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Tries until it works or has failed too often, and keeps the lease meanwhile: failing marks are no reason to count
/// a delivery as failed.
async fn retry_with_backoff<T, F>(
    attempt: impl Fn() -> F,
    extend: impl Fn(u64),
) -> Result<T, DedupeError>
where
    F: Future<Output = Result<T, DedupeError>>,
{
    let mut wait_ms = INITIAL_BACKOFF_MS;
    for _ in 1..MAX_TRIES {
        let outcome = attempt().await;
        if outcome.is_ok() {
            return outcome;
        }
        extend(wait_ms);
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        wait_ms = (wait_ms * 2).min(MAX_BACKOFF_MS);
    }
    attempt().await
}
