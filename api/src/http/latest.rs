//! `GET /latest-by-key`: the latest event of each key.

use super::query::query;
use super::read::write_events;
use crate::record::Record;
use crate::write::write_text;
use prombus_interface::schemas::{Flag, Topic};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

query! {
    /// Whose latest event is requested: those of all keys where none is named.
    #[derive(Debug, Clone, PartialEq, Eq, Default, JsonSchema)]
    pub struct LatestQuery {
        /// The topic.
        #[schemars(with = "Topic")]
        pub topic: String,
        /// The keys, one by one; all where none is named.
        #[schemars(default)]
        pub keys: Vec<String> as "key",
        /// Only keys that begin with this, where none is named.
        pub prefix: Option<String>,
        /// Only keys behind this one, where none is named.
        pub after: Option<String>,
        /// The most events of one page, which has up to 10,000.
        #[schemars(range(min = 1), extend("default" = 1_000))]
        pub limit: Option<u64>,
        /// Of named keys that were deleted, the event that says so.
        #[schemars(with = "Option<Flag>")]
        pub tombstones: bool,
    }
}

/// The latest events of some keys.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LatestPage {
    /// The topic.
    #[schemars(with = "Topic")]
    pub topic: String,
    /// How many events are here.
    pub count: u64,
    /// The records.
    // As they are stored; `Record::parse` takes them apart.
    #[schemars(with = "Vec<Record>")]
    pub events: Vec<Box<RawValue>>,
    /// The key to go on from, with `after`; `null` where there is no more.
    pub next: Option<String>,
}

/// Appends a [`LatestPage`] around stored records.
pub fn write_latest_page<'a>(
    out: &mut Vec<u8>,
    topic: &str,
    events: impl IntoIterator<Item = &'a [u8], IntoIter: ExactSizeIterator>,
    next: Option<&str>,
) {
    write_events(out, topic, events);
    match next {
        Some(next) => write_text(out, next),
        None => out.extend_from_slice(b"null"),
    }
    out.push(b'}');
}
