//! `/healthz`, `/livez` and `/readyz`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the server is. `/readyz` is 503 unless it is well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// `ok`, or `failing`.
    #[schemars(extend("enum" = ["ok", "failing"]))]
    pub status: String,
    /// What is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What is damaged in the store, though it takes writes: where and what, without names of topics. A limited number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<String>,
}

impl Health {
    /// All is well.
    pub fn ok() -> Self {
        Self {
            status: "ok".to_owned(),
            reason: None,
            damage: Vec::new(),
        }
    }

    /// Something is wrong.
    pub fn failing(reason: impl Into<String>) -> Self {
        Self {
            status: "failing".to_owned(),
            reason: Some(reason.into()),
            damage: Vec::new(),
        }
    }
}
