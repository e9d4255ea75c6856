//! Opening a database file the way that projectors and drainers use it.

use crate::error::{OpenError, SqliteError};
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;

/// How long a statement waits for another program's lock before it fails as locked.
pub const BUSY_TIMEOUT_MS: u64 = 10_000;
/// How many prepared statements a connection keeps.
const CACHED_STATEMENTS: usize = 32;
/// The most memory that a connection takes for pages, in KiB. SQLite's own 2 MiB make a table with scattered keys read
/// the same pages from the file over and over.
const CACHE_KIB: i64 = 32 << 10;
/// How many pages are written to the log beside the file before they are brought into it. A batch with scattered keys
/// touches thousands, and SQLite's own 1,000 would bring nearly every batch over by itself.
const CHECKPOINT_PAGES: i64 = 8_000;

/// Opens a database, and makes it where there is none. It is in WAL mode, so that others read while it is written.
///
/// `synchronous` is `NORMAL`: a power cut may take the last transactions, but always whole and in order. What a
/// projector or a drainer loses that way it does again, for its position goes with its rows.
pub fn open(path: impl AsRef<Path>) -> Result<Connection, OpenError> {
    open_with(path.as_ref(), OpenFlags::SQLITE_OPEN_CREATE)
}

/// Opens a database that has to be there already.
pub fn open_existing(path: impl AsRef<Path>) -> Result<Connection, OpenError> {
    let path = path.as_ref();
    if path.exists() {
        open_with(path, OpenFlags::empty())
    } else {
        Err(OpenError::Missing {
            path: path.to_owned(),
        })
    }
}

/// A number as SQLite keeps it, which has 63 bits for it.
pub(crate) fn signed(number: u64) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

fn open_with(path: &Path, more: OpenFlags) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
    let opened = Connection::open_with_flags(path, flags).and_then(|connection| {
        prepare(&connection)?;
        Ok(connection)
    });
    opened.map_err(|error| OpenError::Failed {
        path: path.to_owned(),
        cause: SqliteError::from(error),
    })
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::from_millis(BUSY_TIMEOUT_MS))?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update_and_check(None, "wal_autocheckpoint", CHECKPOINT_PAGES, |_| Ok(()))?;
    // Reading the schema is what finds out that a file is something else.
    connection.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_made_in_wal_mode_only_where_that_was_asked_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.db");
        assert!(matches!(
            open_existing(&path),
            Err(OpenError::Missing { .. })
        ));
        let made = open(&path).expect("a database");
        let mode: String = made
            .pragma_query_value(None, "journal_mode", |row| row.get(0))
            .expect("a mode");
        assert_eq!(mode, "wal");
        drop(made);
        open_existing(&path).expect("it is there now");
    }

    #[test]
    fn what_is_no_database_is_said_to_be_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.txt");
        std::fs::write(&path, "this is a letter, not a database. ".repeat(100)).expect("a file");
        let error = open(&path).expect_err("no database");
        assert!(
            error.to_string().contains("not an SQLite database"),
            "{error}"
        );
        let error = open(folder.path().join("none/a.db")).expect_err("no folder");
        assert!(error.to_string().contains("cannot open"), "{error}");
    }
}
