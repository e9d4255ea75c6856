//! The signals that ask to stop: Ctrl-C, and what a service manager sends.

use std::future::Future;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM and SIGINT, whichever comes.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

/// Listens from now on.
pub(crate) fn listen() -> io::Result<Signals> {
    Ok(Signals {
        terminate: signal(SignalKind::terminate())?,
        interrupt: signal(SignalKind::interrupt())?,
    })
}

impl Signals {
    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// What the work came to; `None` where a signal came first.
pub(crate) async fn until_stopped<T>(work: impl Future<Output = T>) -> io::Result<Option<T>> {
    let mut signals = listen()?;
    tokio::select! {
        done = work => Ok(Some(done)),
        () = signals.next() => Ok(None),
    }
}
