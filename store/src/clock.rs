//! Where the time comes from. The clock is passed in, so that a test or a simulation owns it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A source of epoch milliseconds. It may go back; callers that need order enforce it.
pub trait Clock: Send + Sync + 'static {
    /// Epoch milliseconds now.
    fn now_ms(&self) -> u64;

    /// Milliseconds since some moment, which never go back and do not step with the wall clock: what deadlines are
    /// measured with. A clock that does not step may use its wall time.
    fn monotonic_ms(&self) -> u64 {
        self.now_ms()
    }
}

/// The machine's clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(
        clippy::disallowed_methods,
        reason = "the one place that reads the machine's clock"
    )]
    fn now_ms(&self) -> u64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_millis() as u64)
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "the one place that reads the machine's clock"
    )]
    fn monotonic_ms(&self) -> u64 {
        static FIRST: OnceLock<Instant> = OnceLock::new();
        FIRST.get_or_init(Instant::now).elapsed().as_millis() as u64
    }
}

/// A clock that moves only when it is set. Its monotonic time moves with it, but never back.
#[derive(Debug, Default)]
pub struct ManualClock {
    wall_ms: AtomicU64,
    monotonic_ms: AtomicU64,
}

impl ManualClock {
    /// A clock that is at `now_ms`.
    pub fn at(now_ms: u64) -> Self {
        Self {
            wall_ms: AtomicU64::new(now_ms),
            monotonic_ms: AtomicU64::new(now_ms),
        }
    }

    /// Moves the clock, also backwards.
    pub fn set(&self, now_ms: u64) {
        let before_ms = self.wall_ms.swap(now_ms, Ordering::SeqCst);
        let forward_ms = now_ms.saturating_sub(before_ms);
        self.monotonic_ms.fetch_add(forward_ms, Ordering::SeqCst);
    }

    /// Sets the wall clock while no time passes, as an administrator or a time server does.
    pub fn step(&self, by_ms: i64) {
        let stepped = |wall_ms: u64| Some(wall_ms.saturating_add_signed(by_ms));
        let _ = self
            .wall_ms
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, stepped);
    }

    /// Moves the clock forward.
    pub fn advance(&self, by_ms: u64) {
        self.wall_ms.fetch_add(by_ms, Ordering::SeqCst);
        self.monotonic_ms.fetch_add(by_ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        self.wall_ms.load(Ordering::SeqCst)
    }

    fn monotonic_ms(&self) -> u64 {
        self.monotonic_ms.load(Ordering::SeqCst)
    }
}
