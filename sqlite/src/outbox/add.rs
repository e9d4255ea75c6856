//! Adding an event to the outbox, inside the caller's own transaction.

use super::Outbox;
use crate::database::signed;
use crate::error::OutboxError;
use prombus::PublishOptions;
use prombus_connect::outbox::{check_added, to_json};
use rusqlite::{Connection, ErrorCode, params};
use serde::Serialize;
use std::collections::BTreeMap;

const ADD: &str = "INSERT INTO prombus_outbox
    (id, topic, payload, key, ts, headers, tags, caused_by, sid)
    VALUES (coalesce(?1, lower(hex(randomblob(16)))), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
    RETURNING id";

/// Why an event was not added.
pub type AddError = prombus_connect::outbox::AddError<OutboxError>;

impl Outbox {
    /// Adds an event whose payload is JSON text; its id. It is published if and only if the transaction commits, in
    /// the order of the rows where it has a key.
    ///
    /// What can be seen to be wrong is refused here, where the caller can still do something about it. How large
    /// things may be is for the bus to say.
    pub fn add(
        transaction: &Connection,
        topic: &str,
        payload: &str,
        options: &PublishOptions<'_>,
    ) -> Result<String, AddError> {
        let payload = check_added(topic, payload, options)?;
        let headers: BTreeMap<&str, &str> = options
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let mut add = transaction.prepare_cached(ADD).map_err(failed)?;
        let added = add.query_row(
            params![
                options.id,
                topic,
                &*payload,
                options.key,
                options.ts.map(signed),
                (!headers.is_empty())
                    .then(|| to_json(&headers))
                    .transpose()?,
                (!options.tags.is_empty())
                    .then(|| to_json(options.tags))
                    .transpose()?,
                (!options.caused_by.is_empty())
                    .then(|| to_json(options.caused_by))
                    .transpose()?,
                options.sid,
            ],
            |row| row.get(0),
        );
        added.map_err(|error| match (error.sqlite_error_code(), options.id) {
            (Some(ErrorCode::ConstraintViolation), Some(id)) => {
                AddError::IdTaken { id: id.to_owned() }
            }
            _ => failed(error),
        })
    }

    /// Adds an event whose payload is a value.
    pub fn add_value<T: Serialize + ?Sized>(
        transaction: &Connection,
        topic: &str,
        value: &T,
        options: &PublishOptions<'_>,
    ) -> Result<String, AddError> {
        Self::add(transaction, topic, &to_json(value)?, options)
    }
}

fn failed(error: rusqlite::Error) -> AddError {
    AddError::Outbox(error.into())
}
