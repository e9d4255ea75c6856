//! The reply to a body of many lines: `POST /publish/:topic` with NDJSON, and `POST /import`.

use crate::code::Code;
use crate::http::ErrorBody;
use prombus_interface::schemas::Topic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What became of the lines.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BulkReply {
    /// Where they went.
    #[schemars(with = "Topic")]
    pub topic: String,
    /// How many lines had something on them.
    pub lines: u64,
    /// How many were stored now.
    pub published: u64,
    /// How many the topic held already.
    pub duplicates: u64,
    /// How many were bad.
    pub failed: u64,
    /// The bad lines.
    pub errors: Vec<LineError>,
    /// How many bad lines were left out of `errors`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub errors_left_out: u64,
    /// Why the rest of the body was not read: it broke off, or the server could not go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<ErrorBody>,
}

/// A line that was not stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LineError {
    /// The number of the line, from 1.
    pub line: u64,
    /// The code.
    #[schemars(with = "Code")]
    pub code: String,
    /// What is wrong with it.
    pub error: String,
}

impl BulkReply {
    /// Counts a bad line, and reports it while there are fewer than `report_limit`.
    pub fn fail(&mut self, line: u64, code: Code, error: impl Into<String>, report_limit: usize) {
        self.failed += 1;
        if self.errors.len() >= report_limit {
            self.errors_left_out += 1;
            return;
        }
        self.errors.push(LineError {
            line,
            code: code.as_str().to_owned(),
            error: error.into(),
        });
    }
}

pub(super) fn is_zero(count: &u64) -> bool {
    *count == 0
}
