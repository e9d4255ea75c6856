//! `/nodes`: the servers that share a store.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The reply of `GET /nodes`: the servers that share the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeList {
    /// The server's clock, in epoch milliseconds.
    pub now_ms: u64,
    /// The nodes; none where the server has its store for itself.
    pub nodes: Vec<Node>,
}

/// A server that shares its store with others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// Its number, in hexadecimal digits.
    pub node: String,
    /// Where its clients reach it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Whether it is the one that replies.
    pub is_this: bool,
    /// When it sent its last beat that is known, by its own clock, in epoch milliseconds.
    pub beat_ms: u64,
    /// How many groups it served then.
    pub groups: u64,
    /// How many groups it relayed its members of to other nodes then.
    #[serde(default)]
    pub relayed_groups: u64,
    /// The last commit of the shared log that was in its copy then.
    pub applied: u64,
    /// How many commits that it had heard of were not in it yet.
    pub lag: u64,
}
