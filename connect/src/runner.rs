//! Runs a projection: reads ahead, hands events over, checks that the topic is still the same, and waits at the tail.

use crate::error::{SourceError, TopicReplaced};
use crate::event::Event;
use crate::position::Position;
use crate::projection::{Applied, Projection, ProjectionError, TaskLost};
use crate::source::{Source, SourcePage};
use prombus::ReadLimit;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// How long a follower leaves a database alone that is locked or away.
const TRANSIENT_WAIT: Duration = Duration::from_secs(1);

/// A projection with the source of its events.
#[derive(Debug)]
pub struct Runner<P, S> {
    /// Held by whatever writes while a transaction is under way.
    projection: Arc<Mutex<P>>,
    source: S,
    /// A page that was read while the one before it was written, and the position it was read from.
    ahead: Option<(u64, SourcePage)>,
    total: Applied,
}

/// What a step came to.
enum Step {
    /// Events were taken.
    Took,
    /// There was nothing to take; this is the topic's tail.
    AtTail(u64),
}

/// Why a step failed.
enum StepError<E> {
    Source(SourceError),
    Projection(E),
}

impl<P: Projection, S: Source> Runner<P, S> {
    /// Nothing is read yet.
    pub fn new(projection: P, source: S) -> Self {
        Self {
            projection: Arc::new(Mutex::new(projection)),
            source,
            ahead: None,
            total: Applied::default(),
        }
    }

    /// What was taken since this runner was made.
    pub fn total(&self) -> Applied {
        self.total
    }

    /// The last event that is in the database.
    pub async fn position(&self) -> Position {
        self.projection.lock().await.position().clone()
    }

    /// The projection again; `None` while a transaction is still under way.
    pub fn into_projection(self) -> Option<P> {
        Arc::into_inner(self.projection).map(Mutex::into_inner)
    }

    /// Takes everything up to the tail as it is then. Letting go of the future in the middle is fine: a transaction
    /// that is under way ends by itself, and calling this or [`Self::follow`] again goes on behind it.
    pub async fn catch_up(&mut self) -> Result<Applied, P::Error> {
        let before = self.total;
        while let Step::Took = self.step().await.map_err(StepError::into_error)? {}
        let mut since = self.total;
        since.events -= before.events;
        since.upserts -= before.upserts;
        since.deletes -= before.deletes;
        since.outdated -= before.outdated;
        since.keyless -= before.keyless;
        Ok(since)
    }

    /// Takes everything, and what comes later, until it fails; let go of the future to stop. Where the topic does not
    /// exist and nothing of it was taken before, it waits for it to be made.
    pub async fn follow(&mut self) -> Result<std::convert::Infallible, P::Error> {
        loop {
            let tail_seq = match self.step().await {
                Ok(Step::Took) => continue,
                Ok(Step::AtTail(tail_seq)) => tail_seq,
                Err(StepError::Source(SourceError::UnknownTopic { .. })) => 0,
                Err(StepError::Projection(error)) if error.is_transient() => {
                    tokio::time::sleep(TRANSIENT_WAIT).await;
                    continue;
                }
                Err(error) => return Err(error.into_error()),
            };
            self.source.moved(tail_seq).await?;
        }
    }

    async fn step(&mut self) -> Result<Step, StepError<P::Error>> {
        let (position, limit) = {
            let projection = self.projection.lock().await;
            (projection.position().clone(), projection.batch())
        };
        let page = self.next_page(&position, limit).await?;
        let tail_seq = page.tail_seq;
        let mut events = page.events;
        events.retain(|event| event.seq() > position.seq);
        if events.is_empty() && tail_seq > position.seq {
            // The event at the position was all that the limit allowed.
            events = self.source.read(position.seq + 1, limit).await?.events;
        }
        let Some(last_seq) = events.last().map(Event::seq) else {
            return Ok(Step::AtTail(tail_seq.max(position.seq)));
        };
        let applying = P::start(self.projection.clone(), events);
        let (applied, ahead) = tokio::join!(applying, self.source.read(last_seq, limit));
        let applied = applied.map_err(|_| StepError::Projection(TaskLost.into()))?;
        let applied = applied.map_err(StepError::Projection)?;
        // A page that could not be read is read again when its turn comes.
        self.ahead = ahead.ok().map(|page| (last_seq, page));
        self.total.add(&applied);
        if let Some(wait_ms) = applied.retry_after_ms {
            self.ahead = None;
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        }
        Ok(Step::Took)
    }

    /// What follows the position. The event at the position is read once more, to see that the topic is still the
    /// same.
    async fn next_page(
        &mut self,
        position: &Position,
        limit: ReadLimit,
    ) -> Result<SourcePage, StepError<P::Error>> {
        let from_seq = position.seq.max(1);
        let page = match self.ahead.take() {
            Some((read_from, page)) if read_from == from_seq => page,
            _ => match self.source.read(from_seq, limit).await {
                Err(SourceError::UnknownTopic { topic }) if position.seq > 0 => {
                    let replaced = replaced(&topic, position, "it was deleted");
                    return Err(StepError::Projection(replaced.into()));
                }
                page => page?,
            },
        };
        let checked = check_same_topic(self.source.topic(), position, &page);
        checked.map_err(|replaced| StepError::Projection(replaced.into()))?;
        Ok(page)
    }
}

impl<E: ProjectionError> StepError<E> {
    fn into_error(self) -> E {
        match self {
            Self::Source(error) => error.into(),
            Self::Projection(error) => error,
        }
    }
}

impl<E> From<SourceError> for StepError<E> {
    fn from(error: SourceError) -> Self {
        Self::Source(error)
    }
}

/// Whether the page can be of the topic that was projected up to the position. Where retention or compaction took the
/// event at the position, only a tail that has fallen gives a new topic away.
fn check_same_topic(
    topic: &str,
    position: &Position,
    page: &SourcePage,
) -> Result<(), TopicReplaced> {
    match page.events.first() {
        Some(event) if event.seq() == position.seq && event.id() != position.id => {
            let why = format!("event {} stands there, not {}", event.id(), position.id);
            Err(replaced(topic, position, &why))
        }
        None if page.tail_seq < position.seq => {
            let why = format!("its tail is at seq {}", page.tail_seq);
            Err(replaced(topic, position, &why))
        }
        _ => Ok(()),
    }
}

fn replaced(topic: &str, position: &Position, why: &str) -> TopicReplaced {
    TopicReplaced {
        topic: topic.to_owned(),
        seq: position.seq,
        why: why.to_owned(),
    }
}
