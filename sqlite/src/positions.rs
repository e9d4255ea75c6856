//! How far each projector is: the table `prombus_positions`, written in the same transaction as the rows.

use crate::database::signed;
use prombus_connect::{Position, PositionOwner};
use rusqlite::{Connection, OptionalExtension, params};

/// The table, one row for each projector and topic.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS prombus_positions (
    projector  TEXT    NOT NULL,
    topic      TEXT    NOT NULL,
    seq        INTEGER NOT NULL,
    id         TEXT    NOT NULL,
    ts         INTEGER NOT NULL,
    definition TEXT    NOT NULL,
    PRIMARY KEY (projector, topic)
) WITHOUT ROWID";

const LOAD: &str =
    "SELECT seq, id, ts, definition FROM prombus_positions WHERE projector = ?1 AND topic = ?2";

const SAVE: &str = "INSERT INTO prombus_positions (projector, topic, seq, id, ts, definition)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT (projector, topic) DO UPDATE SET
        seq = excluded.seq, id = excluded.id, ts = excluded.ts, definition = excluded.definition";

/// Makes the table where there is none.
pub(crate) fn init(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(TABLE)
}

/// Where a projector's position is kept.
pub(crate) trait Positions {
    /// The position and the definition it was written under.
    fn load(&self, connection: &Connection) -> rusqlite::Result<Option<(Position, String)>>;

    /// Forgets the positions of this name in all topics.
    fn forget(&self, connection: &Connection) -> rusqlite::Result<()>;

    /// Writes the position, inside the transaction of the rows.
    fn save(&self, connection: &Connection, to: &Position) -> rusqlite::Result<()>;
}

impl Positions for PositionOwner {
    fn load(&self, connection: &Connection) -> rusqlite::Result<Option<(Position, String)>> {
        let mut load = connection.prepare_cached(LOAD)?;
        load.query_row(params![self.projector, self.topic], |row| {
            let position = Position {
                seq: row.get::<_, i64>(0)?.try_into().unwrap_or(0),
                id: row.get(1)?,
                ts: row.get::<_, i64>(2)?.try_into().unwrap_or(0),
            };
            Ok((position, row.get(3)?))
        })
        .optional()
    }

    fn forget(&self, connection: &Connection) -> rusqlite::Result<()> {
        let forget = "DELETE FROM prombus_positions WHERE projector = ?1";
        connection.execute(forget, [&self.projector])?;
        Ok(())
    }

    fn save(&self, connection: &Connection, to: &Position) -> rusqlite::Result<()> {
        let mut save = connection.prepare_cached(SAVE)?;
        save.execute(params![
            self.projector,
            self.topic,
            signed(to.seq),
            to.id,
            signed(to.ts),
            self.definition
        ])?;
        Ok(())
    }
}
