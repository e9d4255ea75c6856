//! The replies of `POST /ack`, `/nack` and `/modack`. Their bodies are the frames of the same name without op.

use crate::code::Code;
use prombus_interface::schemas::{EventId, Topic};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What became of the ids.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SettleReply {
    /// For how many of them it was done.
    pub settled: u64,
    /// For which it was not, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<FailedId>,
    /// What an ACK published atomically with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<PublishedEvent>,
}

/// An event for which something could not be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailedId {
    /// Its id.
    pub id: String,
    /// The code.
    #[schemars(with = "Code")]
    pub code: String,
    /// Why.
    pub error: String,
}

/// An event that was published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedEvent {
    /// Where it is.
    #[schemars(with = "Topic")]
    pub topic: String,
    /// Its id.
    #[schemars(with = "EventId")]
    pub id: String,
    /// Its position.
    pub seq: u64,
    /// The topic held this id already.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub duplicate: bool,
}

impl FailedId {
    /// A failure with its reason.
    pub fn new(id: impl Into<String>, code: Code, error: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            code: code.as_str().to_owned(),
            error: error.into(),
        }
    }
}
