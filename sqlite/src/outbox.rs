//! An outbox: events that are written to a table in the same transaction as what they are about, and published
//! afterwards by a drainer. Either both happened or neither did, and a crash in between neither loses nor doubles one.
//!
//! The table is `prombus_outbox`; services in any language may write to it.

mod add;
mod claims;
mod row;
#[cfg(test)]
mod tests;

pub use add::AddError;
pub use claims::{Claims, SharedClaims};
pub use prombus_connect::outbox::{
    Drained, DrainerOptions, OutboxCounts, Publish, PublishFailure, SentAt, Settled,
};
pub use row::OutboxRow;

use crate::error::OutboxError;
use prombus::Clock;
use rusqlite::Connection;
use std::sync::Arc;

/// The table and its indexes, each over the rows that are still of interest only.
///
/// Whoever adds a row has to give `topic` and `payload`; the id is made where none is given.
pub const SCHEMA: &str = "\
CREATE TABLE IF NOT EXISTS prombus_outbox (
    seq            INTEGER PRIMARY KEY AUTOINCREMENT,
    id             TEXT    NOT NULL DEFAULT (lower(hex(randomblob(16)))),
    topic          TEXT    NOT NULL,
    payload        TEXT    NOT NULL,
    key            TEXT,
    ts             INTEGER,
    headers        TEXT,
    tags           TEXT,
    caused_by      TEXT,
    sid            TEXT,
    created_ms     INTEGER NOT NULL
                   DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
    state          TEXT    NOT NULL DEFAULT 'pending'
                   CHECK (state IN ('pending', 'claimed', 'sent', 'failed')),
    attempts       INTEGER NOT NULL DEFAULT 0,
    due_ms         INTEGER NOT NULL DEFAULT 0,
    worker         TEXT,
    lease_until_ms INTEGER,
    sent_ms        INTEGER,
    sent_seq       INTEGER,
    error          TEXT,
    UNIQUE (topic, id)
);
CREATE INDEX IF NOT EXISTS prombus_outbox_pending ON prombus_outbox (seq) WHERE state = 'pending';
CREATE INDEX IF NOT EXISTS prombus_outbox_claimed ON prombus_outbox (lease_until_ms) WHERE state = 'claimed';
CREATE INDEX IF NOT EXISTS prombus_outbox_held ON prombus_outbox (topic, key, seq)
    WHERE key IS NOT NULL AND state = 'claimed';
CREATE INDEX IF NOT EXISTS prombus_outbox_waiting ON prombus_outbox (topic, key, seq)
    WHERE key IS NOT NULL AND state = 'pending' AND due_ms > 0;
CREATE INDEX IF NOT EXISTS prombus_outbox_sent ON prombus_outbox (sent_ms) WHERE state = 'sent';
";

/// The outbox of a database.
#[derive(Debug, Clone, Copy)]
pub struct Outbox;

/// Publishes what is in an outbox.
pub type Drainer = prombus_connect::outbox::Drainer<SharedClaims>;

impl Outbox {
    /// Makes the table where there is none. Doing it twice is fine.
    pub fn init(connection: &Connection) -> Result<(), OutboxError> {
        connection.execute_batch(SCHEMA)?;
        Ok(())
    }

    /// A drainer of this database, in which the outbox has to be.
    pub fn drainer(
        connection: Connection,
        options: DrainerOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Drainer, OutboxError> {
        options.check()?;
        let worker = options.worker.clone();
        let claims = Claims::new(connection, worker, options.lease_ms, options.backoff)?;
        Ok(Drainer::new(claims.into(), options, clock))
    }

    /// How many rows there are.
    pub fn counts(connection: &Connection) -> Result<OutboxCounts, OutboxError> {
        let mut counts = OutboxCounts::default();
        let mut query =
            connection.prepare("SELECT state, count(*) FROM prombus_outbox GROUP BY state")?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            let count = row.get::<_, i64>(1)?.try_into().unwrap_or(0);
            match row.get_ref(0)?.as_str().unwrap_or_default() {
                "pending" => counts.pending = count,
                "claimed" => counts.claimed = count,
                "sent" => counts.sent = count,
                _ => counts.failed = count,
            }
        }
        Ok(counts)
    }
}
