//! A row of the outbox as an event to publish.

use rusqlite::Row;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// The columns of a row, in the order in which they are read.
pub(super) const COLUMNS: &str =
    "seq, id, topic, payload, key, ts, headers, tags, caused_by, sid, attempts";

/// An event that waits to be published; its place is the row's `seq`.
pub type OutboxRow = prombus_connect::outbox::OutboxRow<i64>;

/// Reads a row. Other programs write these, so what cannot be an event is said in words.
pub(super) fn read(row: &Row<'_>) -> Result<OutboxRow, String> {
    let ts: Option<i64> = cell(row, "ts")?;
    let headers: BTreeMap<String, String> = listed(row, "headers")?;
    Ok(OutboxRow {
        place: cell(row, "seq")?,
        id: cell(row, "id")?,
        topic: cell(row, "topic")?,
        payload: cell(row, "payload")?,
        key: cell(row, "key")?,
        ts: ts
            .map(u64::try_from)
            .transpose()
            .map_err(|_| "ts is negative")?,
        headers: headers.into_iter().collect(),
        tags: listed(row, "tags")?,
        caused_by: listed(row, "caused_by")?,
        sid: cell(row, "sid")?,
        attempts: cell(row, "attempts")?,
    })
}

fn cell<T: rusqlite::types::FromSql>(row: &Row<'_>, name: &str) -> Result<T, String> {
    row.get(name).map_err(|error| format!("{name}: {error}"))
}

/// A column with JSON in it; nothing where it is `NULL`.
fn listed<T: DeserializeOwned + Default>(row: &Row<'_>, name: &str) -> Result<T, String> {
    match cell::<Option<String>>(row, name)? {
        None => Ok(T::default()),
        Some(json) => serde_json::from_str(&json).map_err(|error| format!("{name}: {error}")),
    }
}
