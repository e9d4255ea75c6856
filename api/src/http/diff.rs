//! `GET /diff/:topic`: what changed between two times.

use super::query::{Query, QueryWriter};
use super::state::StateItem;
use crate::error::ParseError;
use serde::{Deserialize, Serialize};

/// Which times are compared, and which keys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiffQuery {
    /// The earlier time, in epoch milliseconds.
    pub from: u64,
    /// The later time; now where it is not said.
    pub to: Option<u64>,
    /// Only keys that begin with this.
    pub prefix: Option<String>,
    /// Only keys behind this one.
    pub after: Option<String>,
    /// The most keys that are compared for one page.
    pub limit: Option<u64>,
}

/// The keys that changed, of those that were compared for this page.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DiffPage {
    /// The topic.
    pub topic: String,
    /// The earlier time.
    pub from: u64,
    /// The later time.
    pub to: u64,
    /// Keys that came, with their states at the later time.
    pub added: Vec<StateItem>,
    /// Keys that have another payload.
    pub changed: Vec<ChangedKey>,
    /// Keys that went, with their states at the earlier time.
    pub deleted: Vec<StateItem>,
    /// The key to go on from, with `after`; `null` where there is no more. A page may be empty and have a next one.
    pub next: Option<String>,
}

/// A key that has another payload.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChangedKey {
    /// The key.
    pub key: String,
    /// Its state at the earlier time.
    pub from: StateItem,
    /// Its state at the later time.
    pub to: StateItem,
}

impl DiffQuery {
    /// Reads the query.
    pub fn parse(query: &Query<'_>) -> Result<Self, ParseError> {
        query.required("from")?;
        Ok(Self {
            from: query.number("from")?.unwrap_or_default(),
            to: query.number("to")?,
            prefix: query.get("prefix").map(str::to_owned),
            after: query.get("after").map(str::to_owned),
            limit: query.number("limit")?,
        })
    }

    /// Writes the query.
    pub fn to_query(&self) -> String {
        let mut query = QueryWriter::default();
        query
            .push("from", &self.from.to_string())
            .push_if("to", self.to)
            .push_if("prefix", self.prefix.as_ref())
            .push_if("after", self.after.as_ref())
            .push_if("limit", self.limit)
            .finish()
    }
}
