//! Opens the log anew underneath the store when a write or a sync failed, with growing pauses, until it takes writes
//! again. The folder stays locked throughout. Readers of the failed log finish on it, watches go on, and whoever comes
//! later gets the new one.

use crate::files::{FencedFiles, Files, OverlayFiles};
use crate::log::Log;
use crate::options::{Listener, LogOptions};
use crate::recovery::{OpenError, OpenReport};
use prombus_store::{CommitError, Damage, Tails};
use prombus_store::{LockExt, RwLockExt};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

/// The pause before the second attempt; the first comes at once. It doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause between attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// A log that has worked for so long is opened at once again when it fails.
const CALM: Duration = Duration::from_secs(60);

/// The log of a store, whichever one it is at the moment.
pub(super) struct Supervised {
    base: RwLock<Arc<dyn Files>>,
    options: LogOptions,
    tails: Arc<Tails>,
    current: RwLock<Generation>,
    signal: Arc<Signal>,
    /// Held while the log is opened anew, and when the store is closed.
    changing: Mutex<()>,
}

/// A log between two failures.
struct Generation {
    log: Arc<Log>,
    /// What the log changes goes through here, so that it can be kept from changing anything once it is replaced.
    fence: Arc<FencedFiles>,
    /// The disk took no writes when it was opened, so its changes stay in memory.
    is_read_only: bool,
}

/// What the supervisor's thread waits for.
#[derive(Default)]
struct Signal {
    state: Mutex<Signalled>,
    wake: Condvar,
}

#[derive(Default)]
struct Signalled {
    failed: bool,
    stopping: bool,
}

/// Passes on what the log says of its tails, and that it failed.
struct LogListener {
    tails: Arc<Tails>,
    signal: Arc<Signal>,
    /// Is notified of damage.
    on_damage: Option<Arc<dyn Listener>>,
}

impl Supervised {
    /// Opens the log in `files`. Where the disk takes no writes it is opened to be read, and is opened anew when it
    /// does.
    pub(super) fn open(
        files: Arc<dyn Files>,
        options: LogOptions,
        tails: Arc<Tails>,
    ) -> Result<(Arc<Self>, OpenReport), OpenError> {
        let signal = Arc::<Signal>::default();
        let options = LogOptions {
            listener: Some(Arc::new(LogListener {
                tails: tails.clone(),
                signal: signal.clone(),
                on_damage: options.listener,
            })),
            ..options
        };
        let fence = Arc::new(FencedFiles::new(files.clone()));
        let (log, report, is_read_only) = match Log::open(fence.clone(), options.clone()) {
            Ok((log, report)) => (log, report, false),
            Err(OpenError::Io(error)) => {
                fence.close();
                let (log, report) = open_read_only(&files, &options, error)?;
                signal.lock().failed = true;
                (log, report, true)
            }
            Err(error) => return Err(error),
        };
        let generation = Generation {
            log: Arc::new(log),
            fence,
            is_read_only,
        };
        let supervised = Self {
            base: RwLock::new(files),
            options,
            tails,
            current: RwLock::new(generation),
            signal,
            changing: Mutex::default(),
        };
        Ok((Arc::new(supervised), report))
    }

    /// The log as it is now.
    pub(super) fn log(&self) -> Arc<Log> {
        let current = self.current.read_guard();
        current.log.clone()
    }

    /// Starts the thread that opens the log anew.
    pub(super) fn start(self: &Arc<Self>) -> io::Result<JoinHandle<()>> {
        let supervised = self.clone();
        let thread = std::thread::Builder::new().name("prombus-reopen".into());
        thread.spawn(move || supervised.run())
    }

    /// Ends the thread; an attempt that is under way is finished.
    pub(super) fn stop(&self) {
        self.signal.lock().stopping = true;
        self.signal.wake.notify_all();
    }

    /// Closes the log for good.
    pub(super) fn close(&self) -> Result<(), CommitError> {
        self.stop();
        let _no_opening = self.changing.guard();
        self.log().close()
    }

    fn run(&self) {
        let mut attempts = 0;
        loop {
            match self.wait_for_failure() {
                Waited::Stopping => return,
                Waited::InVain => attempts = 0,
                Waited::Failed => {
                    if attempts > 0 && self.rest(pause(attempts)) {
                        return;
                    }
                    attempts += 1;
                    // What is wrong is what the failed log says; the next attempt comes after a pause.
                    let _ = self.open_anew();
                }
            }
        }
    }

    fn wait_for_failure(&self) -> Waited {
        let mut signalled = self.signal.lock();
        if !signalled.failed && !signalled.stopping {
            let waited = self.signal.wake.wait_timeout(signalled, CALM);
            signalled = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        match (signalled.stopping, signalled.failed) {
            (true, _) => Waited::Stopping,
            (false, true) => Waited::Failed,
            (false, false) => Waited::InVain,
        }
    }

    /// Waits for so long; true if the thread is to end.
    fn rest(&self, pause: Duration) -> bool {
        let signalled = self.signal.lock();
        let waited = self
            .signal
            .wake
            .wait_timeout_while(signalled, pause, |signalled| !signalled.stopping);
        let (signalled, _) = waited.unwrap_or_else(PoisonError::into_inner);
        signalled.stopping
    }

    /// Replaces the failed log by one that is opened anew with the care of a start.
    fn open_anew(&self) -> Result<(), OpenError> {
        let _one_at_a_time = self.changing.guard();
        let (failed, old_fence, is_read_only) = {
            let current = self.current.read_guard();
            let fence = current.fence.clone();
            (current.log.clone(), fence, current.is_read_only)
        };
        if self.signal.lock().stopping {
            return Ok(());
        }
        if !failed.has_failed() {
            self.signal.lock().failed = false;
            return Ok(());
        }
        // Its threads end and all who wait hear that it failed; it cannot be closed properly.
        let _ = failed.close();
        old_fence.close();
        // Before the new log can fail, so that no failure of its is missed.
        self.signal.lock().failed = false;
        let fence = Arc::new(FencedFiles::new(self.base.read_guard().clone()));
        let opened = if is_read_only {
            Log::open(fence.clone(), self.options.clone())
        } else {
            Log::open_after(&failed, fence.clone())
        };
        let log = match opened {
            Ok((log, _)) => Arc::new(log),
            Err(error) => {
                fence.close();
                self.signal.lock().failed = true;
                return Err(error);
            }
        };
        let generation = Generation {
            log: log.clone(),
            fence,
            is_read_only: false,
        };
        *self.current.write_guard() = generation;
        // A batch that failed and was on the disk all the same is there now.
        self.refresh_tails(&log);
        Ok(())
    }

    /// Goes on with the log in other files, if it is as `check` wants it. The old one stays as it is, for its readers.
    pub(super) fn replace<E: From<OpenError>>(
        &self,
        files: Arc<dyn Files>,
        check: impl FnOnce(&Log, &OpenReport) -> Result<(), E>,
    ) -> Result<(), E> {
        let _one_at_a_time = self.changing.guard();
        let fence = Arc::new(FencedFiles::new(files.clone()));
        let (log, report) = Log::open(fence.clone(), self.options.clone())?;
        check(&log, &report)?;
        let log = Arc::new(log);
        let generation = Generation {
            log: log.clone(),
            fence,
            is_read_only: false,
        };
        let old = std::mem::replace(&mut *self.current.write_guard(), generation);
        *self.base.write_guard() = files;
        self.signal.lock().failed = false;
        // Whether it could be closed properly does not matter any more.
        let _ = old.log.close();
        old.fence.close();
        self.refresh_tails(&log);
        Ok(())
    }

    fn refresh_tails(&self, log: &Log) {
        let tails = log.topics().into_iter();
        let tails: Vec<_> = tails.map(|topic| (topic.name, topic.tail_seq)).collect();
        self.tails.refresh(&tails);
        self.tails.topics_changed();
    }
}

/// What waiting for a failure came to.
enum Waited {
    Stopping,
    Failed,
    /// Nothing failed for a long time.
    InVain,
}

impl Signal {
    fn lock(&self) -> MutexGuard<'_, Signalled> {
        self.state.guard()
    }
}

impl Listener for LogListener {
    fn tail_moved(&self, topic: &str, tail_seq: u64) {
        self.tails.moved(topic, tail_seq);
    }

    fn is_followed(&self) -> bool {
        self.tails.is_followed()
    }

    fn topics_changed(&self) {
        self.tails.topics_changed();
    }

    fn damage_found(&self, damage: &Damage) {
        if let Some(listener) = &self.on_damage {
            listener.damage_found(damage);
        }
    }

    fn failed(&self) {
        self.signal.lock().failed = true;
        self.signal.wake.notify_all();
    }
}

/// The pause after so many attempts.
fn pause(attempts: u32) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1 << (attempts - 1).min(16));
    doubled.min(LONGEST_PAUSE)
}

/// Opens a log on a disk that takes no writes: it is recovered in memory, read, and takes no batches.
fn open_read_only(
    files: &Arc<dyn Files>,
    options: &LogOptions,
    error: io::Error,
) -> Result<(Log, OpenReport), OpenError> {
    let overlay = Arc::new(OverlayFiles::new(files.clone()));
    let options = LogOptions {
        threads: false,
        reserve_bytes: 0,
        ..options.clone()
    };
    let Ok((log, report)) = Log::open(overlay, options) else {
        return Err(error.into());
    };
    log.refuse_writes(&format!("opening the log failed: {error}"));
    Ok((log, report))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let pauses = [1, 2, 3, 7, 8, 40].map(|attempts| pause(attempts).as_millis());
        assert_eq!(pauses, [100, 200, 400, 6_400, 10_000, 10_000]);
    }
}
