//! The task of one projector: finds its place, folds page after page, and commits each page's results with the
//! position. After an error it retries; where another runner has taken over it becomes a standby.

mod commit;
mod resume;

use super::emitter::Emitter;
use super::record::{ProjectorRecord, record_key};
use super::running::SharedStatus;
use super::{Projector, ProjectorStatus};
use crate::core::Core;
use crate::options::Backoff;
use prombus_store::{Page, ReadError, ReadFrom, ReadLimit, StoredEvent, TailWatch};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How much is folded before it is committed: so many events, and about so many bytes.
const PAGE: ReadLimit = ReadLimit {
    events: 512,
    bytes: 1 << 20,
};
/// A runner that has lost its place to another looks this often whether the other one has gone quiet.
const STANDBY_POLL_MS: u64 = 10_000;
/// How long a failed read or commit waits for its next try.
const RETRY: Backoff = Backoff {
    first_ms: 100,
    longest_ms: 30_000,
};

/// A projector with all that its task needs.
pub(super) struct Runner<P: Projector> {
    core: Arc<Core>,
    projector: P,
    input: Arc<str>,
    output: Arc<str>,
    /// Of the position's record.
    key: Arc<str>,
    shared_status: Arc<SharedStatus>,
}

/// A state and the place up to which it is folded.
struct Checkpoint<S> {
    state: S,
    record: ProjectorRecord,
    /// The stored record's version; `None` where nothing is stored.
    version: Option<u64>,
    /// When the time alone is looked at next; `None` where it never is.
    next_tick: Option<Instant>,
    /// Whether anything was committed from this place.
    moved: bool,
}

/// Why a place is left.
enum Exit {
    /// It does not hold any more: the input or the output is another one, or it is not known what was committed.
    Lost,
    /// Another runner has gone on from it.
    TakenOver,
    /// The store could not be read.
    Failed(Arc<str>),
    /// The bus is closed.
    Closed,
}

/// What became of reading on.
enum ReadProgress {
    /// Everything that is there is folded.
    CaughtUp,
    /// There may be more.
    More,
}

impl<P: Projector> Runner<P> {
    pub(super) fn new(core: Arc<Core>, projector: P) -> Self {
        Self {
            input: projector.input().into(),
            output: projector.output().into(),
            key: record_key(projector.name()),
            shared_status: Arc::default(),
            core,
            projector,
        }
    }

    /// What it reports to its owner.
    pub(super) fn shared_status(&self) -> Arc<SharedStatus> {
        self.shared_status.clone()
    }

    /// Works until the bus is closed. It may be dropped at any moment: everything is in the last commit.
    pub(super) async fn run(self) {
        let mut closing = self.core.closing();
        tokio::select! {
            biased;
            () = closing.closed() => {}
            () = self.work() => {}
        }
    }

    async fn work(&self) {
        let mut failures = 0;
        loop {
            let left = match self.resume().await {
                Ok(mut checkpoint) => {
                    self.share_status(&checkpoint.record);
                    let left = self.run_from(&mut checkpoint).await;
                    if checkpoint.moved {
                        failures = 0;
                    }
                    left
                }
                Err(left) => left,
            };
            match left {
                Exit::Closed => return,
                Exit::TakenOver => self.wait_on_standby().await,
                Exit::Lost => {
                    failures += 1;
                    // The first time at once; over and over it would be a hot loop.
                    if failures > 1 {
                        self.back_off(failures).await;
                    }
                }
                Exit::Failed(cause) => {
                    failures += 1;
                    self.shared_status
                        .change(|status| status.last_error = Some(cause));
                    self.back_off(failures).await;
                }
            }
        }
    }

    /// Folds and ticks from a place on, until it does not hold any more.
    async fn run_from(&self, checkpoint: &mut Checkpoint<P::State>) -> Exit {
        // Watched before it is read, so that no move is missed.
        let mut tail = self.core.store.watch(&self.input);
        loop {
            let left = match self.fold_next_page(checkpoint).await {
                Ok(ReadProgress::More) => {
                    // Some stores answer at once, and others want their turn while much is folded.
                    tokio::task::yield_now().await;
                    continue;
                }
                Ok(ReadProgress::CaughtUp) => self.tick_if_due(checkpoint).await.err(),
                Err(left) => Some(left),
            };
            if let Some(left) = left {
                return left;
            }
            if !wait(&mut tail, checkpoint.next_tick).await {
                return Exit::Closed;
            }
        }
    }

    /// Folds the next page and commits what follows from it.
    async fn fold_next_page(
        &self,
        checkpoint: &mut Checkpoint<P::State>,
    ) -> Result<ReadProgress, Exit> {
        let record = &checkpoint.record;
        // With the event of the position itself, to see that it is still the same topic.
        let from_seq = match record.last_id {
            Some(_) => record.position.max(1),
            None => record.position + 1,
        };
        let page = match self
            .core
            .store
            .read(&self.input, ReadFrom::Seq(from_seq), PAGE)
            .await
        {
            Ok(page) => page,
            // Nothing was published yet, or the topic is gone and may come again.
            Err(ReadError::UnknownTopic(_)) => return Ok(ReadProgress::CaughtUp),
            Err(ReadError::Failed { cause }) => return Err(Exit::Failed(cause)),
        };
        if is_another_topic(record, &page) {
            return Err(Exit::Lost);
        }
        let position = record.position;
        let new = page.events.iter().filter(|event| event.seq() > position);
        let mut record = record.clone();
        if position > 0 {
            record.skipped += page.first_seq.saturating_sub(position + 1);
        }
        let last = page.events.last().filter(|event| event.seq() > position);
        record.position = last.map_or(page.next_seq.max(1) - 1, StoredEvent::seq);
        record.position = record.position.max(position);
        let read = if page.next_seq > page.tail_seq {
            ReadProgress::CaughtUp
        } else {
            ReadProgress::More
        };
        let Some(last) = last else {
            // A stretch of which nothing is kept, or an event at the position that fills a page. What is noted here is
            // written with what comes behind it.
            if record.position > position || matches!(read, ReadProgress::More) {
                record.last_id = None;
                checkpoint.record = record;
            }
            return Ok(read);
        };
        record.last_id = Some(last.id().into_owned());
        let now_ms = self.core.now_ms();
        let mut emit = self.emitter().await;
        for event in new {
            emit.begin(event);
            self.projector
                .fold(&mut checkpoint.state, event, now_ms, &mut emit);
        }
        self.commit(checkpoint, record, emit).await?;
        Ok(read)
    }

    /// Looks at the time alone where that is due, and commits what follows from it.
    async fn tick_if_due(&self, checkpoint: &mut Checkpoint<P::State>) -> Result<(), Exit> {
        let Some(interval_ms) = self.projector.tick_interval_ms() else {
            return Ok(());
        };
        if checkpoint.next_tick.is_some_and(|due| due > Instant::now()) {
            return Ok(());
        }
        let interval = Duration::from_millis(interval_ms.max(1));
        checkpoint.next_tick = Some(Instant::now() + interval);
        loop {
            let mut emit = self.emitter().await;
            let now_ms = self.core.now_ms();
            self.projector
                .tick(&mut checkpoint.state, now_ms, &mut emit);
            let is_full = emit.is_full();
            if emit.emitted > 0 || emit.rejected > 0 {
                let record = checkpoint.record.clone();
                self.commit(checkpoint, record, emit).await?;
            }
            if !is_full {
                return Ok(());
            }
        }
    }

    /// Waits until the record has not changed for a while: then the active runner is gone, or has nothing to do.
    async fn wait_on_standby(&self) {
        self.shared_status.change(|status| status.is_standby = true);
        let mut version = None;
        loop {
            tokio::time::sleep(Duration::from_millis(STANDBY_POLL_MS)).await;
            let Ok(found) = self.core.store.get(&self.key).await else {
                continue;
            };
            let found = found.map(|record| record.version);
            if version == Some(found) {
                break;
            }
            version = Some(found);
        }
        self.shared_status
            .change(|status| status.is_standby = false);
    }

    async fn back_off(&self, failures: u32) {
        let backoff_ms = RETRY.delay_ms(0, failures);
        tokio::time::sleep(Duration::from_millis(backoff_ms)).await;
    }

    /// Waits where the schemas of the output cannot be told yet.
    async fn emitter(&self) -> Emitter {
        let mut failures = 0;
        loop {
            let named = self.core.topics.checked(&self.output);
            let traits = named.map(|named| named.traits).unwrap_or_default();
            let schemas = match traits.schemas {
                Some(generation) => self.core.schemas.of(&self.output, generation).map(Some),
                None => Ok(None),
            };
            match schemas {
                Ok(schemas) => {
                    let limits = self.core.options.limits;
                    return Emitter::new(&self.output, limits, schemas, traits.partitions);
                }
                Err(error) => {
                    failures += 1;
                    self.shared_status
                        .change(|status| status.last_error = Some(error.cause));
                    self.back_off(failures).await;
                }
            }
        }
    }

    /// Tells the owner what is committed.
    fn share_status(&self, record: &ProjectorRecord) {
        self.shared_status.change(|status| {
            *status = ProjectorStatus {
                position: record.position,
                emitted: record.emitted,
                rejected: record.rejected,
                skipped: record.skipped,
                last_rejection: status.last_rejection.take(),
                ..ProjectorStatus::default()
            };
        });
    }
}

/// Whether the page was read from a topic that is not the one that the record speaks of.
fn is_another_topic(record: &ProjectorRecord, page: &Page) -> bool {
    if page.tail_seq < record.position {
        return true;
    }
    let at_position = page.events.first();
    let at_position = at_position.filter(|event| event.seq() == record.position);
    match (at_position, &record.last_id) {
        (Some(event), Some(last_id)) => event.id() != *last_id,
        _ => false,
    }
}

/// Waits until the tail moves or a tick is due; `false` where the store is gone.
async fn wait(tail: &mut TailWatch, next_tick: Option<Instant>) -> bool {
    let Some(due) = next_tick else {
        return tail.moved().await;
    };
    tokio::select! {
        moved = tail.moved() => moved,
        () = tokio::time::sleep_until(due) => true,
    }
}
