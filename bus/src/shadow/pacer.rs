//! The task that moves the tail of a shadow group: event by event as each is due, or as the topic's own tail moves.

use super::{Pace, Shadow};
use crate::core::{Closing, Core};
use crate::group::Ended;
use crate::group::command::Command;
use crate::group::registry::{GroupName, Registry};
use prombus_store::{Clock, ReadFrom, ReadLimit, Store};
use std::future::pending;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How much is read at a time.
const PAGE: ReadLimit = ReadLimit {
    events: 1_024,
    bytes: 1 << 20,
};
/// How long reading rests after a failure.
const RETRY: Duration = Duration::from_secs(1);

/// What the task needs. It keeps the store, but not the bus.
pub(super) struct Pacer {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) registry: Weak<Registry>,
    pub(super) core: Weak<Core>,
    pub(super) name: GroupName,
    pub(super) shadow: Arc<Shadow>,
    pub(super) pace: Pace,
    pub(super) ttl_ms: u64,
}

impl Pacer {
    /// Runs until the group is gone, or its time is over.
    pub(super) async fn run(self, mut closing: Closing) {
        let feeding = async {
            self.feed().await;
            pending::<()>().await;
        };
        tokio::select! {
            () = feeding => {}
            () = closing.closed() => return,
            () = tokio::time::sleep(Duration::from_millis(self.ttl_ms)) => {}
        }
        if let Some(registry) = self.registry.upgrade()
            && registry.is_running(&self.name)
        {
            let abandon = |reply| Command::Abandon(Ended::GroupRemoved, reply);
            // One that has stopped by itself is as good.
            let _ = registry.call(&self.name, abandon).await;
        }
        if let Some(core) = self.core.upgrade() {
            core.shadows.remove(&self.name.group);
        }
    }

    async fn feed(&self) {
        match self.pace {
            Pace::Max => self.follow().await,
            Pace::Original => self.pace_by(1.0).await,
            Pace::Times(factor) => self.pace_by(factor).await,
        }
    }

    /// Shows everything at once, up to the last position.
    async fn follow(&self) {
        let mut tail = self.store.watch(&self.name.topic);
        let last = self.shadow.to_seq.unwrap_or(u64::MAX);
        loop {
            let current = tail.current().min(last);
            self.show(current);
            if current == last || !tail.moved().await {
                return;
            }
        }
    }

    /// Shows each event when as much time has passed since the first one as between them, divided by `factor`.
    async fn pace_by(&self, factor: f64) {
        let mut tail = self.store.watch(&self.name.topic);
        let last = self.shadow.to_seq.unwrap_or(u64::MAX);
        let mut next_seq = self.shadow.from_seq;
        let mut began = None;
        loop {
            let read = self
                .store
                .read(&self.name.topic, ReadFrom::Seq(next_seq), PAGE);
            let Ok(page) = read.await else {
                tokio::time::sleep(RETRY).await;
                continue;
            };
            for event in &page.events {
                if event.seq() > last {
                    return;
                }
                let (first_ts, began_ms) =
                    *began.get_or_insert_with(|| (event.ts(), self.clock.monotonic_ms()));
                let after_ms = event.ts().saturating_sub(first_ts) as f64 / factor;
                self.wait_until(began_ms.saturating_add(after_ms as u64))
                    .await;
                self.show(event.seq());
            }
            next_seq = page.next_seq.max(next_seq);
            if next_seq > last || page.events.is_empty() && !tail.moved().await {
                return;
            }
        }
    }

    async fn wait_until(&self, due_ms: u64) {
        loop {
            let left_ms = due_ms.saturating_sub(self.clock.monotonic_ms());
            if left_ms == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(left_ms)).await;
        }
    }

    fn show(&self, seq: u64) {
        // Where the topic ends before the first position, nothing is shown yet.
        if seq > self.shadow.tail.current() {
            self.shadow.tails.moved(&self.name.topic, seq);
        }
    }
}
