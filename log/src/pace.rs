//! The pace of background work. Sealing and rewriting pause after every piece, so that they stay below their bytes per
//! second and a publisher's fdatasync never queues behind more than a piece. Sealing pauses less the more is written
//! meanwhile, and while too many full segments wait, publishers are slowed down to the speed of sealing. What only reads and
//! computes rests after each stretch, so that on few processors nobody waits for it as long as the scheduler lets it run.
//!
//! Pauses are waits with a timeout and add to the time that the work takes, so no clock is read and none can step.

use prombus_store::LockExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Background work writes, syncs and pauses in pieces of this size.
pub(crate) const PIECE_BYTES: usize = 256 << 10;
/// How much background work reads or computes before it rests: some tenths of a millisecond. The scheduler of a busy system
/// would take the processor from it after 3 or 4 ms only, whatever its priority.
pub(crate) const STRETCH_BYTES: u64 = 128 << 10;
/// Work that does not pause is synced in larger pieces, as it has to be fast.
pub(crate) const HURRIED_SYNC_BYTES: u64 = 8 << 20;
/// Sealing does not pause unless it is this many times as fast as publishers are.
pub(crate) const SEAL_AHEAD: u64 = 2;
/// Rewriting pauses this many times as long while a segment is being sealed.
const YIELD_TO_SEALING: u32 = 4;
/// The same while publishers are throttled. It still goes on, since it may be what frees space.
const YIELD_TO_THROTTLED: u32 = 16;
/// What a throttled log writes before it waits for the first piece to be sealed.
const THROTTLE_BURST_BYTES: i64 = PIECE_BYTES as i64;
/// How long a throttled log waits at most before it looks again whether there is something to wait for.
const CREDIT_WAIT: Duration = Duration::from_millis(10);

/// How long background work leaves a lock alone that it takes again and again: a waiter that was woken by its release
/// takes some time to get it, and would find it taken every time.
const HANDOVER: Duration = Duration::from_micros(100);

/// How long work rests after a stretch: about as long as it worked.
const REST: Duration = Duration::from_micros(200);

/// What background work and publishers share. Its lock is the last one taken and is held across nothing.
#[derive(Debug, Default)]
pub(crate) struct Pacer {
    state: Mutex<PaceState>,
    /// Ends pauses early; goes with `state`.
    hurry: Condvar,
    /// A piece was sealed, or there is no throttle any more; goes with `state`.
    credited: Condvar,
    /// A copy of the state's, for publishers to look at without the lock.
    is_throttled: AtomicBool,
    /// All bytes that publishers have written since the log was opened.
    written_bytes: AtomicU64,
}

#[derive(Debug, Default)]
struct PaceState {
    is_throttled: bool,
    /// What may be written while throttled: one byte for each that was sealed. Below zero after a large group.
    credit_bytes: i64,
    /// Callers that wait for background work to be done.
    hurried: usize,
    is_stopping: bool,
}

impl PaceState {
    fn may_sealing_pause(&self) -> bool {
        self.hurried == 0 && !self.is_stopping && !self.is_throttled
    }
}

/// Ends all pauses while a caller waits for the work.
pub(crate) struct Hurry<'a>(&'a Pacer);

/// For whom rewriting makes way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum YieldTo {
    Nobody,
    Sealing,
}

impl Pacer {
    /// Ends all pauses until the guard is dropped.
    pub(crate) fn hurry(&self) -> Hurry<'_> {
        self.state().hurried += 1;
        self.hurry.notify_all();
        Hurry(self)
    }

    /// Ends all pauses and waits for good.
    pub(crate) fn stop(&self) {
        self.state().is_stopping = true;
        self.hurry.notify_all();
        self.credited.notify_all();
    }

    /// Whether background work has to end: the log is being closed, and no one waits for the work.
    pub(crate) fn is_interrupted(&self) -> bool {
        let state = self.state();
        state.is_stopping && state.hurried == 0
    }

    /// Whether pauses are allowed: no one waits for the work to be done.
    pub(crate) fn may_pause(&self) -> bool {
        self.state().hurried == 0
    }

    /// Pauses after a piece of sealing, unless that has to be fast. False if it has.
    pub(crate) fn pause_sealing(&self, bytes: u64, bytes_per_second: u64) -> bool {
        let pause = pause_for(bytes, bytes_per_second);
        self.pause(pause, PaceState::may_sealing_pause)
    }

    /// Pauses after a piece of rewriting.
    pub(crate) fn pause_rewriting(&self, bytes: u64, bytes_per_second: u64, yield_to: YieldTo) {
        let times = match yield_to {
            _ if self.is_throttled() => YIELD_TO_THROTTLED,
            YieldTo::Sealing => YIELD_TO_SEALING,
            YieldTo::Nobody => 1,
        };
        let pause = pause_for(bytes, bytes_per_second) * times;
        self.pause(pause, |state| state.hurried == 0 && !state.is_stopping);
    }

    /// Leaves the processor to others after a stretch of sealing, unless that has to be fast.
    pub(crate) fn rest(&self) {
        self.pause(REST, PaceState::may_sealing_pause);
    }

    /// Leaves a lock to those who wait for it, between two holds of it by background work.
    pub(crate) fn hand_over_lock(&self) {
        self.pause(HANDOVER, |state| state.hurried == 0 && !state.is_stopping);
    }

    /// All bytes that publishers have written since the log was opened.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }

    /// Takes note of what publishers wrote.
    pub(crate) fn note_written(&self, bytes: u64) {
        self.written_bytes.fetch_add(bytes, Ordering::Relaxed);
        if self.is_throttled() {
            self.state().credit_bytes -= bytes as i64;
        }
    }

    /// Takes note of what was sealed.
    pub(crate) fn note_sealed(&self, bytes: u64) {
        if self.is_throttled() {
            self.state().credit_bytes += bytes as i64;
            self.credited.notify_all();
        }
    }

    /// Throttles publishers to the speed of sealing, or does not any more.
    pub(crate) fn throttle(&self, is_throttled: bool) {
        let mut state = self.state();
        if state.is_throttled != is_throttled {
            state.is_throttled = is_throttled;
            state.credit_bytes = THROTTLE_BURST_BYTES;
            self.is_throttled.store(is_throttled, Ordering::SeqCst);
        }
        drop(state);
        if is_throttled {
            self.hurry.notify_all()
        } else {
            self.credited.notify_all()
        }
    }

    pub(crate) fn is_throttled(&self) -> bool {
        self.is_throttled.load(Ordering::SeqCst)
    }

    /// Waits a moment for a piece to be sealed. True if it need not be waited any more. The caller holds no lock.
    pub(crate) fn wait_for_credit(&self) -> bool {
        let waits = |state: &mut PaceState| {
            state.is_throttled && state.credit_bytes <= 0 && !state.is_stopping
        };
        let waited = self
            .credited
            .wait_timeout_while(self.state(), CREDIT_WAIT, waits);
        let (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        drop(state);
        !timeout.timed_out()
    }

    fn pause(&self, pause: Duration, may_pause: impl Fn(&PaceState) -> bool) -> bool {
        let state = self.state();
        if pause.is_zero() || !may_pause(&state) {
            return false;
        }
        let waited = self
            .hurry
            .wait_timeout_while(state, pause, |state| may_pause(state));
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        true
    }

    fn state(&self) -> MutexGuard<'_, PaceState> {
        self.state.guard()
    }
}

impl Drop for Hurry<'_> {
    fn drop(&mut self) {
        self.0.state().hurried -= 1;
    }
}

/// How long so many bytes are to take; no time where the rate is not limited.
fn pause_for(bytes: u64, bytes_per_second: u64) -> Duration {
    match bytes_per_second {
        0 => Duration::ZERO,
        rate => Duration::from_micros(bytes.saturating_mul(1_000_000) / rate),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So slow that a pause which no one ends is noticed.
    const SLOWLY: u64 = 1;

    #[test]
    fn credit_is_given_byte_for_byte() {
        let pacer = Pacer::default();
        pacer.note_written(1 << 30);
        assert!(pacer.wait_for_credit(), "nothing is throttled");
        pacer.throttle(true);
        pacer.note_written(THROTTLE_BURST_BYTES as u64 + 1000);
        assert!(!pacer.wait_for_credit());
        pacer.note_sealed(1000);
        assert!(!pacer.wait_for_credit());
        pacer.note_sealed(1);
        assert!(pacer.wait_for_credit());
        pacer.note_written(1);
        assert!(!pacer.wait_for_credit());
        pacer.throttle(false);
        assert!(pacer.wait_for_credit());
    }

    #[test]
    fn whoever_waits_stops_or_is_throttled_ends_pauses() {
        let pacer = Pacer::default();
        std::thread::scope(|scope| {
            scope.spawn(|| pacer.pause_rewriting(1 << 30, SLOWLY, YieldTo::Nobody));
            let hurry = pacer.hurry();
            assert!(!pacer.pause_sealing(1 << 30, SLOWLY));
            drop(hurry);
            // One that had not begun before is ended here.
            pacer.stop();
        });
        let pacer = Pacer::default();
        pacer.throttle(true);
        assert!(!pacer.pause_sealing(1 << 30, SLOWLY));
        assert!(!pacer.pause_sealing(1 << 30, 0));
    }

    #[test]
    fn work_that_somebody_waits_for_is_not_interrupted() {
        let pacer = Pacer::default();
        assert!(!pacer.is_interrupted());
        let hurry = pacer.hurry();
        pacer.stop();
        assert!(!pacer.is_interrupted());
        drop(hurry);
        assert!(pacer.is_interrupted());
    }
}
