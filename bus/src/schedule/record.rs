//! How schedules are stored: each change is an event of [`SCHEDULES_TOPIC`] under the schedule's id. The event that waits
//! has the due time as its ts, the payload, sid, tags, causes and headers of the event that it is to become, and one more
//! header with the rest. A tombstone says that it was published or removed.

use crate::topic::TopicConfig;
use prombus_interface::EventFields;
use prombus_store::{Batch, Draft, ExpectedPosition, StoredEvent};
use serde::{Deserialize, Serialize};

/// The topic that schedules are stored in. Its name is none that a user can give to a topic.
pub(crate) const SCHEDULES_TOPIC: &str = "$schedules";
/// The header with what is not in the event itself. Its name is none that HTTP takes.
const META_HEADER: &str = "$schedule";

/// What a schedule says beside its event and its due time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Meta {
    /// Where the event goes.
    pub(super) topic: String,
    /// The event's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
    /// How it is repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) every: Option<String>,
    /// Whether missed times are published too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) catch_up: bool,
}

/// A schedule that waits, as it is stored.
pub(super) struct Record {
    pub(super) id: String,
    pub(super) meta: Meta,
    /// What the event that it becomes has beside key and payload.
    pub(super) fields: EventFields,
}

impl Meta {
    /// Headers of an event, with this among them.
    pub(super) fn with_headers(&self, headers: &[(String, String)]) -> Vec<(String, String)> {
        // Strings are always written.
        let meta = serde_json::to_string(self).unwrap_or_default();
        let mut all = vec![(META_HEADER.to_owned(), meta)];
        all.extend_from_slice(headers);
        all
    }
}

impl Record {
    /// Reads a stored event; `None` where it says that the schedule is gone, or cannot be read.
    pub(super) fn of(event: &StoredEvent) -> Option<Self> {
        if event.is_tombstone() {
            return None;
        }
        let mut fields = EventFields::of(event);
        let meta = fields.headers.remove(META_HEADER)?;
        Some(Self {
            id: event.key()?.into_owned(),
            meta: serde_json::from_str(&meta).ok()?,
            fields,
        })
    }

    /// The headers of the event that it becomes.
    pub(super) fn headers(&self) -> Vec<(String, String)> {
        let headers = self.fields.headers.iter();
        headers
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }
}

/// Adds the event that says that a schedule is gone, if the one at `seq` is still its last.
pub(super) fn forget(batch: &mut Batch, id: &str, seq: u64) {
    let draft = Draft {
        key: Some(id),
        payload: "null",
        tombstone: true,
        expected: behind(seq),
        ..Draft::default()
    };
    batch.publish(&SCHEDULES_TOPIC.into(), &draft);
}

/// Expects the event at `seq` to be the last of its key.
pub(super) fn behind(seq: u64) -> ExpectedPosition {
    ExpectedPosition {
        seq: None,
        key_seq: Some(seq),
    }
}

/// Of schedules that are gone nothing is kept.
pub(super) fn schedules_config() -> TopicConfig {
    TopicConfig {
        compaction: true,
        ..TopicConfig::default()
    }
}
