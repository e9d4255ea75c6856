//! The task of a node: sends what waits, follows the shared log, applies what comes, and finds out when the log is away and
//! when it is back.
//!
//! Whatever becomes of an append, its message counts at most once, so one whose answer was lost is sent again until it is
//! seen in the log. Callers do not wait for that longer than [`Options::patience`](crate::Options::patience).

mod rebuild;
mod sending;

use crate::applier::{Applied, Applier, ApplyError};
use crate::copy::LocalCopy;
use crate::flight::Flight;
use crate::queue::Queue;
use crate::shared_log::{Bounds, Entry, FollowError, Follower, SharedLog, Unavailable};
use crate::snapshot::load::LoadError;
use crate::state::{Options, SharedState};
use crate::upkeep::{Upkeep, answer_of as of};
use crate::window::Window;
use prombus_store::{Answer, Clock, CommitError, Receipt, Store};
use rebuild::loaded;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

/// How often it looks whether something is due.
const TICK: Duration = Duration::from_millis(50);
/// After so long without a sign of the log it is asked where it ends.
const SILENCE: Duration = Duration::from_secs(1);
/// The same while it is away.
const SILENCE_WHILE_AWAY: Duration = Duration::from_millis(200);
/// The log has to say so many times in a row that it ends before what was applied: whoever answers after an election may
/// not know yet what it will find.
const MAX_BEHIND: u32 = 5;
/// A copy is made anew so often while the node runs. One that differs again and again is not mended by that.
const MAX_REBUILDS: u32 = 3;

/// The node's task.
pub(crate) struct Runner {
    log: Arc<dyn SharedLog>,
    applier: Applier,
    store: Arc<dyn Store>,
    /// Gone when the node cannot go on.
    follower: Option<Follower>,
    queue: Arc<Queue>,
    state: Arc<SharedState>,
    clock: Arc<dyn Clock>,
    options: Options,
    boot: u64,
    window: Window,
    probe: Option<Answer<Bounds, Unavailable>>,
    /// When the log was last heard of.
    heard_at: Instant,
    probed_at: Instant,
    behind: u32,
    is_outvoted: bool,
    copy: Arc<dyn LocalCopy>,
    upkeep: Upkeep,
    /// The copy is being made anew.
    loading: Option<Loading>,
    rebuilds: u32,
    /// The newest durable snapshot that was seen.
    durable: u64,
}

/// A snapshot that is being loaded.
struct Loading(JoinHandle<Result<u64, LoadError>>);

impl Drop for Loading {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Runner {
    pub(crate) fn new(
        log: Arc<dyn SharedLog>,
        applier: Applier,
        copy: Arc<dyn LocalCopy>,
        clock: Arc<dyn Clock>,
        (queue, state): (Arc<Queue>, Arc<SharedState>),
        options: Options,
    ) -> Self {
        let now = Instant::now();
        let follower = log.follow(applier.follow_after());
        let window = Window::new(log.description().max_in_flight);
        Self {
            upkeep: Upkeep::new(log.clone(), copy.clone(), options.clone()),
            log,
            applier,
            store: copy.store().clone(),
            copy,
            follower: Some(follower),
            queue,
            state,
            clock,
            boot: options.boot,
            options,
            window,
            probe: None,
            heard_at: now,
            probed_at: now,
            behind: 0,
            is_outvoted: false,
            loading: None,
            rebuilds: 0,
            durable: 0,
        }
    }

    /// Runs until the queue is closed and what was in it is done.
    pub(crate) async fn run(mut self) {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            if self.can_begin() {
                // Whoever was woken by the last commit has more to commit, and is to come with the next.
                yield_now().await;
                self.begin();
            }
            if self.is_done() {
                return;
            }
            let has_follower = self.follower.is_some();
            tokio::select! {
                // What is due comes first: on a busy log there is always another message.
                biased;
                _ = ticks.tick() => self.tick(),
                done = self.upkeep.next() => self.kept_up(done),
                entry = next_of(&mut self.follower), if has_follower => self.follow(entry).await,
                (at, answer) = self.window.answer() => self.appended(at, answer).await,
                bounds = of(&mut self.probe) => self.probed(bounds),
                loaded = loaded(&mut self.loading) => self.go_on(loaded).await,
                () = self.queue.filled() => {}
            }
        }
    }

    fn is_done(&self) -> bool {
        let is_awaited = self.window.iter().any(Flight::is_awaited);
        self.queue.is_closed() && !is_awaited && self.queue.is_settled()
    }

    async fn follow(&mut self, entry: Option<Result<Entry, FollowError>>) {
        match entry {
            Some(Ok(entry)) => {
                self.heard_at = Instant::now();
                self.state.note_last(entry.position);
                self.apply(entry).await;
                self.apply_stored().await;
            }
            Some(Err(error @ FollowError::Trimmed { .. })) => self.rebuild(&error.to_string()),
            Some(Err(error)) => self.end(&error.to_string()),
            None => self.end("the shared log was closed"),
        }
    }

    /// Applies a message, and goes on with the first commit under way if it is that one's.
    async fn apply(&mut self, entry: Entry) {
        let is_own = entry.position > self.applier.progress().position
            && self
                .window
                .first()
                .is_some_and(|flight| flight.is_next(&entry.message));
        let own = match self.window.first_mut() {
            Some(flight) if is_own && flight.is_last() => Some(flight.take_batches()),
            _ => None,
        };
        match self.applier.apply(&entry, own).await {
            Ok(Applied::Old) => return,
            Ok(Applied::Part) if is_own => {
                if self.window.first_mut().is_some_and(Flight::advance) {
                    self.send(0);
                }
            }
            Ok(Applied::Whole(outcomes)) => {
                self.upkeep.has_changed = true;
                if is_own {
                    self.begin_snapshot(entry.position).await;
                    self.finish(outcomes);
                }
            }
            Ok(Applied::Part | Applied::Void) => {}
            Err(error @ (ApplyError::Newer { .. } | ApplyError::OutOfOrder { .. })) => {
                self.end(&error.to_string());
            }
            Err(ApplyError::Copy(error)) => self.end(&error.to_string()),
        }
        if let Some((boot, progress)) = self.applier.take_heard() {
            self.heard(boot, progress);
        }
        self.state.note_applied(&self.applier);
        self.renumber();
        self.judge_copy();
    }

    /// The first commit under way is applied: its callers hear what came of it.
    fn finish(&mut self, outcomes: Vec<Result<Receipt, CommitError>>) {
        let Some(mut flight) = self.window.pop() else {
            return;
        };
        let (replies, bytes) = flight.take_outcomes(outcomes);
        self.queue.finish(replies, bytes);
        // It was stored, though its answer may be lost.
        self.state.set_rejection(None);
        if self.state.is_away() && !self.is_outvoted {
            self.recovered();
        }
    }

    /// Makes the copy anew where other nodes have something else, and takes no commits meanwhile.
    fn judge_copy(&mut self) {
        let is_outvoted = self.applier.is_outvoted() && self.follower.is_some();
        if is_outvoted && !self.is_outvoted {
            self.is_outvoted = true;
            let position = self.applier.progress().position;
            let differs = format!(
                "this node's copy differs from those of other nodes at position {position} of the shared log"
            );
            if self.copy.can_snapshot() && self.rebuilds < MAX_REBUILDS {
                self.rebuild(&differs)
            } else {
                self.fail(&format!("{differs}; restart the node with an empty copy"))
            }
        } else if self.is_outvoted && !is_outvoted {
            self.recovered();
            self.is_outvoted = false;
        }
    }

    fn tick(&mut self) {
        if self.follower.is_none() {
            return;
        }
        let now = Instant::now();
        let url = &self.log.description().url;
        if let Some(first) = self.window.first() {
            let is_late = now - first.began >= self.options.patience;
            let is_due = first.resend_at.is_some_and(|at| now >= at) && first.append.is_none();
            if is_late && first.is_awaited() {
                let waited_ms = (now - first.began).as_millis();
                self.fail(&format!(
                    "{url} has not acknowledged a commit for {waited_ms} ms"
                ));
            }
            if is_due {
                self.send(0);
            }
        }
        let is_away = self.state.is_away();
        let silent = now - self.heard_at;
        if silent >= self.options.patience + SILENCE && !is_away {
            let url = &self.log.description().url;
            self.fail(&format!(
                "{url} has not answered for {} ms",
                silent.as_millis()
            ));
        }
        let pause = if is_away { SILENCE_WHILE_AWAY } else { SILENCE };
        if self.probe.is_none()
            && (now - self.probed_at).min(silent_unless(is_away, silent)) >= pause
        {
            self.start_probe(now);
        }
        if !self.state.is_away() {
            self.keep_up();
        }
    }

    fn start_probe(&mut self, now: Instant) {
        self.probed_at = now;
        let bounds = self.log.bounds();
        let patience = self.options.patience;
        self.probe = Some(Box::pin(async move {
            let unanswered = |_| Unavailable {
                cause: "no answer".into(),
            };
            timeout(patience, bounds).await.map_err(unanswered)?
        }));
    }

    /// The log said where it begins and ends, or did not.
    fn probed(&mut self, bounds: Result<Bounds, Unavailable>) {
        let Ok(bounds) = bounds else {
            return;
        };
        self.heard_at = Instant::now();
        self.state.note_bounds(bounds);
        let applied = self.applier.progress().position;
        self.behind = if bounds.last < applied {
            self.behind + 1
        } else {
            0
        };
        if self.behind >= MAX_BEHIND {
            let last = bounds.last;
            return self.end(&FollowError::Behind { applied, last }.to_string());
        }
        let is_caught_up = applied >= bounds.last && self.window.is_empty();
        if is_caught_up && self.state.is_away() && !self.is_outvoted {
            self.recovered();
        }
    }

    /// Refuses commits until the log is back. What was sent may still happen.
    fn fail(&mut self, cause: &str) {
        tracing::error!(%cause, "commits are refused");
        let cause: Arc<str> = cause.into();
        self.queue.set_failure(Some(cause.clone()));
        self.state.set_away(true);
        let error = CommitError::Unknown {
            cause: cause.clone(),
        };
        for flight in self.window.iter_mut() {
            let (replies, bytes) = flight.take_failed(&error);
            self.queue.finish(replies, bytes);
        }
        self.queue.fail_waiting(&CommitError::Unavailable { cause });
    }

    fn recovered(&mut self) {
        if self.follower.is_some() {
            tracing::info!(url = self.log.description().url, "commits are taken again");
            self.queue.set_failure(None);
            self.state.set_away(false);
        }
    }

    /// The node cannot go on; what it has can be read.
    fn end(&mut self, cause: &str) {
        self.stop(cause);
        self.state.set_ended();
    }

    /// Follows the log no more and takes no commits.
    fn stop(&mut self, cause: &str) {
        self.follower = None;
        self.probe = None;
        self.fail(cause);
        self.window.clear();
        // What was under way may still be stored. It must not be taken for what this node sends from now on.
        self.draw_boot();
    }

    fn draw_boot(&mut self) {
        self.boot = self.boot.wrapping_add(1) ^ self.clock.now_ms().rotate_left(32);
        self.upkeep.set_boot(self.boot);
    }
}

/// While the log is away it is asked again and again, whatever it says.
fn silent_unless(is_away: bool, silent: Duration) -> Duration {
    if is_away { Duration::MAX } else { silent }
}

async fn next_of(follower: &mut Option<Follower>) -> Option<Result<Entry, FollowError>> {
    follower.as_mut()?.next().await
}
