//! Dedupe marks in the table `prombus_dedupe`.
//!
//! [`SqliteDedupe`] is a place for marks like any other. [`seen`] and [`mark`] do the same on a connection or an open
//! transaction of the caller's own: where the mark commits together with the effect, the effect happens exactly once.

#[cfg(test)]
mod tests;

use crate::database::signed;
use prombus::error::DedupeError;
use prombus::{Answer, Clock, DedupeStore};
use rusqlite::{Connection, params};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS prombus_dedupe (
        scope      TEXT    NOT NULL,
        id         TEXT    NOT NULL,
        expires_ms INTEGER NOT NULL,
        PRIMARY KEY (scope, id)
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS prombus_dedupe_by_expiry ON prombus_dedupe (expires_ms);";

const SEEN: &str = "SELECT EXISTS (SELECT 1 FROM prombus_dedupe
    WHERE scope = ?1 AND id = ?2 AND expires_ms > ?3)";

const MARK: &str = "INSERT INTO prombus_dedupe (scope, id, expires_ms) VALUES (?1, ?2, ?3)
    ON CONFLICT (scope, id) DO UPDATE SET expires_ms = excluded.expires_ms";

const PURGE: &str = "DELETE FROM prombus_dedupe WHERE (scope, id) IN
    (SELECT scope, id FROM prombus_dedupe WHERE expires_ms <= ?1 ORDER BY expires_ms LIMIT ?2)";

/// How many marks that ran out go with each new one: more than one, so that they never pile up.
const PURGED_BY_MARK: u64 = 4;

/// Marks in a database of their own connection.
#[derive(Clone)]
pub struct SqliteDedupe {
    connection: Arc<Mutex<Connection>>,
    clock: Arc<dyn Clock>,
}

/// Makes the table where there is none.
pub fn init(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(TABLE)
}

/// Whether `id` is marked in `scope`, and its mark has not run out.
pub fn seen(connection: &Connection, scope: &str, id: &str, now_ms: u64) -> rusqlite::Result<bool> {
    let mut seen = connection.prepare_cached(SEEN)?;
    seen.query_row(params![scope, id, signed(now_ms)], |row| row.get(0))
}

/// Marks `id` in `scope` for `ttl_ms` from now; marking it again renews the time. A few marks that ran out go.
pub fn mark(
    connection: &Connection,
    scope: &str,
    id: &str,
    ttl_ms: u64,
    now_ms: u64,
) -> rusqlite::Result<()> {
    let expires_ms = signed(now_ms.saturating_add(ttl_ms));
    purge(connection, now_ms, PURGED_BY_MARK)?;
    let mut mark = connection.prepare_cached(MARK)?;
    mark.execute(params![scope, id, expires_ms])?;
    Ok(())
}

/// Removes up to `limit` marks that ran out, the oldest first, and says how many went.
pub fn purge(connection: &Connection, now_ms: u64, limit: u64) -> rusqlite::Result<u64> {
    let mut purge = connection.prepare_cached(PURGE)?;
    let gone = purge.execute(params![signed(now_ms), signed(limit)])?;
    Ok(gone as u64)
}

impl SqliteDedupe {
    /// Marks in this database; the table is made where there is none.
    pub fn new(connection: Connection, clock: Arc<dyn Clock>) -> Result<Self, DedupeError> {
        init(&connection).map_err(DedupeError::failed)?;
        Ok(Self {
            connection: Arc::new(Mutex::new(connection)),
            clock,
        })
    }

    /// Does something with the connection on a thread that may block.
    fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection, u64) -> rusqlite::Result<T> + Send + 'static,
    ) -> Answer<T, DedupeError> {
        let this = self.clone();
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || {
                let connection = this.connection.lock();
                let connection = connection.unwrap_or_else(PoisonError::into_inner);
                work(&connection, this.clock.now_ms())
            });
            let done = done.await.map_err(DedupeError::failed)?;
            done.map_err(DedupeError::failed)
        })
    }
}

impl DedupeStore for SqliteDedupe {
    fn seen(&self, scope: &str, id: &str) -> Answer<bool, DedupeError> {
        let (scope, id) = (scope.to_owned(), id.to_owned());
        self.with(move |connection, now_ms| seen(connection, &scope, &id, now_ms))
    }

    fn mark(&self, scope: &str, id: &str, ttl_ms: u64) -> Answer<(), DedupeError> {
        let (scope, id) = (scope.to_owned(), id.to_owned());
        self.with(move |connection, now_ms| mark(connection, &scope, &id, ttl_ms, now_ms))
    }
}

impl fmt::Debug for SqliteDedupe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteDedupe").finish_non_exhaustive()
    }
}
