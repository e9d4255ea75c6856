//! `GET /diff/:topic`: what changed between two times.

use super::query::query;
use super::state::StateItem;
use prombus_interface::schemas::{Key, Topic};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

query! {
    /// Which times are compared, and which keys.
    #[derive(Debug, Clone, PartialEq, Eq, Default, JsonSchema)]
    pub struct DiffQuery {
        /// The earlier time, in epoch milliseconds.
        pub from: u64,
        /// The later time; now where it is left out.
        pub to: Option<u64>,
        /// Only keys that begin with this.
        pub prefix: Option<String>,
        /// Only keys behind this one.
        pub after: Option<String>,
        /// The most keys that are compared for one page.
        #[schemars(range(min = 1), extend("default" = 1_000))]
        pub limit: Option<u64>,
    }
}

/// The keys that changed, of those that were compared for this page.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DiffPage {
    /// The topic.
    #[schemars(with = "Topic")]
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
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ChangedKey {
    /// The key.
    #[schemars(with = "Key")]
    pub key: String,
    /// Its state at the earlier time.
    pub from: StateItem,
    /// Its state at the later time.
    pub to: StateItem,
}
