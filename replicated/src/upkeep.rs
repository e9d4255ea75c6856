//! What a node does beside applying: it asks for maintenance, makes snapshots when the log has grown enough, and trims the
//! log below what a durable snapshot covers and every live node has applied.
//!
//! Who is live is told by hearing of it: a node whose messages have not come for [`Options::absent_after`] does not hold
//! trimming back, and starts from a snapshot when it is there again. No clocks are compared; a node that has not listened
//! for as long itself trims nothing.

use crate::copy::LocalCopy;
use crate::marks::Marks;
use crate::message::{Kind, Progress};
use crate::queue::Work;
use crate::shared_log::{SharedLog, Unavailable};
use crate::snapshot::make::Making;
use crate::state::Options;
use crate::trims::{self, Trim};
use prombus_log::image::Image;
use prombus_store::{Answer, StoreFailed, TopicInfo};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// How often it looks whether the log can be trimmed.
const TRIM_INTERVAL: Duration = Duration::from_secs(1);
/// How often the log's size is asked for.
const SIZE_INTERVAL: Duration = Duration::from_secs(10);
/// The pause before another snapshot is begun where the last one came to nothing.
const SNAPSHOT_PAUSE: Duration = Duration::from_secs(30);
/// A snapshot is made only when the messages since the last one are at least this part of it.
const SNAPSHOT_SHARE: u64 = 2;
/// How many other boots are remembered with what they have applied.
const MAX_HEARD: usize = 256;

/// The work of a node that nobody waits for.
pub(crate) struct Upkeep {
    log: Arc<dyn SharedLog>,
    copy: Arc<dyn LocalCopy>,
    options: Options,
    boot: u64,
    started: Instant,
    /// Whether there may be something to maintain.
    pub(crate) has_changed: bool,
    maintained_at: Instant,
    looked_at: Instant,
    sized_at: Option<Instant>,
    asked_at: Option<Instant>,
    /// What other boots have applied, and when they were heard.
    heard: HashMap<u64, (u64, Instant)>,
    due_trims: Option<Answer<Vec<Trim>, StoreFailed>>,
    size: Option<Answer<Option<u64>, Unavailable>>,
    trim: Option<Answer<(), Unavailable>>,
    making: Option<Made>,
}

/// A snapshot under way.
struct Made {
    position: u64,
    task: JoinHandle<Result<u64, Unavailable>>,
}

impl Drop for Made {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Something that was done.
pub(crate) enum Done {
    /// To be sent.
    Send(Work),
    /// How many bytes the log takes.
    Size(u64),
    /// The log begins elsewhere now.
    Trimmed,
    /// It came to nothing and is tried again.
    Nothing,
}

/// How far things are, as the node sees it.
pub(crate) struct Seen {
    pub(crate) marks: Marks,
    pub(crate) applied: u64,
    /// Where the log begins.
    pub(crate) first: u64,
    pub(crate) now_ms: u64,
}

impl Upkeep {
    pub(crate) fn new(log: Arc<dyn SharedLog>, copy: Arc<dyn LocalCopy>, options: Options) -> Self {
        let now = Instant::now();
        Self {
            log,
            copy,
            boot: options.boot,
            options,
            started: now,
            has_changed: true,
            maintained_at: now,
            looked_at: now,
            sized_at: None,
            asked_at: None,
            heard: HashMap::new(),
            due_trims: None,
            size: None,
            trim: None,
            making: None,
        }
    }

    /// Messages of this boot are this node's from now on.
    pub(crate) fn set_boot(&mut self, boot: u64) {
        self.boot = boot;
        self.heard.remove(&boot);
    }

    /// Takes in what a message says of its sender.
    pub(crate) fn hear(&mut self, boot: u64, progress: Progress) {
        if boot == self.boot {
            return;
        }
        if self.heard.len() >= MAX_HEARD && !self.heard.contains_key(&boot) {
            let oldest = self.heard.iter().min_by_key(|(_, (_, at))| *at);
            if let Some(oldest) = oldest.map(|(&boot, _)| boot) {
                self.heard.remove(&oldest);
            }
        }
        self.heard.insert(boot, (progress.position, Instant::now()));
    }

    /// Begins what is due. What comes of it is [`Self::next`]'s; what is returned is to be sent.
    pub(crate) fn tick(
        &mut self,
        seen: &Seen,
        topics: impl FnOnce() -> Vec<TopicInfo>,
    ) -> Option<Work> {
        let now = Instant::now();
        let is_due = now - self.maintained_at >= self.options.maintenance_interval;
        if is_due && self.has_changed {
            self.maintained_at = now;
            self.maintain(&topics(), seen.now_ms);
        }
        if self.sized_at.is_none_or(|at| now - at >= SIZE_INTERVAL) {
            self.sized_at = Some(now);
            self.size = Some(self.log.bytes());
        }
        if now - self.looked_at >= TRIM_INTERVAL && self.trim.is_none() {
            self.looked_at = now;
            let through = self.trimmable(seen, now);
            self.trim = through.map(|through| self.log.trim(through));
        }
        self.wants_snapshot(&seen.marks, now).then(|| {
            self.asked_at = Some(now);
            let begun = seen.marks.begun.to_le_bytes();
            Work::Mark(Kind::BeginSnapshot, begun.to_vec())
        })
    }

    /// The next thing that is done.
    pub(crate) async fn next(&mut self) -> Done {
        tokio::select! {
            due = answer_of(&mut self.due_trims) => match due {
                Ok(due) => Done::Send(Work::Mark(Kind::Maintenance, trims::encode(&due))),
                Err(_) => Done::Nothing,
            },
            size = answer_of(&mut self.size) => match size {
                Ok(Some(bytes)) => Done::Size(bytes),
                _ => Done::Nothing,
            },
            trimmed = answer_of(&mut self.trim) => match trimmed {
                Ok(()) => Done::Trimmed,
                Err(error) => {
                    tracing::warn!(%error, "the shared log was not trimmed");
                    Done::Nothing
                }
            },
            made = made(&mut self.making) => made,
        }
    }

    /// Makes a snapshot of the copy as it was at a position.
    pub(crate) fn make(&mut self, position: u64, image: Image) {
        let Some(snapshots) = self.log.snapshots() else {
            return;
        };
        let description = self.log.description();
        tracing::info!(position, bytes = image.bytes(), "a snapshot is made");
        let making = Making {
            snapshots,
            image,
            log_id: description.log_id,
            position,
            max_message_bytes: description.max_message_bytes,
        };
        let task = tokio::spawn(making.run());
        self.making = Some(Made { position, task });
    }

    /// A snapshot is durable, so older ones are not needed any more. Whoever made it removes them.
    pub(crate) fn made_durable(&self, marks: &Marks) {
        if marks.begun_by == self.boot
            && let Some(snapshots) = self.log.snapshots()
        {
            tokio::spawn(snapshots.remove_below(marks.durable));
        }
    }

    fn maintain(&mut self, topics: &[TopicInfo], now_ms: u64) {
        let needs_it = topics.iter().any(|topic| {
            let options = &topic.options;
            let limits = [options.retention_ms, options.max_bytes, options.max_events];
            options.compaction || limits.iter().any(Option::is_some)
        });
        // Where events grow old there is something to do later, even if nothing more comes.
        self.has_changed = topics
            .iter()
            .any(|topic| topic.options.retention_ms.is_some() && topic.events > 0);
        if needs_it {
            self.due_trims = Some(self.copy.due_trims(now_ms));
        }
    }

    fn is_live(&self, boot: u64, now: Instant) -> bool {
        let heard = self.heard.get(&boot);
        heard.is_some_and(|(_, at)| now - *at < self.options.absent_after)
    }

    fn wants_snapshot(&self, marks: &Marks, now: Instant) -> bool {
        let has_paused = self
            .asked_at
            .is_none_or(|asked| now - asked >= SNAPSHOT_PAUSE);
        let is_possible = self.copy.can_snapshot() && self.log.snapshots().is_some();
        if !has_paused || !is_possible || self.making.is_some() {
            return false;
        }
        let is_under_way = marks.begun > marks.durable;
        if is_under_way {
            // Whoever made it is gone, or it was this node and it failed.
            let has_listened = now - self.started >= self.options.absent_after;
            has_listened && !self.is_live(marks.begun_by, now)
        } else {
            // All of the copy is written, so what is written for snapshots stays a multiple of what is published.
            let enough = marks.durable_bytes / SNAPSHOT_SHARE;
            marks.bytes >= self.options.snapshot_bytes.max(enough)
        }
    }

    /// Up to where the log can be trimmed, if it can.
    fn trimmable(&self, seen: &Seen, now: Instant) -> Option<u64> {
        if now - self.started < self.options.absent_after || !self.copy.can_snapshot() {
            return None;
        }
        let live = self
            .heard
            .values()
            .filter(|(_, at)| now - *at < self.options.absent_after);
        let applied = live.map(|(applied, _)| *applied).min();
        let applied = applied.unwrap_or(u64::MAX).min(seen.applied);
        let through = seen.marks.durable.min(applied);
        (through >= seen.first && through > 0).then_some(through)
    }
}

async fn made(making: &mut Option<Made>) -> Done {
    let Some(under_way) = making else {
        return std::future::pending().await;
    };
    let made = (&mut under_way.task).await;
    let position = under_way.position;
    *making = None;
    match made {
        Ok(Ok(bytes)) => {
            tracing::info!(position, bytes, "a snapshot is stored");
            Done::Send(Work::Mark(
                Kind::Snapshot,
                Marks::durable_body(position, bytes),
            ))
        }
        Ok(Err(error)) => {
            tracing::warn!(position, %error, "a snapshot was not stored");
            Done::Nothing
        }
        Err(error) => {
            tracing::warn!(position, %error, "a snapshot was not stored");
            Done::Nothing
        }
    }
}

/// The answer once it is there; none comes where nothing was asked.
pub(crate) async fn answer_of<T, E>(answer: &mut Option<Answer<T, E>>) -> Result<T, E> {
    let Some(waiting) = answer else {
        return std::future::pending().await;
    };
    let reply = waiting.await;
    *answer = None;
    reply
}
