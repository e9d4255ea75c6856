//! `/schedules`: events that are to be published later.

use super::query::query;
use prombus_interface::schemas::{EventId, Key, Topic};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The reply to a publish whose event is to be published later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleReply {
    /// The id that the event will have, or that its ids will begin with where it is repeated.
    #[schemars(with = "EventId")]
    pub id: String,
    /// Always true: the event has no position yet.
    pub scheduled: bool,
    /// When it is due, in epoch milliseconds.
    pub due: u64,
    /// Where it goes.
    #[schemars(with = "Topic")]
    pub topic: String,
    /// It was scheduled before under this id: nothing was stored, this is the first one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub duplicate: bool,
}

/// An event that waits to be published.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PendingSchedule {
    /// Its id.
    #[schemars(with = "EventId")]
    pub id: String,
    /// Where its event goes.
    #[schemars(with = "Topic")]
    pub topic: String,
    /// When it is due next, in epoch milliseconds.
    pub due: u64,
    /// How it is repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
    /// Missed times are published too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub catch_up: bool,
    /// The event's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Key>")]
    pub key: Option<String>,
    /// The event's payload.
    #[schemars(with = "serde_json::Value")]
    pub payload: Box<RawValue>,
}

/// Some of the schedules, in the order of their ids.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SchedulePage {
    /// The schedules; there may be none although there are more pages.
    pub schedules: Vec<PendingSchedule>,
    /// The id to go on from, with `after`; `null` where there is no more.
    pub next: Option<String>,
}

query! {
    /// Which schedules are requested.
    #[derive(Debug, Clone, PartialEq, Eq, Default, JsonSchema)]
    pub struct SchedulesQuery {
        /// Only those of this topic.
        #[schemars(with = "Option<Topic>")]
        pub topic: Option<String>,
        /// Only those behind this id.
        pub after: Option<String>,
        /// The most schedules of one page, which has up to 10,000.
        #[schemars(range(min = 1), extend("default" = 1_000))]
        pub limit: Option<u64>,
    }
}
