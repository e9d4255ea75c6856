//! `/schedules`: events that are to be published later.

use super::query::{Query, QueryWriter};
use crate::error::ParseError;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The reply to a publish whose event is to be published later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleReply {
    /// The id that the event will have, or that its ids will begin with where it is repeated.
    pub id: String,
    /// Always true: the event has no position yet.
    pub scheduled: bool,
    /// When it is due, in epoch milliseconds.
    pub due: u64,
    /// Where it goes.
    pub topic: String,
    /// It was scheduled before under this id: nothing was stored, this is the first one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub duplicate: bool,
}

/// A schedule that waits.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PendingSchedule {
    /// Its id.
    pub id: String,
    /// Where its event goes.
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
    pub key: Option<String>,
    /// The event's payload.
    pub payload: Box<RawValue>,
}

/// Some of the schedules, in the order of their ids.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SchedulePage {
    /// The schedules; there may be none although there are more pages.
    pub schedules: Vec<PendingSchedule>,
    /// The id to go on from, with `after`; `null` where there is no more.
    pub next: Option<String>,
}

/// Which schedules are requested.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SchedulesQuery {
    /// Only those of this topic.
    pub topic: Option<String>,
    /// Only those behind this id.
    pub after: Option<String>,
    /// The most schedules of one page.
    pub limit: Option<u64>,
}

impl SchedulesQuery {
    /// Reads the query.
    pub fn parse(query: &Query<'_>) -> Result<Self, ParseError> {
        Ok(Self {
            topic: query.get("topic").map(str::to_owned),
            after: query.get("after").map(str::to_owned),
            limit: query.number("limit")?,
        })
    }

    /// Writes the query.
    pub fn to_query(&self) -> String {
        let mut query = QueryWriter::default();
        query
            .push_if("topic", self.topic.as_ref())
            .push_if("after", self.after.as_ref())
            .push_if("limit", self.limit)
            .finish()
    }
}
