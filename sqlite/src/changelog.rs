//! A keyed topic as a table: each key is a row, the latest event of the key is its content, a tombstone removes
//! it. Rows and position commit together, so that a restart neither misses nor repeats anything.

mod table;
#[cfg(test)]
mod tests;
mod values;

pub use prombus_connect::{Column, ColumnSource, ColumnType, Compare, FieldPath, VersionGuard};

use crate::error::{OtherDefinition, ProjectError};
use crate::positions::{self, Positions};
use prombus::ReadLimit;
use prombus_connect::{
    Applied, BATCH, Event, Part, Position, PositionOwner, Projection, Shape, check_name,
};
use rusqlite::{Connection, Statement, TransactionBehavior};
use std::sync::Arc;
use table::Table;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use values::{column_value, integer, text, version_value};

/// How a topic becomes a table.
#[derive(Debug, Clone)]
pub struct ChangelogOptions {
    /// The table. It is made where there is none; one that is there has to fit.
    pub table: String,
    /// The name that the position is kept under; the table's where there is none.
    pub name: Option<String>,
    /// The column of the key, which is the table's primary key.
    pub key_column: String,
    /// The other columns. Where there are none: `payload`, `ts`, `seq` and `id`.
    pub columns: Vec<Column>,
    /// Extra indexes, each over one column or more. One may be added later.
    pub indexes: Vec<Vec<String>>,
    /// Keeps what is older from overwriting what is newer.
    pub version: Option<VersionGuard>,
    /// How much goes into one transaction.
    pub batch: ReadLimit,
}

/// A topic that is kept as a table.
#[derive(Debug)]
pub struct Changelog {
    connection: Connection,
    owner: PositionOwner,
    position: Position,
    batch: ReadLimit,
    shape: Shape,
    upsert_sql: String,
    delete_sql: String,
}

impl ChangelogOptions {
    /// The defaults, into this table.
    pub fn new(table: impl Into<String>) -> Self {
        Self {
            table: table.into(),
            name: None,
            key_column: "key".to_owned(),
            columns: Vec::new(),
            indexes: Vec::new(),
            version: None,
            batch: BATCH,
        }
    }

    /// The columns beside the key.
    fn columns(&self) -> Vec<Column> {
        if self.columns.is_empty() {
            Column::defaults()
        } else {
            self.columns.clone()
        }
    }

    /// What must not change while the table is kept. Indexes and the size of batches may.
    fn definition(&self) -> String {
        let columns: Vec<String> = self.columns().iter().map(Column::to_string).collect();
        let version = self.version.as_ref().map(VersionGuard::to_string);
        let (table, key) = (&self.table, &self.key_column);
        let columns = columns.join(", ");
        let guard = version.map_or(String::new(), |version| format!(", version {version}"));
        format!("table {table}, key {key}, columns {columns}{guard}")
    }
}

impl Changelog {
    /// Sets the table up, or goes on with one that was set up the same way before. A table that was dropped since is
    /// built anew from the beginning.
    pub fn open(
        mut connection: Connection,
        topic: &str,
        options: &ChangelogOptions,
    ) -> Result<Self, ProjectError> {
        let table = Table::new(options)?;
        let projector = options.name.as_ref().unwrap_or(&options.table).clone();
        check_name(&projector)?;
        let owner = PositionOwner {
            projector,
            topic: topic.to_owned(),
            definition: options.definition(),
        };
        let position = set_up(&mut connection, &table, &owner)?;
        Ok(Self {
            connection,
            owner,
            position,
            batch: options.batch,
            shape: Shape::new(&options.columns(), options.version.as_ref()),
            upsert_sql: table.upsert_sql(),
            delete_sql: table.delete_sql(),
        })
    }

    /// The connection, for reading what is there.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Takes events, all behind the position and in order, in one transaction. Blocks while SQLite works.
    fn apply(&mut self, events: &[Event]) -> Result<Applied, ProjectError> {
        let Some(last) = events.last() else {
            return Ok(Applied::default());
        };
        let behavior = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior)?;
        let found = self.owner.load(&transaction)?.unwrap_or_default().0;
        if found != self.position {
            // Another program runs the same projector on this file; it goes on from where that one is.
            self.position = found;
            return Ok(Applied::default());
        }
        let mut applied = Applied::default();
        {
            let mut upsert = transaction.prepare_cached(&self.upsert_sql)?;
            let mut delete = transaction.prepare_cached(&self.delete_sql)?;
            let mut found = Vec::new();
            for event in events {
                let Some(key) = event.key() else {
                    applied.keyless += 1;
                    continue;
                };
                if event.is_tombstone() {
                    delete.execute([&*key])?;
                    applied.deletes += 1;
                    continue;
                }
                self.shape.fields.pick(event.payload(), &mut found);
                upsert.raw_bind_parameter(1, &*key)?;
                bind(&self.shape, event, &found, &mut upsert)?;
                match upsert.raw_execute()? {
                    0 => applied.outdated += 1,
                    _ => applied.upserts += 1,
                }
            }
        }
        let position = Position::of(last);
        self.owner.save(&transaction, &position)?;
        transaction.commit()?;
        self.position = position;
        applied.events = events.len() as u64;
        Ok(applied)
    }
}

/// Makes what is missing and finds the position, in one transaction.
fn set_up(
    connection: &mut Connection,
    table: &Table,
    owner: &PositionOwner,
) -> Result<Position, ProjectError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    positions::init(&transaction)?;
    let known = owner.load(&transaction)?;
    let exists = table.exists(&transaction)?;
    let position = match known {
        Some((_, was)) if exists && was != owner.definition => {
            let projector = owner.projector.clone();
            return Err(OtherDefinition { projector, was }.into());
        }
        Some((position, _)) if exists => {
            table.check_shape(&transaction)?;
            position
        }
        _ => {
            if !exists {
                // Whatever the name stood for before is gone with its table.
                owner.forget(&transaction)?;
                table.make(&transaction)?;
            }
            table.check_shape(&transaction)?;
            if table.has_rows(&transaction)? {
                let why = "it has rows that are not from this topic".to_owned();
                return Err(table.mismatch(why));
            }
            owner.save(&transaction, &Position::default())?;
            Position::default()
        }
    };
    table.make_indexes(&transaction)?;
    transaction.commit()?;
    Ok(position)
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
        tokio::task::spawn_blocking(move || this.blocking_lock().apply(&events))
    }
}

/// Binds everything behind the key.
fn bind(
    shape: &Shape,
    event: &Event,
    found: &[Option<&str>],
    upsert: &mut Statement<'_>,
) -> rusqlite::Result<()> {
    let id = event.id();
    let whole = |part| match part {
        Part::Payload => text(event.payload()),
        Part::Id => text(&id),
        Part::Ts => integer(event.ts()),
        Part::Seq | Part::Field(_) => integer(event.seq()),
    };
    let cells = shape.columns.iter().map(|(_, part, kind)| match *part {
        Part::Field(at) => column_value(found[at], *kind),
        part => whole(part),
    });
    let version = shape.version.map(|(part, compare)| match part {
        Part::Field(at) => version_value(found[at], compare),
        part => whole(part),
    });
    for (at, value) in (2..).zip(cells.chain(version)) {
        upsert.raw_bind_parameter(at, value)?;
    }
    Ok(())
}
