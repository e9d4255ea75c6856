//! The simulation's clocks: virtual time that only moves forward, and a wall clock beside it that steps.

use prombus_store::Clock;
use prombus_store::LockExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::time::Instant;

/// Epoch milliseconds when a run begins.
const START_MS: u64 = 1_700_000_000_000;

/// Follows tokio's paused time through all lives of a run.
#[derive(Debug, Default)]
pub(crate) struct SimClock {
    life: Mutex<Life>,
    /// How far the wall clock has been stepped.
    offset_ms: AtomicI64,
}

#[derive(Debug, Default, Clone, Copy)]
struct Life {
    /// Virtual milliseconds of all lives before.
    before_ms: u64,
    /// When this one began; `None` between two lives.
    began: Option<Instant>,
}

impl SimClock {
    /// A new runtime begins at the virtual time at which the last one ended.
    pub(crate) fn begin_life(&self) {
        self.life().began = Some(Instant::now());
    }

    pub(crate) fn end_life(&self) {
        let elapsed_ms = self.elapsed_ms();
        *self.life() = Life {
            before_ms: elapsed_ms,
            began: None,
        };
    }

    /// Virtual milliseconds since the run began; never goes back.
    pub(crate) fn elapsed_ms(&self) -> u64 {
        let life = *self.life();
        let this_life = life.began.map_or(0, |began| began.elapsed().as_millis());
        life.before_ms + this_life as u64
    }

    /// Steps the wall clock, also backwards.
    pub(crate) fn step(&self, by_ms: i64) {
        self.offset_ms.fetch_add(by_ms, Ordering::SeqCst);
    }

    fn life(&self) -> std::sync::MutexGuard<'_, Life> {
        self.life.guard()
    }
}

impl Clock for SimClock {
    fn now_ms(&self) -> u64 {
        let wall_ms = START_MS + self.elapsed_ms();
        wall_ms.saturating_add_signed(self.offset_ms.load(Ordering::SeqCst))
    }

    fn monotonic_ms(&self) -> u64 {
        self.elapsed_ms()
    }
}
