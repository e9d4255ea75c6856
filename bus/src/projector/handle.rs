//! The handle of a running projector: its status, and stopping it.

use crate::core::Core;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::JoinHandle;

/// A projector at work. Dropping it stops it; whatever was not committed then has not happened.
#[must_use = "dropping it stops the projector"]
pub struct ProjectorHandle {
    core: Arc<Core>,
    input: Arc<str>,
    shared_status: Arc<SharedStatus>,
    task: JoinHandle<()>,
}

/// How a projector is doing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProjectorStatus {
    /// The last position of the input whose results are committed.
    pub position: u64,
    /// How many events of the input are behind it.
    pub lag: u64,
    /// How many events were emitted since the projector first ran.
    pub emitted: u64,
    /// How many events nothing could be made of.
    pub rejected: u64,
    /// Why, for the last of them that this runner saw.
    pub last_rejection: Option<Arc<str>>,
    /// How many events retention took before they were read.
    pub skipped: u64,
    /// Whether another runner of the projector is at work, so that this one waits.
    pub is_standby: bool,
    /// What keeps it from going on; `None` when it goes on again.
    pub last_error: Option<Arc<str>>,
}

/// What the runner tells its owner.
#[derive(Debug, Default)]
pub(super) struct SharedStatus(Mutex<ProjectorStatus>);

impl SharedStatus {
    pub(super) fn change(&self, change: impl FnOnce(&mut ProjectorStatus)) {
        change(&mut self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, ProjectorStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProjectorHandle {
    pub(super) fn new(
        core: Arc<Core>,
        input: Arc<str>,
        shared_status: Arc<SharedStatus>,
        task: JoinHandle<()>,
    ) -> Self {
        Self {
            core,
            input,
            shared_status,
            task,
        }
    }

    /// How it is doing.
    pub fn status(&self) -> ProjectorStatus {
        let mut status = self.shared_status.lock().clone();
        let tail_seq = self.core.store.topic(&self.input).map(|info| info.tail_seq);
        status.lag = tail_seq.unwrap_or(0).saturating_sub(status.position);
        if self.has_ended() && !self.core.is_closed() {
            status.last_error = Some("the projector panicked and stopped".into());
        }
        status
    }

    /// Whether it has ended, because the bus is closed or the projector panicked.
    pub fn has_ended(&self) -> bool {
        self.task.is_finished()
    }

    /// Stops it, and waits until it does nothing more.
    pub async fn stop(mut self) {
        self.task.abort();
        // It was aborted or had ended, and either is what was wanted.
        let _ = (&mut self.task).await;
    }
}

impl Drop for ProjectorHandle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for ProjectorHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProjectorHandle")
            .field("input", &self.input)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}
