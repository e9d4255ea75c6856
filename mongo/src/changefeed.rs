//! A changefeed: the changes of a collection as events of a topic, keyed by `_id`, exactly once, after a snapshot of what
//! is there. The payload is the document as it is after the change; a delete is a tombstone.
//!
//! ```text
//!   collection ─► change stream ─► events, each with an id made of its resume token ─► topic
//!                                  then the token of the last one                   ─► changefeed.<topic>
//! ```
//! The token is kept in the bus, behind the events. A crash in between publishes the events again, under the same ids,
//! and the topic stores none of them twice. Two feeds of one collection into one topic do no harm for the same reason.

mod bus;
mod event;
mod progress;
mod snapshot;

pub use bus::FeedBus;

use crate::error::{FeedError, MongoError};
use crate::server::require_replication;
use event::{FeedEvent, Invalidation};
use mongodb::bson::Document;
use mongodb::change_stream::ChangeStream;
use mongodb::change_stream::event::{ChangeStreamEvent, ResumeToken};
use mongodb::options::FullDocumentType;
use mongodb::{Collection, Database};
use progress::{Phase, Progress};
use prombus::check_topic;
use std::collections::HashSet;
use std::convert::Infallible;
use std::time::Duration;

/// How long the server waits for a change before it says that there is none.
const AWAIT: Duration = Duration::from_millis(250);
/// How long a feed leaves a bus or a server alone that is away, at first and at the longest.
const RETRY_MS: (u64, u64) = (250, 10_000);
/// After how many looks in vain the token is written down though nothing changed, so that it stays in the oplog.
const IDLE_LOOKS: u32 = 240;
/// The oplog no longer reaches back to the token.
const HISTORY_LOST: [i32; 2] = [280, 286];

/// What a changefeed reads, and where it publishes to.
#[derive(Debug, Clone)]
pub struct ChangefeedOptions {
    /// The collection.
    pub collection: String,
    /// The topic of the events.
    pub topic: String,
    /// Whether to begin with the documents that are there. Without, only changes from now on are published.
    pub snapshot: bool,
    /// Whether to begin anew though there is a token to go on from.
    pub restart: bool,
    /// The most changes that are published together.
    pub batch_events: usize,
    /// About the most bytes of payloads that are published together.
    pub batch_bytes: usize,
}

/// What a changefeed did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fed {
    /// Documents of the snapshot.
    pub snapshot: u64,
    /// Changes.
    pub changes: u64,
    /// Of both, those that the topic held already, because an earlier attempt got that far.
    pub duplicates: u64,
}

/// The changes of a collection as events of a topic.
#[derive(Debug)]
pub struct Changefeed {
    collection: Collection<Document>,
    options: ChangefeedOptions,
    /// What is kept in the bus; `None` before it was looked up.
    progress: Option<Progress>,
    total: Fed,
}

impl ChangefeedOptions {
    /// The defaults, from this collection to this topic.
    pub fn new(collection: impl Into<String>, topic: impl Into<String>) -> Self {
        Self {
            collection: collection.into(),
            topic: topic.into(),
            snapshot: true,
            restart: false,
            batch_events: 500,
            batch_bytes: 4 << 20,
        }
    }

    /// The topic that keeps how far the feed is.
    pub fn progress_topic(&self) -> String {
        format!("changefeed.{}", self.topic)
    }
}

impl Changefeed {
    /// A feed of this collection. Fails where the server has no change streams.
    pub async fn open(database: &Database, options: ChangefeedOptions) -> Result<Self, FeedError> {
        for topic in [options.topic.clone(), options.progress_topic()] {
            check_topic(&topic).map_err(|error| FeedError::BadTopic {
                topic: options.topic.clone(),
                why: error.to_string(),
            })?;
        }
        require_replication(database, "change streams").await?;
        Ok(Self {
            collection: database.collection(&options.collection),
            options,
            progress: None,
            total: Fed::default(),
        })
    }

    /// What it did since it was made.
    pub fn total(&self) -> Fed {
        self.total
    }

    /// The collection with its database.
    pub fn source(&self) -> String {
        self.collection.namespace().to_string()
    }

    /// Publishes the snapshot where it is not done, and all changes until there is none left.
    pub async fn catch_up(&mut self, bus: &impl FeedBus) -> Result<Fed, FeedError> {
        let before = self.total;
        let mut stream = self.resume(bus).await?;
        while self.step(bus, &mut stream).await? {}
        Ok(Fed {
            snapshot: self.total.snapshot - before.snapshot,
            changes: self.total.changes - before.changes,
            duplicates: self.total.duplicates - before.duplicates,
        })
    }

    /// The same, and whatever changes later, until it fails; drop the future to stop. A server or a bus that is away is
    /// waited for.
    pub async fn run(&mut self, bus: &impl FeedBus) -> Result<Infallible, FeedError> {
        let mut wait_ms = RETRY_MS.0;
        loop {
            let before = self.total;
            let error = match self.run_until_error(bus).await {
                Err(error) if error.is_transient() => error,
                Err(error) => return Err(error),
            };
            if self.total != before {
                wait_ms = RETRY_MS.0;
            }
            tracing::warn!(source = %self.source(), %error, "changefeed interrupted, trying again");
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
            wait_ms = (wait_ms * 2).min(RETRY_MS.1);
        }
    }

    async fn run_until_error(&mut self, bus: &impl FeedBus) -> Result<Infallible, FeedError> {
        let mut stream = self.resume(bus).await?;
        let mut idle_looks = 0;
        loop {
            if self.step(bus, &mut stream).await? {
                idle_looks = 0
            } else {
                idle_looks += 1
            }
            if idle_looks == IDLE_LOOKS {
                idle_looks = 0;
                self.keep_token(bus, stream.resume_token()).await?;
            }
        }
    }

    /// Opens the stream where the feed is, after the snapshot where that is yet to be done.
    async fn resume(&mut self, bus: &impl FeedBus) -> Result<Stream, FeedError> {
        if self.progress.is_none() {
            bus.prepare(&self.options.progress_topic()).await?;
            let known = progress::load(bus, &self.options, &self.source()).await?;
            let known = known.filter(|_| !self.options.restart);
            self.progress = match known {
                Some(progress) => Some(progress),
                None => Some(self.begin(bus).await?),
            };
        }
        let Some(progress) = self.progress.clone() else {
            return Err(FeedError::NoToken);
        };
        if let Phase::Snapshot { .. } = progress.phase {
            self.snapshot(bus, progress.clone()).await?;
        }
        let token = self
            .progress
            .as_ref()
            .map(|progress| progress.token.clone());
        self.watch(token).await
    }

    /// Takes a token from before the snapshot, so that no change between the two is missed.
    async fn begin(&mut self, bus: &impl FeedBus) -> Result<Progress, FeedError> {
        let stream = self.watch(None).await?;
        let token = stream.resume_token().ok_or(FeedError::NoToken)?;
        let progress = Progress::begin(token, self.options.snapshot);
        self.save(bus, progress.clone()).await?;
        Ok(progress)
    }

    async fn watch(&self, after: Option<ResumeToken>) -> Result<Stream, FeedError> {
        let watch = self.collection.watch();
        let watch = watch.full_document(FullDocumentType::UpdateLookup);
        let stream = watch.max_await_time(AWAIT).resume_after(after).await;
        stream.map_err(|error| self.failed(error))
    }

    /// Publishes what changed; whether anything had.
    async fn step(&mut self, bus: &impl FeedBus, stream: &mut Stream) -> Result<bool, FeedError> {
        let (mut events, mut bytes) = (Vec::new(), 0);
        let mut keys = HashSet::new();
        let mut held: Option<FeedEvent> = None;
        let mut invalidation = None;
        let mut did_anything = false;
        loop {
            let next = match stream
                .next_if_any()
                .await
                .map_err(|error| self.failed(error))?
            {
                None => None,
                Some(change) => match FeedEvent::of_change(&change, &self.options.topic)? {
                    Ok(event) => Some(event),
                    Err(what) => {
                        invalidation = Some(what);
                        None
                    }
                },
            };
            let is_end = next.is_none();
            if let Some(event) = next {
                bytes += event.row.payload.len();
                if keys.contains(&event.row.key) {
                    // A batch holds one change of a key: where one of it is refused for a moment, a later change of the
                    // same key must not be stored before it.
                    held = Some(event)
                } else {
                    keys.insert(event.row.key.clone());
                    events.push(event);
                }
            }
            let is_full =
                events.len() >= self.options.batch_events || bytes >= self.options.batch_bytes;
            if !(is_end || is_full || held.is_some()) {
                continue;
            }
            if !events.is_empty() {
                did_anything = true;
                let count = events.len() as u64;
                self.publish(bus, std::mem::take(&mut events)).await?;
                self.total.changes += count;
                keys.clear();
                bytes = 0;
            }
            if let Some(event) = held.take() {
                bytes = event.row.payload.len();
                keys.insert(event.row.key.clone());
                events.push(event);
            }
            if let Some(what) = invalidation {
                return Err(self.invalidated(what));
            }
            if is_end && events.is_empty() {
                return Ok(did_anything);
            }
        }
    }

    /// Publishes changes, and then the token of the last one.
    async fn publish(
        &mut self,
        bus: &impl FeedBus,
        events: Vec<FeedEvent>,
    ) -> Result<(), FeedError> {
        let token = events.last().and_then(|event| event.token.clone());
        self.publish_rows(bus, events).await?;
        self.keep_token(bus, token).await
    }

    async fn publish_rows(
        &mut self,
        bus: &impl FeedBus,
        events: Vec<FeedEvent>,
    ) -> Result<(), FeedError> {
        let rows: Vec<_> = events.into_iter().map(|event| event.row).collect();
        let results = bus.publish(&rows).await;
        for (at, row) in rows.iter().enumerate() {
            match results.get(at) {
                Some(Ok(sent)) => self.total.duplicates += u64::from(sent.duplicate),
                // The id is of this very change; an earlier attempt looked the document up at another moment.
                Some(Err(failure)) if failure.code == "id_conflict" => self.total.duplicates += 1,
                Some(Err(failure)) if failure.is_permanent() => {
                    return Err(FeedError::Refused {
                        collection: self.source(),
                        key: row.key.clone().unwrap_or_default(),
                        code: failure.code.clone(),
                        why: failure.why.clone(),
                    });
                }
                Some(Err(failure)) => {
                    let why = format!("{}: {}", failure.code, failure.why);
                    let is_transient = failure.code != "not_allowed" && failure.code != "forbidden";
                    return Err(FeedError::Bus { why, is_transient });
                }
                None => {
                    let why = "no answer came".to_owned();
                    let is_transient = true;
                    return Err(FeedError::Bus { why, is_transient });
                }
            }
        }
        Ok(())
    }

    /// Writes down that everything up to this token is published.
    async fn keep_token(
        &mut self,
        bus: &impl FeedBus,
        token: Option<ResumeToken>,
    ) -> Result<(), FeedError> {
        match token {
            Some(token) => self.save(bus, Progress::streaming(token)).await,
            None => Ok(()),
        }
    }

    async fn save(&mut self, bus: &impl FeedBus, progress: Progress) -> Result<(), FeedError> {
        if self.progress.as_ref() != Some(&progress) {
            progress::save(bus, &self.options, &self.source(), &progress).await?;
            self.progress = Some(progress);
        }
        Ok(())
    }

    fn invalidated(&self, what: Invalidation) -> FeedError {
        FeedError::Invalidated {
            collection: self.source(),
            what: what.as_str(),
        }
    }

    fn failed(&self, error: mongodb::error::Error) -> FeedError {
        match MongoError::from(error) {
            error
                if error
                    .code()
                    .is_some_and(|code| HISTORY_LOST.contains(&code)) =>
            {
                FeedError::HistoryLost {
                    collection: self.source(),
                }
            }
            error => error.into(),
        }
    }
}

/// A change stream of whole documents.
type Stream = ChangeStream<ChangeStreamEvent<Document>>;
