//! The signals that ask to stop: Ctrl-C, and what a service manager sends.

use std::future::Future;
use std::io;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
#[cfg(windows)]
use tokio::signal::windows::{CtrlC, CtrlShutdown, ctrl_c, ctrl_shutdown};

/// SIGTERM and SIGINT, or what Windows has in their place, whichever comes.
pub(crate) struct Signals {
    #[cfg(unix)]
    terminate: Signal,
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(windows)]
    terminate: CtrlShutdown,
    #[cfg(windows)]
    interrupt: CtrlC,
}

/// Listens from now on.
pub(crate) fn listen() -> io::Result<Signals> {
    Ok(Signals {
        #[cfg(unix)]
        terminate: signal(SignalKind::terminate())?,
        #[cfg(unix)]
        interrupt: signal(SignalKind::interrupt())?,
        #[cfg(windows)]
        terminate: ctrl_shutdown()?,
        #[cfg(windows)]
        interrupt: ctrl_c()?,
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
