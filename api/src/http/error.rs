//! The body of every reply that is an error.

use crate::code::Code;
use crate::error::ParseError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// The code, for a newer server may know more of them.
    #[schemars(with = "Code")]
    pub code: String,
    /// What is wrong, for people.
    pub error: String,
    /// When to come again. The header `Retry-After` says the same in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// With `seq_mismatch`: the position that was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual: Option<u64>,
}

impl ErrorBody {
    /// An error with its reason.
    pub fn new(code: Code, error: impl Into<String>) -> Self {
        Self {
            code: code.as_str().to_owned(),
            error: error.into(),
            retry_after_ms: None,
            actual: None,
        }
    }

    /// The code, where it is one that this version knows.
    pub fn known_code(&self) -> Option<Code> {
        Code::parse(&self.code)
    }
}

impl From<ParseError> for ErrorBody {
    fn from(error: ParseError) -> Self {
        Self::new(error.code, error.message)
    }
}
