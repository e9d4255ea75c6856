//! Upkeep as part of the node's task, and making the copy anew while the node runs.

use super::{Loading, MAX_REBUILDS, Runner};
use crate::applier::Applier;
use crate::message::Progress;
use crate::shared_log::FollowError;
use crate::snapshot::load::{self, LoadError};
use crate::upkeep::{Done, Seen};
use tokio::time::{Instant, sleep};

/// The pause before a snapshot is looked for again where the log did not answer.
const PAUSE: std::time::Duration = std::time::Duration::from_secs(1);

impl Runner {
    /// Begins what upkeep finds to be due.
    pub(super) fn keep_up(&mut self) {
        let seen = Seen {
            marks: self.applier.marks(),
            applied: self.applier.progress().position,
            first: self.state.replication().first,
            now_ms: self.clock.now_ms(),
        };
        let store = &self.store;
        if let Some(work) = self.upkeep.tick(&seen, || store.topics()) {
            drop(self.queue.push(work));
        }
    }

    /// Something of the upkeep is done.
    pub(super) fn kept_up(&mut self, done: Done) {
        match done {
            Done::Send(work) => drop(self.queue.push(work)),
            Done::Size(bytes) => self.state.note_log_bytes(bytes),
            Done::Trimmed => self.start_probe(Instant::now()),
            Done::Nothing => {}
        }
    }

    pub(super) fn heard(&mut self, boot: u64, progress: Progress) {
        self.upkeep.hear(boot, progress);
        let marks = self.applier.marks();
        if marks.durable > self.durable {
            self.durable = marks.durable;
            self.upkeep.made_durable(&marks);
        }
    }

    /// Makes a snapshot where a message of this node began one, which is the one at `position`. Nothing is applied before
    /// the copy's files are open.
    pub(super) async fn begin_snapshot(&mut self, position: u64) {
        if self.applier.marks().begun != position {
            return;
        }
        match self.copy.image().await {
            Ok(Some(image)) => self.upkeep.make(position, image),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "a snapshot cannot be made"),
        }
    }

    /// Makes the copy anew from the newest snapshot and the log behind it, or from the whole log. Meanwhile no commits are
    /// taken, and reading goes on.
    pub(super) fn rebuild(&mut self, cause: &str) {
        if self.rebuilds >= MAX_REBUILDS || !self.copy.can_snapshot() {
            return self.end(cause);
        }
        self.rebuilds += 1;
        self.stop(&format!("{cause}; the copy is made anew"));
        let (log, copy) = (self.log.clone(), self.copy.clone());
        let applied = self.applier.progress().position;
        self.loading = Some(Loading(tokio::spawn(async move {
            loop {
                let loaded = match log.bounds().await {
                    Ok(bounds) => match load::load(log.clone(), copy.clone(), bounds).await {
                        Err(LoadError::None) if bounds.first == 1 => {
                            load::load_nothing(copy.clone()).await
                        }
                        Err(LoadError::None) if applied + 1 >= bounds.first => Ok(applied),
                        loaded => loaded,
                    },
                    Err(error) => Err(error.into()),
                };
                match loaded {
                    Err(LoadError::Unavailable(_)) => sleep(PAUSE).await,
                    loaded => return loaded,
                }
            }
        })));
    }

    /// The copy is made anew, or cannot be.
    pub(super) async fn go_on(&mut self, loaded: Result<u64, LoadError>) {
        let applied = self.applier.progress().position;
        let position = match loaded {
            Ok(position) => position,
            Err(error) => {
                let wanted = applied + 1;
                let first = self.state.replication().first;
                let trimmed = FollowError::Trimmed { wanted, first };
                return self.end(&format!("{trimmed}, and {error}"));
            }
        };
        match Applier::open(self.copy.clone()).await {
            Ok(applier) => self.applier = applier,
            Err(error) => return self.end(&error.to_string()),
        }
        tracing::info!(
            position,
            "the copy was made anew and follows the shared log"
        );
        self.is_outvoted = false;
        self.heard_at = Instant::now();
        self.state.note_applied(&self.applier);
        self.follower = Some(self.log.follow(self.applier.follow_after()));
    }
}

/// What came of loading, once it is known.
pub(super) async fn loaded(loading: &mut Option<Loading>) -> Result<u64, LoadError> {
    let Some(under_way) = loading else {
        return std::future::pending().await;
    };
    let loaded = (&mut under_way.0).await;
    *loading = None;
    loaded.unwrap_or_else(|error| {
        Err(LoadError::Copy {
            snapshot: 0,
            cause: error.to_string().into(),
        })
    })
}
