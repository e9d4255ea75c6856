//! What an event has to be before it is added to an outbox. How large things may be is for the bus to say.

use prombus::error::{InvalidField, InvalidJson, InvalidPayload, InvalidTopic};
use prombus::{Id, PublishOptions, check_topic, compact_json};
use serde::Serialize;
use std::borrow::Cow;
use thiserror::Error;

/// Why an event was not added; `E` is the error of the connector's outbox.
#[derive(Debug, Error)]
#[allow(
    missing_docs,
    reason = "each variant is the fact it carries, which says it all"
)]
pub enum AddError<E> {
    #[error(transparent)]
    InvalidTopic(#[from] InvalidTopic),
    #[error(transparent)]
    InvalidJson(#[from] InvalidJson),
    #[error(transparent)]
    InvalidPayload(#[from] InvalidPayload),
    #[error(transparent)]
    InvalidField(#[from] InvalidField),
    #[error("the outbox holds an event {id:?} for this topic already")]
    IdTaken { id: String },
    #[error(transparent)]
    Outbox(E),
}

/// Checks an event, and returns its payload without insignificant whitespace.
pub fn check_added<'a, E>(
    topic: &str,
    payload: &'a str,
    options: &PublishOptions<'_>,
) -> Result<Cow<'a, str>, AddError<E>> {
    check_topic(topic)?;
    let payload = compact_json(payload)?;
    match options.id.filter(|id| Id::from_client(id).is_none()) {
        Some(id) => Err(InvalidField::id(id).into()),
        None => Ok(payload),
    }
}

/// A value as JSON text.
pub fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<String, InvalidPayload> {
    serde_json::to_string(value).map_err(|error| InvalidPayload {
        reason: error.to_string(),
    })
}
