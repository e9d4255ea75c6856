//! The projectors that run in the server, and what is logged of them.

use crate::config::ProjectorsConfig;
use prombus::error::ProjectorError;
use prombus::{Bus, ProcessProjector, Projector, ProjectorHandle, ProjectorStatus};
use std::time::Duration;
use tokio::task::JoinHandle;

/// How often it is looked how they are doing.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// Projectors at work, until this is dropped.
pub(super) struct Projectors {
    looking: JoinHandle<()>,
}

/// Starts those that the configuration turns on.
pub(super) fn start(bus: &Bus, config: ProjectorsConfig) -> Result<Projectors, ProjectorError> {
    let mut running = Vec::new();
    if config.process {
        running.push(Running::start(bus, ProcessProjector::default())?);
    }
    let looking = tokio::spawn(look_after(running));
    Ok(Projectors { looking })
}

impl Drop for Projectors {
    fn drop(&mut self) {
        self.looking.abort();
    }
}

/// A projector and how it was doing when it was last looked at.
struct Running {
    name: String,
    handle: ProjectorHandle,
    reported: ProjectorStatus,
}

async fn look_after(mut running: Vec<Running>) {
    while !running.is_empty() {
        tokio::time::sleep(LOOK_INTERVAL).await;
        running.iter_mut().for_each(Running::report);
    }
}

impl Running {
    fn start<P: Projector>(bus: &Bus, projector: P) -> Result<Self, ProjectorError> {
        let name = projector.name().to_owned();
        let (input, output) = (projector.input().to_owned(), projector.output().to_owned());
        let handle = bus.run_projector(projector)?;
        tracing::info!(projector = name, input, output, "projector started");
        Ok(Self {
            name,
            handle,
            reported: ProjectorStatus::default(),
        })
    }

    /// Tells operators what has changed for the worse.
    fn report(&mut self) {
        let (name, status) = (&self.name, self.handle.status());
        if status.last_error != self.reported.last_error
            && let Some(error) = &status.last_error
        {
            tracing::error!(projector = name, %error, lag = status.lag, "a projector does not go on");
        }
        if status.is_standby && !self.reported.is_standby {
            tracing::info!(
                projector = name,
                "another runner of the projector is at work; this one stands by"
            );
        }
        if status.last_rejection != self.reported.last_rejection
            && let Some(why) = &status.last_rejection
        {
            let refused = status.rejected;
            tracing::warn!(projector = name, refused, last = %why, "an event that nothing could be made of");
        }
        self.reported = status;
    }
}
