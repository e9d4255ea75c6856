//! The task that follows the topic of schedules and publishes what is due.

use super::index::{Due, Index, Waiting};
use super::publish_due::Outcome;
use super::record::SCHEDULES_TOPIC;
use crate::core::{Closing, Core};
use prombus_store::LockExt;
use prombus_store::{ReadError, ReadFrom, ReadLimit};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// The task looks at the clock this often while something waits, for the clock may be set.
const MAX_SLEEP_MS: u64 = 1_000;
/// How long it waits after a failure of the store: the first time, and at most.
const FIRST_RETRY_MS: u64 = 50;
const MAX_RETRY_MS: u64 = 5_000;
/// How much is read at a time.
const PAGE: ReadLimit = ReadLimit {
    events: 4_096,
    bytes: 1 << 20,
};

/// Runs the task until it is dropped.
pub(crate) struct Scheduler {
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Scheduler {
    /// Starts the task.
    pub(crate) fn start(core: &Arc<Core>, runtime: &Handle) -> Self {
        let run = Run {
            core: core.clone(),
            topic: SCHEDULES_TOPIC.into(),
            index: Index::new(),
            next_seq: 1,
            started_ms: core.now_ms(),
            failures: 0,
            deferred: VecDeque::new(),
        };
        let task = runtime.spawn(run.run(core.closing()));
        let task = Mutex::new(Some(task));
        Self { task }
    }

    /// Stops the task and waits for it. A batch is committed as a whole or not at all.
    pub(crate) async fn stop(&self) {
        if let Some(task) = self.take() {
            task.abort();
            // It ends by being aborted, which is what was asked for.
            let _ = task.await;
        }
    }

    fn take(&self) -> Option<JoinHandle<()>> {
        let mut task = self.task.guard();
        task.take()
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        if let Some(task) = self.take() {
            task.abort();
        }
    }
}

/// The task's own.
pub(super) struct Run {
    pub(super) core: Arc<Core>,
    pub(super) topic: Arc<str>,
    pub(super) index: Index,
    /// How far the topic was read.
    next_seq: u64,
    /// What was due before this came due while no scheduler was running.
    pub(super) started_ms: u64,
    /// How often the store failed since it did something last.
    failures: u32,
    /// Schedules that the store does not take, one by one, and when they are tried again.
    pub(super) deferred: VecDeque<(u64, Due)>,
}

impl Run {
    async fn run(mut self, mut closing: Closing) {
        let mut tail = self.core.store.watch(&self.topic);
        while !closing.is_closed() {
            let outcome = match self.follow().await {
                Ok(()) => self.publish_due().await,
                Err(error) => {
                    let cause = error.to_string();
                    tracing::warn!(cause, "schedules cannot be read; trying again");
                    Outcome::Failed
                }
            };
            let sleep_ms = match outcome {
                Outcome::Closed => return,
                Outcome::More => {
                    self.failures = 0;
                    // Others have a turn.
                    tokio::task::yield_now().await;
                    continue;
                }
                Outcome::Done => {
                    self.failures = 0;
                    let now_ms = self.core.now_ms();
                    let due = self.index.next_due().into_iter();
                    let due = due.chain(self.deferred.front().map(|(retry_ms, _)| *retry_ms));
                    due.min()
                        .map(|due| due.saturating_sub(now_ms).min(MAX_SLEEP_MS))
                }
                Outcome::Failed => {
                    self.failures = self.failures.saturating_add(1);
                    let factor = 1 << (self.failures - 1).min(10);
                    Some((FIRST_RETRY_MS * factor).min(MAX_RETRY_MS))
                }
            };
            let sleep = Duration::from_millis(sleep_ms.unwrap_or_default());
            tokio::select! {
                moved = tail.moved() => {
                    if !moved {
                        return;
                    }
                }
                () = tokio::time::sleep(sleep), if sleep_ms.is_some() => {}
                () = closing.closed() => return,
            }
        }
    }

    /// Reads what was added to the topic, by whomever.
    pub(super) async fn follow(&mut self) -> Result<(), ReadError> {
        while let Some(info) = self.core.store.topic(&self.topic) {
            if info.tail_seq < self.next_seq {
                break;
            }
            let from = ReadFrom::Seq(self.next_seq);
            let page = self.core.store.read(&self.topic, from, PAGE).await?;
            for event in &page.events {
                let Some(id) = event.key() else {
                    continue;
                };
                if event.is_tombstone() {
                    self.index.remove(&id);
                } else {
                    let (due, seq) = (event.ts(), event.seq());
                    self.index.insert(&id, Waiting { due, seq });
                }
            }
            if page.next_seq <= self.next_seq {
                break;
            }
            self.next_seq = page.next_seq;
        }
        let pending = self.index.len() as u64;
        self.core
            .schedules
            .pending
            .store(pending, Ordering::Relaxed);
        Ok(())
    }
}
