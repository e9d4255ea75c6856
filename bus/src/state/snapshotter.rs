//! The task that makes snapshots. One for each bus: it watches all topics that want snapshots, runs one pass for
//! each that is due, in turn, and sleeps while there is nothing to do.

use super::snapshot_pass::{PassError, run_pass};
use super::snapshot_plan::{SnapshotPlan, plans};
use crate::bus::Bus;
use crate::core::Core;
use crate::error::{InvalidField, StateError};
use prombus_store::LockExt;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// How long new settings of topics wait to be looked at, so that a thousand new topics are looked at once.
const SETTLE: Duration = Duration::from_millis(200);
/// The clock is looked at again at least this often.
const MAX_SLEEP_MS: u64 = 3_600_000;
/// How often a snapshot that was asked for is tried again where another one was quicker.
const MAX_TRIES: usize = 64;

/// The task, which ends with this.
pub(crate) struct Snapshotter {
    task: Mutex<Option<JoinHandle<()>>>,
}

/// What is to be done when.
#[derive(Default)]
struct Schedule {
    jobs: HashMap<Arc<str>, Job>,
}

struct Job {
    plan: SnapshotPlan,
    due_ms: u64,
}

impl Bus {
    /// Brings the snapshot of a topic up to date now, and says up to which position it is. The bus does this by itself
    /// every `snapshot_interval`.
    pub async fn snapshot(&self, topic: &str) -> Result<u64, StateError> {
        let topic = self.state_topic(topic)?;
        let plans = plans(&self.topics());
        let Some(plan) = plans.into_iter().find(|plan| plan.topic == topic) else {
            return Err(InvalidField::new("snapshot_topic", "the topic has none").into());
        };
        let mut tries = 0;
        loop {
            match run_pass(self.core(), &plan).await {
                Ok(result) if result.is_done => return Ok(result.position),
                Ok(_) => {}
                Err(failure) if failure.is_overtaken() && tries < MAX_TRIES => tries += 1,
                Err(failure) => return Err(failure.cause().into()),
            }
        }
    }
}

impl Snapshotter {
    /// Starts the task.
    pub(crate) fn start(core: &Arc<Core>, runtime: &Handle) -> Self {
        let task = runtime.spawn(run(core.clone()));
        let task = Mutex::new(Some(task));
        Self { task }
    }

    /// Stops the task and waits for it. A pass is committed as a whole or not at all.
    pub(crate) async fn stop(&self) {
        if let Some(task) = self.take() {
            task.abort();
            // It ends by being aborted, which is what was asked for.
            let _ = task.await;
        }
    }

    fn take(&self) -> Option<JoinHandle<()>> {
        self.task.guard().take()
    }
}

impl Drop for Snapshotter {
    fn drop(&mut self) {
        if let Some(task) = self.take() {
            task.abort();
        }
    }
}

async fn run(core: Arc<Core>) {
    let mut changes = core.store.watch_topics();
    let mut schedule = Schedule::default();
    schedule.follow(plans(&core.store.topics()), core.monotonic_ms());
    loop {
        for plan in schedule.due(core.monotonic_ms()) {
            let result = run_pass(&core, &plan).await;
            let is_done = match result {
                Ok(result) => result.is_done,
                // Another one is at work, or the topic is gone, which the next look at the topics tells.
                Err(PassError::Overtaken) => true,
                // The store reports to its operators what is wrong with it.
                Err(PassError::Read(_) | PassError::Commit(_)) => true,
            };
            schedule.done(&plan, is_done, core.monotonic_ms());
        }
        let sleep = schedule.next_due().map(|due_ms| {
            Duration::from_millis(due_ms.saturating_sub(core.monotonic_ms()).min(MAX_SLEEP_MS))
        });
        tokio::select! {
            changed = changes.changed() => {
                if !changed {
                    return;
                }
                tokio::time::sleep(SETTLE).await;
                schedule.follow(plans(&core.store.topics()), core.monotonic_ms());
            }
            () = tokio::time::sleep(sleep.unwrap_or_default()), if sleep.is_some() => {}
        }
    }
}

impl Schedule {
    /// Takes the plans as they are now. A new one is due at once, so that a bus that is restarted often makes
    /// snapshots too.
    fn follow(&mut self, plans: Vec<SnapshotPlan>, now_ms: u64) {
        let mut before = std::mem::take(&mut self.jobs);
        for plan in plans {
            let due_ms = match before.remove(&plan.topic) {
                Some(job) if job.plan == plan => job.due_ms,
                Some(job) => job.due_ms.min(now_ms + plan.interval_ms),
                None => now_ms,
            };
            self.jobs.insert(plan.topic.clone(), Job { plan, due_ms });
        }
    }

    fn due(&self, now_ms: u64) -> Vec<SnapshotPlan> {
        let due = self.jobs.values().filter(|job| job.due_ms <= now_ms);
        let mut due: Vec<SnapshotPlan> = due.map(|job| job.plan.clone()).collect();
        due.sort_unstable_by(|one, other| one.topic.cmp(&other.topic));
        due
    }

    fn done(&mut self, plan: &SnapshotPlan, is_done: bool, now_ms: u64) {
        if let Some(job) = self.jobs.get_mut(&plan.topic) {
            job.due_ms = if is_done {
                now_ms + plan.interval_ms
            } else {
                now_ms
            };
        }
    }

    fn next_due(&self) -> Option<u64> {
        self.jobs.values().map(|job| job.due_ms).min()
    }
}
