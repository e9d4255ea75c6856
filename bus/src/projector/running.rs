//! The projectors that run on a bus, so that the holder of the bus can see how they are doing.

use super::{ProjectorInfo, ProjectorStatus};
use crate::core::Core;
use prombus_store::LockExt;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use tokio::task::AbortHandle;

/// One projector at work. Its handle keeps it; the bus only knows of it.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) name: Arc<str>,
    pub(super) input: Arc<str>,
    pub(super) output: Arc<str>,
    pub(super) shared_status: Arc<SharedStatus>,
    pub(super) task: AbortHandle,
}

/// What the runner reports to its owner.
#[derive(Debug, Default)]
pub(super) struct SharedStatus(Mutex<ProjectorStatus>);

/// All projectors of a bus whose handles are kept.
#[derive(Debug, Default)]
pub(crate) struct RunningProjectors(Mutex<Vec<Weak<Running>>>);

impl SharedStatus {
    pub(super) fn change(&self, change: impl FnOnce(&mut ProjectorStatus)) {
        change(&mut self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, ProjectorStatus> {
        self.0.guard()
    }
}

impl Running {
    pub(super) fn status(&self, core: &Core) -> ProjectorStatus {
        let mut status = self.shared_status.lock().clone();
        let tail_seq = core.store.topic(&self.input).map(|info| info.tail_seq);
        status.lag = tail_seq.unwrap_or(0).saturating_sub(status.position);
        if self.task.is_finished() && !core.is_closed() {
            status.last_error = Some("the projector panicked and stopped".into());
        }
        status
    }
}

impl RunningProjectors {
    /// Adds one, and forgets those whose handles are gone.
    pub(super) fn add(&self, running: &Arc<Running>) {
        let mut all = self.lock();
        all.retain(|known| known.strong_count() > 0);
        all.push(Arc::downgrade(running));
    }

    /// How each of them is doing, in the order in which they were started.
    pub(super) fn infos(&self, core: &Core) -> Vec<ProjectorInfo> {
        // No handle is dropped under the lock, nor is the store asked.
        let all: Vec<Arc<Running>> = self.lock().iter().filter_map(Weak::upgrade).collect();
        let infos = all.iter().map(|running| ProjectorInfo {
            name: running.name.clone(),
            input: running.input.clone(),
            output: running.output.clone(),
            status: running.status(core),
        });
        infos.collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Running>>> {
        self.0.guard()
    }
}
