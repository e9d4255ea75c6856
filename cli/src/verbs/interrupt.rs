//! Working until somebody asks to stop: with Ctrl-C, or as a service is stopped.

use std::future::Future;
use tokio::signal::unix::{SignalKind, signal};

/// What the work came to; `None` where SIGINT or SIGTERM came first.
pub(super) async fn until_stopped<T>(work: impl Future<Output = T>) -> anyhow::Result<Option<T>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        done = work => Ok(Some(done)),
        _ = terminate.recv() => Ok(None),
        _ = interrupt.recv() => Ok(None),
    }
}
