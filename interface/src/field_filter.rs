//! Which events of a topic a group wants, by their fields.

use crate::event_fields::EventFields;
use crate::pattern::Pattern;
#[cfg(feature = "schema")]
use crate::schemas::Key;
use prombus_store::StoredEvent;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A filter that is stored with its group. An event matches when everything that is named here fits.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FieldFilter {
    /// The event has a key, and the key matches this pattern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Key>"))]
    pub key: Option<Pattern>,
    /// The event has all these headers with exactly these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The event has all these tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

impl FieldFilter {
    /// Whether everything that is named fits.
    pub fn matches(&self, event: &StoredEvent) -> bool {
        if let Some(pattern) = &self.key
            && !event.key().is_some_and(|key| pattern.matches(&key))
        {
            return false;
        }
        if self.headers.is_empty() && self.tags.is_empty() {
            return true;
        }
        let fields = EventFields::of(event);
        let headers_fit = self
            .headers
            .iter()
            .all(|(name, value)| fields.headers.get(name) == Some(value));
        headers_fit && self.tags.iter().all(|tag| fields.tags.contains(tag))
    }
}
