//! Events on their way to a subscriber that wants the latest version: payloads of earlier ones are lifted by the steps
//! that later versions declare, then by a function of the subscriber's own.

use super::SCHEMA_VERSION_HEADER;
use crate::core::Core;
use crate::event::EventFields;
use prombus_store::{Batch, Draft, Id, StoredEvent};
use serde_json::Value;
use std::fmt;
use std::sync::{Arc, Weak};

/// The header of a lifted event that says which version it was published with.
pub const UPCAST_FROM_HEADER: &str = "x-upcast-from";

/// A function that gives an event another payload; `None` leaves it as it is.
#[derive(Clone)]
pub struct UpcastFunction(Arc<Function>);

type Function = dyn Fn(&StoredEvent) -> Option<Value> + Send + Sync;

/// What a subscription does to its events.
pub(crate) struct Lifter {
    /// Does not keep the bus alive.
    core: Weak<Core>,
    is_declared: bool,
    function: Option<UpcastFunction>,
}

impl UpcastFunction {
    /// Any function.
    pub fn new(function: impl Fn(&StoredEvent) -> Option<Value> + Send + Sync + 'static) -> Self {
        Self(Arc::new(function))
    }
}

impl Lifter {
    /// `None` where nothing is lifted.
    pub(crate) fn new(
        core: &Arc<Core>,
        is_declared: bool,
        function: Option<UpcastFunction>,
    ) -> Option<Self> {
        (is_declared || function.is_some()).then(|| Self {
            core: Arc::downgrade(core),
            is_declared,
            function,
        })
    }

    /// The event as its subscriber wants it. One that cannot be lifted comes as it is stored, and its header says so.
    pub(crate) fn lift(&self, event: StoredEvent) -> StoredEvent {
        let declared = self.is_declared.then(|| self.declared(&event)).flatten();
        let event = declared.unwrap_or(event);
        let function = self.function.as_ref();
        let lifted = function.and_then(|function| {
            let headers = EventFields::of(&event).headers.into_iter().collect();
            with_payload(&event, &(function.0)(&event)?, headers)
        });
        lifted.unwrap_or(event)
    }

    fn declared(&self, event: &StoredEvent) -> Option<StoredEvent> {
        let core = self.core.upgrade()?;
        let named = core.topics.checked(event.topic()).ok()?;
        let schemas = core.schemas.of(&named.topic, named.schemas?).ok()?;
        let mut headers = EventFields::of(event).headers;
        let from = headers.get(SCHEMA_VERSION_HEADER)?.clone();
        let (version, payload) = schemas.lifted(from.parse().ok()?, event.payload())?;
        headers.insert(SCHEMA_VERSION_HEADER.to_owned(), version.to_string());
        headers.insert(UPCAST_FROM_HEADER.to_owned(), from);
        with_payload(event, &payload, headers.into_iter().collect())
    }
}

/// The same event with another payload and other headers.
fn with_payload(
    event: &StoredEvent,
    payload: &Value,
    headers: Vec<(String, String)>,
) -> Option<StoredEvent> {
    let (fields, payload) = (EventFields::of(event), payload.to_string());
    let id = Id::from_client(&event.id())?;
    let key = event.key();
    let mut batch = Batch::new();
    batch.publish(
        &event.topic().into(),
        &Draft {
            id: event.has_client_id().then_some(id),
            ts: event.has_client_ts().then(|| event.ts()),
            sid: fields.sid.as_deref(),
            key: key.as_deref(),
            partition: fields.partition,
            headers: &headers,
            payload: &payload,
            caused_by: &fields.caused_by,
            tags: &fields.tags,
            tombstone: event.is_tombstone(),
        },
    );
    let encoded = batch.events().next()?;
    Some(StoredEvent::encode(encoded, &id, event.ts(), event.seq()))
}

impl fmt::Debug for UpcastFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UpcastFunction")
    }
}
