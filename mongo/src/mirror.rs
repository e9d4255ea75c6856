//! The readable copy of a bus: the collections `events` and `cursors`, for people, queries and tools that know MongoDB.
//! Nothing is decided from them. Events are written with the position in one transaction, milliseconds after they are
//! stored; without transactions the same documents are written again after a crash, which changes nothing.

mod cursors;
mod document;
mod lease;

use crate::changelog::create;
use crate::commands::{delete, put};
use crate::error::MongoError;
use crate::positions::{Positions, signed};
use crate::server::has_transactions;
use cursors::Cursors;
use document::event_document;
use lease::Lease;
use mongodb::bson::{Document, doc};
use mongodb::options::{IndexOptions, ReadConcern};
use mongodb::{ClientSession, Database, IndexModel};
use prombus::{Bus, ReadFrom, ReadLimit, StoredEvent, TopicInfo};
use prombus_connect::{Position, PositionOwner};
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// The collection of events.
pub const EVENTS: &str = "events";
/// The collection of cursors.
pub const CURSORS: &str = "cursors";
/// The name that positions are kept under.
const PROJECTOR: &str = "mirror";
/// How much goes into one transaction.
const PAGE: ReadLimit = ReadLimit {
    events: 1_000,
    bytes: 4 << 20,
};
/// How many passes a topic may be missing before its events are removed: this node may be behind the one before it.
const GONE_PASSES: u32 = 100;
/// How long it leaves a server alone that is away.
const RETRY: Duration = Duration::from_secs(1);

/// How a bus is mirrored.
#[derive(Debug, Clone)]
pub struct MirrorOptions {
    /// This process's name, which no other process that mirrors into the database may have.
    pub holder: String,
    /// How often it looks for new events.
    pub poll_ms: u64,
    /// How often it looks for cursors that moved.
    pub cursors_ms: u64,
    /// After what time without a sign of life another process goes on in its place.
    pub lease_ms: u64,
}

/// Keeps `events` and `cursors` up to date.
#[derive(Debug)]
pub struct Mirror {
    bus: Bus,
    database: Database,
    options: MirrorOptions,
    lease: Lease,
    has_transactions: bool,
    topics: HashMap<Arc<str>, MirroredTopic>,
    cursors: Cursors,
}

/// A topic as far as it is mirrored.
#[derive(Debug)]
struct MirroredTopic {
    owner: PositionOwner,
    position: Position,
    /// For how many passes in a row the bus had no such topic.
    missing_passes: u32,
}

impl MirrorOptions {
    /// The defaults, for a process of this name.
    pub fn new(holder: impl Into<String>) -> Self {
        Self {
            holder: holder.into(),
            poll_ms: 100,
            cursors_ms: 1_000,
            lease_ms: 15_000,
        }
    }
}

impl Mirror {
    /// Makes the collections and their indexes where they are not there yet.
    pub async fn open(
        bus: &Bus,
        database: &Database,
        options: MirrorOptions,
    ) -> Result<Self, MongoError> {
        create(database, EVENTS).await?;
        create(database, CURSORS).await?;
        let events = database.collection::<Document>(EVENTS);
        events.create_indexes(indexes()).await?;
        Ok(Self {
            bus: bus.clone(),
            database: database.clone(),
            lease: Lease::new(database, PROJECTOR, &options),
            has_transactions: has_transactions(database).await?,
            topics: HashMap::new(),
            cursors: Cursors::load(database).await?,
            options,
        })
    }

    /// Keeps the collections up to date until it fails; drop the future to stop. One process does that at a time.
    pub async fn run(&mut self) -> Result<Infallible, MongoError> {
        let mut since_cursors_ms = u64::MAX;
        loop {
            let mut pause = Duration::from_millis(self.options.poll_ms);
            match self.pass(&mut since_cursors_ms).await {
                Ok(()) => {}
                Err(error) if error.is_transient() => {
                    tracing::warn!(%error, "mirror interrupted, trying again");
                    // The holder of the lease may have gone on meanwhile.
                    self.topics.clear();
                    pause = RETRY;
                }
                Err(error) => return Err(error),
            }
            tokio::time::sleep(pause).await;
            since_cursors_ms = since_cursors_ms.saturating_add(self.options.poll_ms);
        }
    }

    async fn pass(&mut self, since_cursors_ms: &mut u64) -> Result<(), MongoError> {
        match self.lease.hold().await? {
            lease::Held::No => {
                self.topics.clear();
                return Ok(());
            }
            lease::Held::Anew => self.topics.clear(),
            lease::Held::Still => {}
        }
        self.sync_events().await?;
        if *since_cursors_ms >= self.options.cursors_ms {
            *since_cursors_ms = 0;
            self.cursors.sync(&self.bus, &self.database).await?;
        }
        Ok(())
    }

    /// Writes everything that is new, without the lease.
    pub async fn sync(&mut self) -> Result<(), MongoError> {
        self.sync_events().await?;
        self.cursors.sync(&self.bus, &self.database).await
    }

    async fn sync_events(&mut self) -> Result<(), MongoError> {
        let infos = self.bus.topics();
        for info in &infos {
            self.sync_topic(info).await?;
        }
        let mut gone = Vec::new();
        for (name, topic) in &mut self.topics {
            let is_there = infos.binary_search_by(|info| info.name.cmp(name)).is_ok();
            topic.missing_passes = if is_there {
                0
            } else {
                topic.missing_passes + 1
            };
            if topic.missing_passes >= GONE_PASSES {
                gone.push(name.clone());
            }
        }
        for name in gone {
            if let Some(topic) = self.topics.remove(&name) {
                self.forget(&topic.owner).await?;
            }
        }
        Ok(())
    }

    /// Writes what is new in a topic.
    async fn sync_topic(&mut self, info: &TopicInfo) -> Result<(), MongoError> {
        let owner = owner_of(info);
        let known = self.topics.get(&info.name);
        let known = known.filter(|topic| topic.owner.definition == owner.definition);
        let mut position = match known {
            Some(topic) => topic.position.clone(),
            None => self.begin(&owner).await?,
        };
        let mut next_seq = position.seq + 1;
        while next_seq <= info.tail_seq {
            let page = match self
                .bus
                .store()
                .read(&info.name, ReadFrom::Seq(next_seq), PAGE)
                .await
            {
                Ok(page) => page,
                // It was deleted meanwhile, or cannot be read: the next pass sees.
                Err(_) => break,
            };
            if page.next_seq <= next_seq {
                break;
            }
            next_seq = page.next_seq;
            let Some(last) = page.events.last() else {
                continue;
            };
            let to = Position {
                seq: last.seq(),
                id: last.id().into_owned(),
                ts: last.ts(),
            };
            let is_ours = self
                .write(&owner, info, &position, &to, &page.events)
                .await?;
            if !is_ours {
                // Another process mirrors too; this one goes on from where that one is.
                self.topics.remove(&info.name);
                return Ok(());
            }
            position = to;
        }
        let topic = MirroredTopic {
            owner,
            position,
            missing_passes: 0,
        };
        self.topics.insert(info.name.clone(), topic);
        Ok(())
    }

    /// Where a topic's mirror is; an earlier topic of the same name is removed.
    async fn begin(&self, owner: &PositionOwner) -> Result<Position, MongoError> {
        let positions = Positions::new(&self.database, owner);
        match positions.load().await? {
            Some((position, was)) if was == owner.definition => return Ok(position),
            Some(_) => self.forget(owner).await?,
            None => {}
        }
        positions.begin().await
    }

    async fn forget(&self, owner: &PositionOwner) -> Result<(), MongoError> {
        let events = self.database.collection::<Document>(EVENTS);
        events.delete_many(doc! { "topic": &owner.topic }).await?;
        Positions::new(&self.database, owner).forget_topic().await
    }

    /// Writes events and the position; `false` where the position is not where it was.
    async fn write(
        &self,
        owner: &PositionOwner,
        info: &TopicInfo,
        from: &Position,
        to: &Position,
        events: &[StoredEvent],
    ) -> Result<bool, MongoError> {
        let positions = Positions::new(&self.database, owner);
        if !self.has_transactions {
            self.write_events(info, events, None).await?;
            return positions.advance(from, to, None).await;
        }
        let mut session = self.database.client().start_session().await?;
        let begin = session.start_transaction();
        begin.read_concern(ReadConcern::snapshot()).await?;
        let is_ours = positions.advance(from, to, Some(&mut session)).await?;
        if !is_ours {
            // The server also ends it by itself.
            let _ = session.abort_transaction().await;
            return Ok(false);
        }
        self.write_events(info, events, Some(&mut session)).await?;
        session.commit_transaction().await?;
        Ok(true)
    }

    async fn write_events(
        &self,
        info: &TopicInfo,
        events: &[StoredEvent],
        mut session: Option<&mut ClientSession>,
    ) -> Result<(), MongoError> {
        let retention_ms = info.options.retention_ms;
        let documents: Result<Vec<Document>, MongoError> = events
            .iter()
            .map(|event| event_document(event, retention_ms))
            .collect();
        // A publisher's id may come again once its first event is forgotten; the index allows one.
        let ids: Vec<String> = events.iter().map(|event| event.id().into_owned()).collect();
        let first_seq = events.first().map_or(0, StoredEvent::seq);
        let earlier = doc! {
            "topic": &*info.name,
            "id": { "$in": ids },
            "seq": { "$lt": signed(first_seq) },
        };
        delete(
            &self.database,
            EVENTS,
            vec![earlier],
            session.as_deref_mut(),
        )
        .await?;
        put(&self.database, EVENTS, documents?, session).await
    }
}

/// Whose position it is: that of this very topic, not of another one that had its name.
fn owner_of(info: &TopicInfo) -> PositionOwner {
    PositionOwner {
        projector: PROJECTOR.to_owned(),
        topic: info.name.to_string(),
        definition: format!("events of incarnation {}", info.incarnation),
    }
}

/// The indexes of `events`.
fn indexes() -> Vec<IndexModel> {
    let index = |keys: Document, options: IndexOptions| {
        IndexModel::builder().keys(keys).options(options).build()
    };
    let unique = IndexOptions::builder().unique(true).build();
    let sparse = IndexOptions::builder().sparse(true).build();
    let expiry = IndexOptions::builder().expire_after(Duration::ZERO).build();
    vec![
        index(
            doc! { "topic": 1, "ts": 1, "id": 1 },
            IndexOptions::default(),
        ),
        index(
            doc! { "topic": 1, "key": 1, "ts": -1 },
            IndexOptions::default(),
        ),
        index(doc! { "topic": 1, "id": 1 }, unique),
        index(doc! { "headers.correlationId": 1 }, sparse),
        index(doc! { "expireAt": 1 }, expiry),
    ]
}
