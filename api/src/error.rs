//! Parse errors of frames, bodies and queries.

use crate::code::Code;
use thiserror::Error;

/// A body, a query or an option that is not as it has to be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct ParseError {
    /// The code for the sender.
    pub code: Code,
    /// What is wrong, with the name of the field.
    pub message: String,
}

/// A frame that is not one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct FrameError {
    /// The code for the sender.
    pub code: Code,
    /// What is wrong, with the name of the field.
    pub message: String,
    /// The frame's `corr`, where it could be parsed.
    pub corr: Option<String>,
}

impl ParseError {
    /// An error with its code and message.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message }
    }
}
