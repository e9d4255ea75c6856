//! What the foreground and the background of a log share: the pace of background work, the throttle of
//! publishers, and the wish to seal, to maintain and to stop.

use crate::pace::Pacer;
use prombus_store::LockExt;
use std::sync::{Condvar, Mutex, MutexGuard};

/// Shared by the committer, the maintainer and the reader of a log.
#[derive(Default)]
pub(crate) struct Background {
    pub(crate) pacer: Pacer,
    signal: Mutex<MaintenanceSignal>,
    /// Wakes the sealing and the maintenance thread; goes with `signal`.
    pub(crate) wake: Condvar,
}

/// What the threads of a log share.
#[derive(Debug, Default)]
pub(crate) struct MaintenanceSignal {
    /// A full segment waits to be sealed.
    pub(crate) wanted: bool,
    /// A segment was sealed, so that there may be something to retain, compact or free.
    pub(crate) has_sealed: bool,
    pub(crate) stopping: bool,
}

impl Background {
    pub(crate) fn signal(&self) -> MutexGuard<'_, MaintenanceSignal> {
        self.signal.guard()
    }

    /// Asks the sealing thread to seal what is full.
    pub(crate) fn want_sealing(&self) {
        self.signal().wanted = true;
        self.wake.notify_all();
    }

    /// Ends the background threads.
    pub(crate) fn stop(&self) {
        self.signal().stopping = true;
        self.wake.notify_all();
        self.pacer.stop();
    }
}
