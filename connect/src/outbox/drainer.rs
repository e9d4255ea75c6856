//! The drainer: claims rows, publishes them, and writes down what became of them.

use super::publish::{Publish, PublishFailure};
use super::{ClaimError, ClaimStore, OutboxCounts, Settled};
use prombus::error::InvalidField;
use prombus::{Backoff, Clock};
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The most rows that are removed at a time.
const PRUNED_ROWS: usize = 1_000;
/// How often rows are removed.
const PRUNE_EVERY_MS: u64 = 60_000;

/// How an outbox is drained.
#[derive(Debug, Clone)]
pub struct DrainerOptions {
    /// This drainer's name; no other drainer of the same outbox may have it.
    pub worker: String,
    /// How long claimed rows are this drainer's. Publishing takes no longer than that; then they are anybody's again.
    pub lease_ms: u64,
    /// The most rows that are published together.
    pub batch_rows: usize,
    /// About the most bytes of payloads that are published together.
    pub batch_bytes: usize,
    /// How long a row that was not published waits for its next attempt.
    pub backoff: Backoff,
    /// How often the table is looked at while there is nothing to do.
    pub poll_ms: u64,
    /// How long rows are kept after they were sent.
    pub keep_sent_ms: u64,
}

/// What a drainer did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drained {
    /// Published.
    pub sent: u64,
    /// Of them, those that the topic held already, because an earlier attempt got that far.
    pub duplicates: u64,
    /// Attempts that failed and are made again later.
    pub retried: u64,
    /// Given up, because they can never be published as they are.
    pub failed: u64,
    /// Removed, because they were sent long ago.
    pub pruned: u64,
}

/// Publishes what is in an outbox. Several may drain the same one: claims exclude each other, and a row that is
/// published again after a crash is stored once, because its id is the event's.
pub struct Drainer<C> {
    claims: C,
    options: DrainerOptions,
    clock: Arc<dyn Clock>,
    total: Drained,
    pruned_ms: u64,
}

impl DrainerOptions {
    /// The defaults, for a worker of this name.
    pub fn new(worker: impl Into<String>) -> Self {
        Self {
            worker: worker.into(),
            lease_ms: 30_000,
            batch_rows: 500,
            batch_bytes: 4 << 20,
            backoff: Backoff {
                first_ms: 1_000,
                longest_ms: 60_000,
            },
            poll_ms: 250,
            keep_sent_ms: 24 * 60 * 60 * 1_000,
        }
    }

    /// Whether it can be drained so.
    pub fn check(&self) -> Result<(), InvalidField> {
        let bad = |field, reason| Err(InvalidField::new(field, reason));
        if self.worker.is_empty() {
            return bad("worker", "it needs a name");
        }
        if self.lease_ms == 0 || self.poll_ms == 0 {
            return bad("lease_ms and poll_ms", "they have to be at least 1");
        }
        if self.batch_rows == 0 {
            return bad("batch_rows", "it has to be at least 1");
        }
        Ok(())
    }
}

impl<C: ClaimStore> Drainer<C> {
    /// A drainer of the rows that this worker claims, with options that were checked.
    pub fn new(claims: C, options: DrainerOptions, clock: Arc<dyn Clock>) -> Self {
        Self {
            claims,
            options,
            clock,
            total: Drained::default(),
            pruned_ms: 0,
        }
    }

    /// What it did since it was made.
    pub fn total(&self) -> Drained {
        self.total
    }

    /// How many rows there are.
    pub async fn counts(&self) -> Result<OutboxCounts, C::Error> {
        self.claims.counts().await
    }

    /// Publishes until nothing is due. Rows that wait for their next attempt are left.
    pub async fn drain(&mut self, publisher: &impl Publish) -> Result<Drained, C::Error> {
        let before = self.total;
        while self.drain_batch(publisher).await? {}
        Ok(self.total.since(&before))
    }

    /// Publishes, and waits for more, until it fails; let go of the future to stop.
    pub async fn run(&mut self, publisher: &impl Publish) -> Result<Infallible, C::Error> {
        loop {
            let is_idle = match self.drain_batch(publisher).await {
                Ok(worked) => !worked,
                Err(error) if error.is_transient() => true,
                Err(error) => return Err(error),
            };
            if is_idle {
                tokio::time::sleep(Duration::from_millis(self.options.poll_ms)).await;
            }
        }
    }

    /// Claims, publishes and settles once; whether there was anything to do.
    async fn drain_batch(&mut self, publisher: &impl Publish) -> Result<bool, C::Error> {
        let (max_rows, max_bytes) = (self.options.batch_rows, self.options.batch_bytes);
        let now_ms = self.clock.now_ms();
        let (rows, settled) = self.claims.claim(now_ms, max_rows, max_bytes).await?;
        self.total.add(&settled);
        if rows.is_empty() {
            self.prune().await?;
            return Ok(settled.failed > 0);
        }
        let lease = Duration::from_millis(self.options.lease_ms);
        let results = match tokio::time::timeout(lease, publisher.publish(&rows)).await {
            Ok(results) => results,
            Err(_) => {
                let late = PublishFailure::new("timeout", "no answer came within the lease");
                vec![Err(late); rows.len()]
            }
        };
        let now_ms = self.clock.now_ms();
        let settled = self.claims.settle(now_ms, rows, results).await?;
        self.total.add(&settled);
        Ok(true)
    }

    /// Removes old rows now and then.
    async fn prune(&mut self) -> Result<(), C::Error> {
        let now_ms = self.clock.now_ms();
        if now_ms < self.pruned_ms.saturating_add(PRUNE_EVERY_MS) {
            return Ok(());
        }
        let until_ms = now_ms.saturating_sub(self.options.keep_sent_ms);
        let pruned = self.claims.prune(until_ms, PRUNED_ROWS).await?;
        self.total.pruned += pruned;
        if pruned < PRUNED_ROWS as u64 {
            self.pruned_ms = now_ms;
        }
        Ok(())
    }
}

impl Drained {
    fn add(&mut self, settled: &Settled) {
        self.sent += settled.sent;
        self.duplicates += settled.duplicates;
        self.retried += settled.retried;
        self.failed += settled.failed;
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            sent: self.sent - before.sent,
            duplicates: self.duplicates - before.duplicates,
            retried: self.retried - before.retried,
            failed: self.failed - before.failed,
            pruned: self.pruned - before.pruned,
        }
    }
}

impl<C> fmt::Debug for Drainer<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drainer")
            .field("options", &self.options)
            .field("total", &self.total)
            .finish_non_exhaustive()
    }
}
