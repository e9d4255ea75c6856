//! A keyed topic as a collection: each key is a document, the latest event of the key is its content, a tombstone
//! removes it. Documents and position commit together, so that a restart neither misses nor repeats anything.

mod fold;
mod values;

pub use prombus_connect::{Column, ColumnSource, ColumnType, Compare, FieldPath, VersionGuard};

use crate::commands::{delete, put};
use crate::error::{
    BadColumn, BadName, CollectionMismatch, MongoError, OtherDefinition, ProjectError,
};
use crate::positions::Positions;
use crate::server::has_transactions;
use fold::{Fold, VERSION_FIELD};
use mongodb::bson::{Document, doc};
use mongodb::options::{IndexOptions, ReadConcern};
use mongodb::{ClientSession, Database, IndexModel};
use prombus::ReadLimit;
use prombus_connect::{
    Applied, BATCH, Event, Position, PositionOwner, Projection, Shape, check_name,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

/// What MongoDB and this crate keep for themselves.
const RESERVED: [&str; 2] = ["system.", "prombus_"];
/// The most fields of a document that are named.
const MAX_FIELDS: usize = 500;
/// How often a transaction that met another one is tried again before that is an error.
const MAX_CONFLICTS: u32 = 5;
/// How long it waits before that, times the attempt.
const CONFLICT_WAIT: Duration = Duration::from_millis(20);
/// A collection of this name is there already.
const NAMESPACE_EXISTS: i32 = 48;

/// How a topic becomes a collection.
#[derive(Debug, Clone)]
pub struct ChangelogOptions {
    /// The collection. It is made where there is none.
    pub collection: String,
    /// The name that the position is kept under; the collection's where there is none.
    pub name: Option<String>,
    /// The fields beside `_id`, which is the key. Where there are none: `payload` (with `raw`, see the crate's page),
    /// `ts`, `seq` and `id`.
    pub columns: Vec<Column>,
    /// Extra indexes, each over one field or more. One may be added later.
    pub indexes: Vec<Vec<String>>,
    /// Keeps what is older from overwriting what is newer.
    pub version: Option<VersionGuard>,
    /// How much goes into one transaction.
    pub batch: ReadLimit,
}

/// A topic that is kept as a collection.
#[derive(Debug)]
pub struct Changelog {
    database: Database,
    collection: String,
    owner: PositionOwner,
    position: Position,
    batch: ReadLimit,
    shape: Shape,
    /// Where the server has none, documents are written before the position, and again after a crash in between.
    has_transactions: bool,
}

impl ChangelogOptions {
    /// The defaults, into this collection.
    pub fn new(collection: impl Into<String>) -> Self {
        Self {
            collection: collection.into(),
            name: None,
            columns: Vec::new(),
            indexes: Vec::new(),
            version: None,
            batch: BATCH,
        }
    }

    /// What must not change while the collection is kept. Indexes and the size of batches may.
    fn definition(&self) -> String {
        let columns = if self.columns.is_empty() {
            Column::defaults()
        } else {
            self.columns.clone()
        };
        let columns: Vec<String> = columns.iter().map(Column::to_string).collect();
        let version = self.version.as_ref();
        let guard = version.map_or(String::new(), |version| format!(", version {version}"));
        let columns = columns.join(", ");
        format!("collection {}, fields {columns}{guard}", self.collection)
    }

    fn check(&self) -> Result<(), ProjectError> {
        check_collection(&self.collection)?;
        check_name(self.name.as_ref().unwrap_or(&self.collection))?;
        if self.columns.len() > MAX_FIELDS {
            let why = "a document has at most 500 named fields";
            return Err(BadColumn::new(&self.collection, why).into());
        }
        for (at, column) in self.columns.iter().enumerate() {
            check_name(&column.name)?;
            let name = column.name.as_str();
            if name.starts_with('$') || name.contains('.') || ["_id", VERSION_FIELD].contains(&name)
            {
                let why = "a field's name has no dots and no $, and _id and _version are taken";
                return Err(BadColumn::new(name, why).into());
            }
            if self.columns[..at].iter().any(|other| other.name == name) {
                return Err(BadColumn::new(name, "two fields have this name").into());
            }
        }
        if self.indexes.iter().any(Vec::is_empty) {
            Err(BadColumn::new("", "an index is over one field or more").into())
        } else {
            Ok(())
        }
    }
}

/// Checks the name of a collection that a caller chose.
fn check_collection(name: &str) -> Result<(), BadName> {
    check_name(name)?;
    if RESERVED.iter().any(|prefix| name.starts_with(prefix)) {
        let why = "names that begin with system. or prombus_ are taken";
        return Err(BadName::new(name, why));
    }
    if name.contains('$') {
        Err(BadName::new(name, "a collection's name has no $"))
    } else {
        Ok(())
    }
}

impl Changelog {
    /// Sets the collection up, or goes on with one that was set up the same way before. A collection that was dropped
    /// since is built anew from the beginning.
    pub async fn open(
        database: &Database,
        topic: &str,
        options: &ChangelogOptions,
    ) -> Result<Self, ProjectError> {
        options.check()?;
        let owner = PositionOwner {
            projector: options.name.as_ref().unwrap_or(&options.collection).clone(),
            topic: topic.to_owned(),
            definition: options.definition(),
        };
        let position = set_up(database, options, &owner).await?;
        Ok(Self {
            database: database.clone(),
            collection: options.collection.clone(),
            owner,
            position,
            batch: options.batch,
            shape: Shape::new(&options.columns, options.version.as_ref()),
            has_transactions: has_transactions(database).await?,
        })
    }

    /// Takes events, all behind the position and in order, in one transaction where the server has them.
    async fn apply(&mut self, events: &[Event]) -> Result<Applied, ProjectError> {
        let mut conflicts = 0;
        loop {
            let taken = if self.has_transactions {
                self.apply_in_transaction(events).await
            } else {
                self.write(events, None).await
            };
            match taken {
                Ok(Some(applied)) => return Ok(applied),
                Ok(None) => {
                    // Another process runs the same projector; this one goes on from where that one is.
                    let positions = Positions::new(&self.database, &self.owner);
                    self.position = positions.load().await?.unwrap_or_default().0;
                    return Ok(Applied::default());
                }
                Err(error) if error.is_transient() && conflicts < MAX_CONFLICTS => {
                    conflicts += 1;
                    tokio::time::sleep(CONFLICT_WAIT * conflicts).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn apply_in_transaction(
        &mut self,
        events: &[Event],
    ) -> Result<Option<Applied>, MongoError> {
        let mut session = self.database.client().start_session().await?;
        let begin = session.start_transaction();
        begin.read_concern(ReadConcern::snapshot()).await?;
        match self.write(events, Some(&mut session)).await {
            Ok(Some(applied)) => {
                let committed = session.commit_transaction().await;
                if let Err(error) = committed {
                    // It may have come through; the next attempt finds the position moved then.
                    return Err(error.into());
                }
                self.position = events.last().map(Position::of).unwrap_or_default();
                Ok(Some(applied))
            }
            other => {
                // The server also ends it by itself.
                let _ = session.abort_transaction().await;
                other
            }
        }
    }

    /// Writes what events come to, and the position; nothing where the position is not where it was.
    async fn write(
        &mut self,
        events: &[Event],
        mut session: Option<&mut ClientSession>,
    ) -> Result<Option<Applied>, MongoError> {
        let Some(last) = events.last() else {
            return Ok(Some(Applied::default()));
        };
        let to = Position::of(last);
        let positions = Positions::new(&self.database, &self.owner);
        if session.is_some() {
            let session = session.as_deref_mut();
            if !positions.advance(&self.position, &to, session).await? {
                return Ok(None);
            }
        }
        let mut fold = Fold::default();
        if self.shape.version.is_some() {
            let versions = self.versions(events, session.as_deref_mut()).await?;
            fold.load_versions(&versions);
        }
        let applied = fold.take(&self.shape, events);
        let (puts, deletes) = fold.into_writes();
        put(
            &self.database,
            &self.collection,
            puts,
            session.as_deref_mut(),
        )
        .await?;
        delete(
            &self.database,
            &self.collection,
            deletes,
            session.as_deref_mut(),
        )
        .await?;
        if session.is_none() {
            if !positions.advance(&self.position, &to, None).await? {
                return Ok(None);
            }
            self.position = to;
        }
        Ok(Some(applied))
    }

    /// The versions of the documents that these events are about.
    async fn versions(
        &self,
        events: &[Event],
        session: Option<&mut ClientSession>,
    ) -> Result<Vec<Document>, MongoError> {
        let keys: Vec<String> = events
            .iter()
            .filter_map(|event| Some(event.key()?.into_owned()))
            .collect();
        // Versions are small, so they come in one reply.
        let find = doc! {
            "find": &self.collection,
            "filter": { "_id": { "$in": &keys } },
            "projection": { VERSION_FIELD: 1 },
            "batchSize": keys.len() as i64 + 1,
            "singleBatch": true,
        };
        let mut action = self.database.run_command(find);
        if let Some(session) = session {
            action = action.session(session);
        }
        let reply = action.await?;
        let cursor = reply.get_document("cursor");
        let batch = cursor.and_then(|cursor| cursor.get_array("firstBatch"));
        let documents =
            batch.map(|batch| batch.iter().filter_map(|one| one.as_document().cloned()));
        Ok(documents.map(Iterator::collect).unwrap_or_default())
    }
}

/// Makes what is missing and finds the position.
async fn set_up(
    database: &Database,
    options: &ChangelogOptions,
    owner: &PositionOwner,
) -> Result<Position, ProjectError> {
    let positions = Positions::new(database, owner);
    let name = options.collection.as_str();
    let names = database.list_collection_names().await?;
    let exists = names.iter().any(|known| known == name);
    let position = match positions.load().await? {
        Some((_, was)) if exists && was != owner.definition => {
            let projector = owner.projector.clone();
            return Err(OtherDefinition { projector, was }.into());
        }
        Some((position, _)) if exists => position,
        _ => {
            if !exists {
                // Whatever the name was used for before is gone with its collection.
                positions.forget().await?;
                create(database, name).await?;
            }
            let collection = database.collection::<Document>(name);
            if collection.find_one(doc! {}).await?.is_some() {
                let collection = name.to_owned();
                let why = "it has documents that are not from this topic".to_owned();
                return Err(CollectionMismatch { collection, why }.into());
            }
            positions.begin().await?
        }
    };
    create_indexes(database, options).await?;
    Ok(position)
}

/// Makes a collection; one that another process has just made is fine.
pub(crate) async fn create(database: &Database, name: &str) -> Result<(), MongoError> {
    match database
        .create_collection(name)
        .await
        .map_err(MongoError::from)
    {
        Err(error) if error.code() == Some(NAMESPACE_EXISTS) => Ok(()),
        done => done,
    }
}

async fn create_indexes(
    database: &Database,
    options: &ChangelogOptions,
) -> Result<(), ProjectError> {
    let collection = database.collection::<Document>(&options.collection);
    for fields in &options.indexes {
        let keys: Document = fields.iter().map(|name| (name.clone(), 1.into())).collect();
        let name = format!("by_{}", fields.join("_"));
        let index = IndexModel::builder()
            .keys(keys)
            .options(IndexOptions::builder().name(name.clone()).build())
            .build();
        if let Err(error) = collection.create_index(index).await {
            let error = MongoError::from(error);
            if error.is_transient() {
                return Err(error.into());
            }
            let why = format!("its index {name} cannot be made: {error}");
            let collection = options.collection.clone();
            return Err(CollectionMismatch { collection, why }.into());
        }
    }
    Ok(())
}

impl Projection for Changelog {
    type Error = ProjectError;

    fn topic(&self) -> &str {
        &self.owner.topic
    }

    fn position(&self) -> &Position {
        &self.position
    }

    fn batch(&self) -> ReadLimit {
        self.batch
    }

    fn start(
        this: Arc<Mutex<Self>>,
        events: Vec<Event>,
    ) -> JoinHandle<Result<Applied, ProjectError>> {
        tokio::spawn(async move { this.lock().await.apply(&events).await })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_fields_that_cannot_be_are_refused() {
        for name in ["", "system.users", "prombus_outbox", "a$b"] {
            let options = ChangelogOptions::new(name);
            assert!(options.check().is_err(), "{name}");
        }
        for column in ["_id=a", "_version=a", "$a=b", "a.b=c"] {
            let mut options = ChangelogOptions::new("orders");
            options.columns = vec![column.parse().expect("a column")];
            assert!(options.check().is_err(), "{column}");
        }
        let mut options = ChangelogOptions::new("orders.eu");
        options.columns = vec!["city=address.city:text".parse().expect("a column")];
        options.check().expect("fine");
        options.columns.push("city=b".parse().expect("a column"));
        assert!(options.check().is_err(), "twice");
    }
}
