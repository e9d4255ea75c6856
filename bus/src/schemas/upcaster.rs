//! Events on their way to a reader that wants the latest version: payloads of earlier ones are upcast by the steps that
//! later versions declare, then by a function of the reader's own.

use super::SCHEMA_VERSION_HEADER;
use crate::bus::Bus;
use crate::core::Core;
use crate::error::{SchemaError, StoreFailed};
use prombus_interface::EventFields;
use prombus_store::{Batch, Draft, Id, StoredEvent};
use serde_json::Value;
use std::fmt;
use std::sync::{Arc, Weak};

/// The header of an upcast event that says which version it was published with.
pub const UPCAST_FROM_HEADER: &str = "x-upcast-from";

/// A function that gives an event another payload; `None` leaves it as it is.
#[derive(Clone)]
pub struct UpcastFunction(Arc<Function>);

type Function = dyn Fn(&StoredEvent) -> Option<Value> + Send + Sync;

/// What a subscription does to its events.
pub(crate) struct Upcaster {
    /// Does not keep the bus alive.
    core: Weak<Core>,
    /// Whether the steps that schemas declare are applied.
    is_declared: bool,
    function: Option<UpcastFunction>,
}

impl UpcastFunction {
    /// Any function. It runs on the task that takes the delivery.
    pub fn new(function: impl Fn(&StoredEvent) -> Option<Value> + Send + Sync + 'static) -> Self {
        Self(Arc::new(function))
    }
}

impl Bus {
    /// An event as one of the latest version of its topic's schema. It comes as it is stored where it has no version,
    /// where a version between was removed, and where the result would not fit; its header says which version it is of.
    ///
    /// It does not wait for the store; [`Self::load_schemas`] does, before the first event of a topic.
    pub fn upcast(&self, event: StoredEvent) -> StoredEvent {
        declared(self.core(), &event).unwrap_or(event)
    }

    /// Loads the schemas of a topic into memory.
    pub async fn load_schemas(&self, topic: &str) -> Result<(), SchemaError> {
        Ok(load(self.core(), topic).await?)
    }
}

impl Upcaster {
    /// `None` where events are delivered as they are stored.
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

    /// The event as its subscriber wants it.
    pub(crate) fn upcast(&self, event: StoredEvent) -> StoredEvent {
        let core = self.core.upgrade().filter(|_| self.is_declared);
        let event = core
            .and_then(|core| declared(&core, &event))
            .unwrap_or(event);
        let function = self.function.as_ref();
        let payload = function.and_then(|function| (function.0)(&event));
        let upcast = payload.and_then(|payload| {
            let headers = EventFields::of(&event).headers.into_iter().collect();
            with_payload(&event, &payload, headers)
        });
        upcast.unwrap_or(event)
    }
}

/// Loads the schemas of a topic, so that [`Upcaster::upcast`] need not wait for them.
pub(crate) async fn load(core: &Core, topic: &str) -> Result<(), StoreFailed> {
    if let Ok(named) = core.topics.checked(topic)
        && let Some(generation) = named.traits.schemas
    {
        core.schemas.load(&named.topic, generation).await?;
    }
    Ok(())
}

/// The event after the steps that later versions declare.
fn declared(core: &Core, event: &StoredEvent) -> Option<StoredEvent> {
    let named = core.topics.checked(event.topic()).ok()?;
    let schemas = core.schemas.of(&named.topic, named.traits.schemas?).ok()?;
    let mut headers = EventFields::of(event).headers;
    let from = headers.get(SCHEMA_VERSION_HEADER)?.clone();
    let (version, payload) = schemas.upcast(from.parse().ok()?, event.payload())?;
    headers.insert(SCHEMA_VERSION_HEADER.to_owned(), version.to_string());
    headers.insert(UPCAST_FROM_HEADER.to_owned(), from);
    with_payload(event, &payload, headers.into_iter().collect())
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
            ..Draft::default()
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
