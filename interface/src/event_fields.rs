//! The fields of an event that its head does not point at, read from its JSON.

use prombus_store::StoredEvent;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What a publisher said about an event beside id, time, key and payload.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct EventFields {
    /// Boot or session id of the publisher.
    #[serde(default)]
    pub sid: Option<String>,
    /// Only where the topic is partitioned.
    #[serde(default)]
    pub partition: Option<u32>,
    /// Names and values.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Ids of the events that caused this one.
    #[serde(default)]
    pub caused_by: Vec<String>,
    /// Free labels.
    #[serde(default)]
    pub tags: Vec<String>,
}

impl EventFields {
    /// Reads those of a stored event.
    pub fn of(event: &StoredEvent) -> Self {
        Self::from_record(event.json_bytes())
    }

    /// Reads them from a record. Records were written as JSON by the bus, so what cannot be read counts as absent.
    pub fn from_record(json: &[u8]) -> Self {
        serde_json::from_slice(json).unwrap_or_default()
    }
}
