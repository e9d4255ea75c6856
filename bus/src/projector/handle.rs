//! The handle of a running projector: its status, and stopping it.

use super::running::Running;
use crate::core::Core;
use std::fmt;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// A projector at work. Dropping it stops it; whatever was not committed then has not happened.
#[must_use = "dropping it stops the projector"]
pub struct ProjectorHandle {
    core: Arc<Core>,
    running: Arc<Running>,
    task: JoinHandle<()>,
}

/// A projector that runs on a bus, and how it is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectorInfo {
    /// Its name.
    pub name: Arc<str>,
    /// The topic that it reads.
    pub input: Arc<str>,
    /// The topic that it emits to.
    pub output: Arc<str>,
    /// How it is doing.
    pub status: ProjectorStatus,
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

impl ProjectorHandle {
    pub(super) fn new(core: Arc<Core>, running: Arc<Running>, task: JoinHandle<()>) -> Self {
        Self {
            core,
            running,
            task,
        }
    }

    /// How it is doing.
    pub fn status(&self) -> ProjectorStatus {
        self.running.status(&self.core)
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
            .field("name", &self.running.name)
            .field("input", &self.running.input)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}
