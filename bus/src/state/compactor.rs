//! The task that makes snapshots. One for each bus: it looks after all topics that want snapshots, makes one step for
//! each that is due, in turn, and sleeps while there is nothing to do.

use super::plan::{Plan, plans};
use super::round::{StepFailure, step};
use crate::bus::Bus;
use crate::core::Core;
use crate::error::{BadOption, StateError};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
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
pub(crate) struct Compactor {
    task: Mutex<Option<JoinHandle<()>>>,
}

/// What is to be done when.
#[derive(Default)]
struct Schedule {
    jobs: HashMap<Arc<str>, Job>,
}

struct Job {
    plan: Plan,
    due_ms: u64,
}

impl Bus {
    /// Brings the snapshot of a topic up to date now, and says up to which position it is. The bus does this by itself
    /// every `snapshot_interval`.
    pub async fn snapshot(&self, topic: &str) -> Result<u64, StateError> {
        let topic = self.state_topic(topic)?;
        let plans = plans(&self.topics());
        let Some(plan) = plans.into_iter().find(|plan| plan.topic == topic) else {
            return Err(BadOption::new("snapshot_topic", "the topic has none").into());
        };
        let mut tries = 0;
        loop {
            match step(self.core(), &plan).await {
                Ok(stepped) if stepped.is_done => return Ok(stepped.position),
                Ok(_) => {}
                Err(failure) if failure.is_overtaken() && tries < MAX_TRIES => tries += 1,
                Err(failure) => return Err(failure.cause().into()),
            }
        }
    }
}

impl Compactor {
    /// Starts the task.
    pub(crate) fn start(core: &Arc<Core>, runtime: &Handle) -> Self {
        let task = runtime.spawn(run(core.clone()));
        let task = Mutex::new(Some(task));
        Self { task }
    }

    /// Ends the task and waits for that. A step that was under way is stored as a whole or not at all.
    pub(crate) async fn stop(&self) {
        if let Some(task) = self.take() {
            task.abort();
            // It ends by being aborted, which is what was asked for.
            let _ = task.await;
        }
    }

    fn take(&self) -> Option<JoinHandle<()>> {
        self.task
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

impl Drop for Compactor {
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
            let stepped = step(&core, &plan).await;
            let is_done = match stepped {
                Ok(stepped) => stepped.is_done,
                // Another one is at work, or the topic is gone, which the next look at the topics tells.
                Err(StepFailure::Overtaken) => true,
                // The store tells its operators what is wrong with it.
                Err(StepFailure::Read(_) | StepFailure::Commit(_)) => true,
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
    fn follow(&mut self, plans: Vec<Plan>, now_ms: u64) {
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

    fn due(&self, now_ms: u64) -> Vec<Plan> {
        let due = self.jobs.values().filter(|job| job.due_ms <= now_ms);
        let mut due: Vec<Plan> = due.map(|job| job.plan.clone()).collect();
        due.sort_unstable_by(|one, other| one.topic.cmp(&other.topic));
        due
    }

    fn done(&mut self, plan: &Plan, is_done: bool, now_ms: u64) {
        if let Some(job) = self.jobs.get_mut(&plan.topic) {
            job.due_ms = match is_done {
                true => now_ms + plan.interval_ms,
                false => now_ms,
            };
        }
    }

    fn next_due(&self) -> Option<u64> {
        self.jobs.values().map(|job| job.due_ms).min()
    }
}
