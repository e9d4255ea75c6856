//! How far each projector is: the collection `prombus_positions`, written in the transaction of the documents.

use crate::commands::update;
use crate::error::MongoError;
use mongodb::bson::{Document, doc};
use mongodb::{ClientSession, Collection, Database};
use prombus_connect::{Position, PositionOwner};

/// The collection, one document for each projector and topic.
const COLLECTION: &str = "prombus_positions";

/// A number as BSON keeps it, which has 63 bits for it.
pub(crate) fn signed(number: u64) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// A number that BSON kept, in whatever type.
pub(crate) fn unsigned(document: &Document, name: &str) -> u64 {
    let number = match document.get(name) {
        Some(mongodb::bson::Bson::Int64(number)) => *number,
        Some(mongodb::bson::Bson::Int32(number)) => i64::from(*number),
        Some(mongodb::bson::Bson::Double(number)) => *number as i64,
        _ => 0,
    };
    number.try_into().unwrap_or(0)
}

/// Where a projector's position is kept.
pub(crate) struct Positions<'a> {
    database: &'a Database,
    owner: &'a PositionOwner,
}

impl<'a> Positions<'a> {
    pub(crate) fn new(database: &'a Database, owner: &'a PositionOwner) -> Self {
        Self { database, owner }
    }

    fn collection(&self) -> Collection<Document> {
        self.database.collection(COLLECTION)
    }

    fn id(&self) -> Document {
        doc! { "projector": &self.owner.projector, "topic": &self.owner.topic }
    }

    fn fields(&self, position: &Position) -> Document {
        doc! {
            "seq": signed(position.seq),
            "id": &position.id,
            "ts": signed(position.ts),
            "definition": &self.owner.definition,
        }
    }

    /// The position and the definition it was written under.
    pub(crate) async fn load(&self) -> Result<Option<(Position, String)>, MongoError> {
        let collection = self.collection();
        let found = collection.find_one(doc! { "_id": self.id() }).await?;
        let Some(found) = found else {
            return Ok(None);
        };
        let position = Position {
            seq: unsigned(&found, "seq"),
            id: found.get_str("id").unwrap_or_default().to_owned(),
            ts: unsigned(&found, "ts"),
        };
        let definition = found.get_str("definition").unwrap_or_default();
        Ok(Some((position, definition.to_owned())))
    }

    /// Forgets the positions of this name in all topics.
    pub(crate) async fn forget(&self) -> Result<(), MongoError> {
        let filter = doc! { "_id.projector": &self.owner.projector };
        self.collection().delete_many(filter).await?;
        Ok(())
    }

    /// Forgets the position in this topic.
    pub(crate) async fn forget_topic(&self) -> Result<(), MongoError> {
        self.collection()
            .delete_one(doc! { "_id": self.id() })
            .await?;
        Ok(())
    }

    /// Sets the position to the beginning where there is none yet, and returns the one that is there.
    pub(crate) async fn begin(&self) -> Result<Position, MongoError> {
        let begin = doc! { "$setOnInsert": self.fields(&Position::default()) };
        let collection = self.collection();
        let action = collection.update_one(doc! { "_id": self.id() }, begin);
        match action.upsert(true).await.map_err(MongoError::from) {
            Ok(_) | Err(MongoError::Duplicate { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(self.load().await?.unwrap_or_default().0)
    }

    /// Moves the position, if it still is where it was; else another process runs the same projector.
    pub(crate) async fn advance(
        &self,
        from: &Position,
        to: &Position,
        session: Option<&mut ClientSession>,
    ) -> Result<bool, MongoError> {
        let filter = doc! { "_id": self.id(), "seq": signed(from.seq), "id": &from.id };
        let set = doc! { "$set": self.fields(to) };
        let written = update(self.database, COLLECTION, vec![(filter, set)], session).await?;
        Ok(written.matched > 0)
    }
}
