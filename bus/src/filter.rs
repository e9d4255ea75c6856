//! Which events of a topic a group wants. What does not match is settled unseen.

use crate::pattern::Pattern;
use prombus_interface::EventFields;
use prombus_store::StoredEvent;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A group's filter.
#[derive(Clone, Default)]
pub enum Filter {
    /// Every event.
    #[default]
    All,
    /// By the fields of the event; stored with the group.
    Fields(FieldFilter),
    /// Whatever a function says. It lives as long as the group has members: a function cannot be stored, so the subscriber that
    /// subscribes after a restart has to bring it again.
    Function(FilterFunction),
}

/// A filter in process.
pub type FilterFunction = Arc<dyn Fn(&StoredEvent) -> bool + Send + Sync>;

/// A filter as it goes over the wire. An event matches when everything that is named here fits.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldFilter {
    /// The event has a key, and the key matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Pattern>,
    /// The event has all these headers with exactly these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The event has all these tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

impl Filter {
    /// A filter that asks a function.
    pub fn function(function: impl Fn(&StoredEvent) -> bool + Send + Sync + 'static) -> Self {
        Self::Function(Arc::new(function))
    }

    /// Whether the group wants this event. A function that panics wants it: better seen twice than lost.
    pub fn matches(&self, event: &StoredEvent) -> bool {
        match self {
            Self::All => true,
            Self::Fields(fields) => fields.matches(event),
            Self::Function(function) => {
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| function(event)))
                    .unwrap_or(true)
            }
        }
    }
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

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("All"),
            Self::Fields(fields) => fields.fmt(f),
            Self::Function(_) => f.write_str("Function"),
        }
    }
}
