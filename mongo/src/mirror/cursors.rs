//! The collection `cursors`: how far each group is.

use super::CURSORS;
use crate::commands::{delete, put};
use crate::error::MongoError;
use crate::positions::{signed, unsigned};
use mongodb::Database;
use mongodb::bson::{Document, doc};
use prombus::Bus;
use std::collections::{HashMap, HashSet};

/// What is written of each cursor: its `_id` and position.
#[derive(Debug, Default)]
pub(super) struct Cursors {
    written: HashMap<String, u64>,
}

impl Cursors {
    /// What an earlier process wrote.
    pub(super) async fn load(database: &Database) -> Result<Self, MongoError> {
        let fields = doc! { "lastSeq": 1 };
        let cursors = database.collection::<Document>(CURSORS);
        let mut cursor = cursors.find(doc! {}).projection(fields).await?;
        let mut written = HashMap::new();
        while cursor.advance().await? {
            let found: Document = cursor.deserialize_current()?;
            if let Ok(id) = found.get_str("_id") {
                written.insert(id.to_owned(), unsigned(&found, "lastSeq"));
            }
        }
        Ok(Self { written })
    }

    /// Writes the cursors that moved, and removes those whose group is gone.
    pub(super) async fn sync(&mut self, bus: &Bus, database: &Database) -> Result<(), MongoError> {
        let (mut puts, mut seen, mut moved) = (Vec::new(), HashSet::new(), Vec::new());
        for topic in bus.topics() {
            // A topic that was just deleted has none.
            let groups = bus.groups(&topic.name).await.unwrap_or_default();
            for group in groups {
                let id = format!("{}::{}", group.topic, group.group);
                seen.insert(id.clone());
                if self.written.get(&id) == Some(&group.cursor) {
                    continue;
                }
                let Ok(cursor) = bus.cursor(&group.topic, &group.group).await else {
                    continue;
                };
                let mut document =
                    doc! { "_id": &id, "topic": &*group.topic, "group": &*group.group };
                if let Some(last_id) = cursor.last_id {
                    document.insert("lastId", last_id);
                }
                if let Some(last_ts) = cursor.last_ts {
                    document.insert("lastTs", signed(last_ts));
                }
                document.insert("lastSeq", signed(cursor.last_seq));
                puts.push(document);
                moved.push((id, cursor.last_seq));
            }
        }
        let gone: Vec<String> = self
            .written
            .keys()
            .filter(|id| !seen.contains(*id))
            .cloned()
            .collect();
        put(database, CURSORS, puts, None).await?;
        let filters = gone.iter().map(|id| doc! { "_id": id }).collect();
        delete(database, CURSORS, filters, None).await?;
        self.written.extend(moved);
        for id in gone {
            self.written.remove(&id);
        }
        Ok(())
    }
}
