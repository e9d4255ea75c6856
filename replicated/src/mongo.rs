//! A MongoDB collection as the shared log: `commits` has one document for each message, `{_id: n, …, b: bytes}` with
//! n = 1, 2, 3 …
//!
//! To append is to insert at the first number that is not known to be taken; the unique `_id` decides who gets it, and
//! whoever lost takes the next one. A number is used only when the one before it is there, so a reader with read concern
//! `majority` finds no holes. Neither transactions nor a replica set are needed.

mod follow;
mod open;
mod snapshots;
mod url;

pub use open::OpenError;
pub use url::{InvalidUrl, MongoUrl};

use crate::message::Message;
use crate::{AppendError, Bounds, Description, Follower, SharedLog, Snapshots, Unavailable};
use bytes::Bytes;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, DateTime, Document, doc};
use mongodb::error::{Error, ErrorKind, WriteFailure};
use mongodb::options::{Acknowledgment, WriteConcern};
use mongodb::{Collection, Database};
use prombus_store::LockExt;
use prombus_store::{Answer, Durability};
use snapshots::MongoSnapshots;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The collection of messages.
const COMMITS: &str = "commits";
/// The collection of snapshots' chunks.
const SNAPSHOTS: &str = "snapshots";
/// The collection of what is known about the log as a whole: one document.
const META: &str = "log";
/// The `_id` of that document.
const META_ID: &str = "log";
/// The largest message; a document ends at 16 MiB.
const MAX_MESSAGE_BYTES: usize = 8_000_000;
/// How long an append waits for its answer.
const APPEND_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the end of the log is trusted without having been seen. Meanwhile what is taken for the end may have been
/// trimmed, or a failover may have taken back what one server alone had acknowledged.
const TRUSTED: Duration = Duration::from_secs(1);
/// After how many numbers that were taken the end of the log is looked up.
const TAKEN_IN_A_ROW: u32 = 4;
/// A unique index holds the value already.
const DUPLICATE_KEY: i32 = 11000;

/// A shared log in a MongoDB database.
#[derive(Debug, Clone)]
pub struct MongoLog {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    database: Database,
    commits: Collection<Document>,
    meta: Collection<Document>,
    snapshots: Collection<Document>,
    description: Description,
    /// Whether the server has change streams.
    has_change_streams: bool,
    /// The last number that is known to be taken.
    last: AtomicU64,
    /// When that was seen, or begun to be looked up; none where it has to be looked up before it is built on.
    seen: Mutex<Option<Instant>>,
    /// Wakes the follower: this node appended, or the change stream said so.
    appended: Notify,
}

impl MongoLog {
    fn new(database: &Database, description: Description, has_change_streams: bool) -> Self {
        let shared = Shared {
            database: database.clone(),
            commits: database.collection(COMMITS),
            meta: database.collection(META),
            snapshots: database.collection(SNAPSHOTS),
            description,
            has_change_streams,
            last: AtomicU64::new(0),
            seen: Mutex::new(None),
            appended: Notify::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }
}

impl Shared {
    async fn append(&self, message: Bytes, durability: Durability) -> Result<u64, AppendError> {
        let appended = self.try_append(message, durability).await;
        if appended.is_err() {
            // There may be another primary by now, which does not have everything.
            self.see(None);
        }
        appended
    }

    async fn try_append(&self, message: Bytes, durability: Durability) -> Result<u64, AppendError> {
        let concern = concern(durability);
        let mut document = document(&message);
        let mut taken = 0;
        loop {
            let began = Instant::now();
            if !self.is_trusted() {
                self.look_up_end().await.map_err(rejected)?;
            }
            let place = self.last.load(Ordering::Relaxed) + 1;
            document.insert("_id", signed(place));
            let insert = self.commits.insert_one(&document);
            match insert.write_concern(concern.clone()).await {
                Ok(_) => {
                    // A node that was stopped meanwhile built on an end that may be long gone.
                    if !self.is_trusted() && self.was_trimmed(place).await? {
                        continue;
                    }
                    self.last.fetch_max(place, Ordering::Relaxed);
                    self.see(Some(began));
                    self.appended.notify_one();
                    return Ok(place);
                }
                Err(error) if is_duplicate(&error) => {
                    self.last.fetch_max(place, Ordering::Relaxed);
                    self.see(Some(began));
                    taken += 1;
                    if taken % TAKEN_IN_A_ROW == 0 {
                        self.look_up_end().await.map_err(rejected)?;
                    }
                }
                Err(error) => return Err(append_error(&error)),
            }
        }
    }

    fn is_trusted(&self) -> bool {
        let seen = *self.seen.guard();
        seen.is_some_and(|seen| seen.elapsed() < TRUSTED)
    }

    fn see(&self, when: Option<Instant>) {
        *self.seen.guard() = when;
    }

    /// Whether a message was stored below where the log begins by now; then it is removed again.
    async fn was_trimmed(&self, place: u64) -> Result<bool, AppendError> {
        let unknown = |error: Error| AppendError::Unknown {
            cause: describe(&error),
        };
        let bounds = self.bounds().await.map_err(unknown)?;
        if place >= bounds.first {
            return Ok(false);
        }
        let stray = self.commits.delete_one(doc! { "_id": signed(place) });
        stray.await.map_err(unknown)?;
        self.last.store(bounds.last, Ordering::Relaxed);
        Ok(true)
    }

    /// Sees where the log ends now, which is before where it ended if a failover took something back.
    async fn look_up_end(&self) -> Result<(), Error> {
        let began = Instant::now();
        let bounds = self.bounds().await?;
        self.last.store(bounds.last, Ordering::Relaxed);
        self.see(Some(began));
        Ok(())
    }

    /// Where the log begins and ends, as the primary has it.
    async fn bounds(&self) -> Result<Bounds, Error> {
        let meta = self.meta.find_one(doc! { "_id": META_ID }).await?;
        let trimmed = meta.map_or(0, |meta| number(&meta, "trimmed"));
        let newest = self.commits.find_one(doc! {}).sort(doc! { "_id": -1 });
        let newest = newest.projection(doc! { "_id": 1 }).await?;
        let newest = newest.map_or(0, |newest| number(&newest, "_id"));
        Ok(Bounds {
            first: trimmed + 1,
            last: newest.max(trimmed),
        })
    }

    /// How many bytes the messages take, where the server says so.
    async fn bytes(&self) -> Option<u64> {
        let asked = self
            .database
            .run_command(doc! { "collStats": COMMITS })
            .await;
        let size = asked.ok()?.get("size")?.clone();
        match size {
            Bson::Int32(bytes) => u64::try_from(bytes).ok(),
            Bson::Int64(bytes) => u64::try_from(bytes).ok(),
            Bson::Double(bytes) => Some(bytes as u64),
            _ => None,
        }
    }

    async fn trim(&self, through: u64) -> Result<(), Error> {
        let through = through.min(self.bounds().await?.last);
        // First it is said, then it is done: whoever misses a message finds the reason.
        let said = doc! { "$max": { "trimmed": signed(through) } };
        let meta = self.meta.update_one(doc! { "_id": META_ID }, said);
        meta.write_concern(concern(Durability::Fsync)).await?;
        let trimmed = doc! { "_id": { "$lte": signed(through) } };
        self.commits.delete_many(trimmed).await?;
        Ok(())
    }
}

impl SharedLog for MongoLog {
    fn append(&self, message: Bytes, durability: Durability) -> Answer<u64, AppendError> {
        let shared = self.shared.clone();
        Box::pin(async move {
            let append = shared.append(message, durability);
            match tokio::time::timeout(APPEND_TIMEOUT, append).await {
                Ok(appended) => appended,
                Err(_) => Err(AppendError::Unknown {
                    cause: "MongoDB did not answer in time".into(),
                }),
            }
        })
    }

    fn follow(&self, after: u64) -> Follower {
        let shared = self.shared.clone();
        Follower::spawn(move |sender| follow::follow(shared, after, sender))
    }

    fn bounds(&self) -> Answer<Bounds, Unavailable> {
        let shared = self.shared.clone();
        Box::pin(async move { shared.bounds().await.map_err(unavailable) })
    }

    fn trim(&self, through: u64) -> Answer<(), Unavailable> {
        let shared = self.shared.clone();
        Box::pin(async move { shared.trim(through).await.map_err(unavailable) })
    }

    fn bytes(&self) -> Answer<Option<u64>, Unavailable> {
        let shared = self.shared.clone();
        Box::pin(async move { Ok(shared.bytes().await) })
    }

    fn snapshots(&self) -> Option<Arc<dyn Snapshots>> {
        Some(Arc::new(MongoSnapshots(self.shared.clone())))
    }

    fn description(&self) -> &Description {
        &self.shared.description
    }
}

/// A message as a document; what its head says is there for people too.
fn document(message: &Bytes) -> Document {
    let mut document = Document::new();
    if let Ok(Message { head, .. }) = Message::decode(message) {
        document.insert("boot", format!("{:016x}", head.boot));
        document.insert("number", signed(head.number));
        document.insert("at", DateTime::from_millis(signed(head.now_ms)));
    }
    let content = Binary {
        subtype: BinarySubtype::Generic,
        bytes: message.to_vec(),
    };
    document.insert("b", content);
    document
}

/// Acknowledged when the majority has it in its journal, or when the primary has it.
fn concern(durability: Durability) -> WriteConcern {
    match durability {
        Durability::Fsync => WriteConcern::builder()
            .w(Acknowledgment::Majority)
            .journal(true)
            .build(),
        Durability::Os => WriteConcern::builder().w(Acknowledgment::Nodes(1)).build(),
    }
}

fn is_duplicate(error: &Error) -> bool {
    matches!(&*error.kind, ErrorKind::Write(WriteFailure::WriteError(write)) if write.code == DUPLICATE_KEY)
}

/// What is known of a message whose insert failed.
fn append_error(error: &Error) -> AppendError {
    let cause = describe(error);
    match &*error.kind {
        // The server refused this very document, or there was nobody to send it to.
        ErrorKind::Write(WriteFailure::WriteError(_))
        | ErrorKind::ServerSelection { .. }
        | ErrorKind::Authentication { .. }
        | ErrorKind::InvalidArgument { .. } => AppendError::Rejected { cause },
        _ => AppendError::Unknown { cause },
    }
}

/// Nothing was sent yet.
fn rejected(error: Error) -> AppendError {
    AppendError::Rejected {
        cause: describe(&error),
    }
}

fn unavailable(error: Error) -> Unavailable {
    Unavailable {
        cause: describe(&error),
    }
}

fn describe(error: &Error) -> Arc<str> {
    format!("MongoDB: {}", error.kind).into()
}

fn signed(number: u64) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

fn number(document: &Document, name: &str) -> u64 {
    let number = document
        .get_i64(name)
        .or_else(|_| document.get_i32(name).map(i64::from));
    number
        .ok()
        .and_then(|number| number.try_into().ok())
        .unwrap_or(0)
}
