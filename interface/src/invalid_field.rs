//! What is wrong with a field of an event or with an option, in the words of the crate that has it.

use thiserror::Error;

/// How much of a text that a caller sent an error quotes.
const QUOTED_CHARS: usize = 64;

/// A field of an event or an option with an invalid value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid {field}: {reason}")]
pub struct InvalidField {
    /// The field or option, as this crate names it.
    pub field: &'static str,
    /// The rule that its value breaks.
    pub reason: String,
}

impl InvalidField {
    /// An error about a field.
    pub fn new(field: &'static str, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { field, reason }
    }

    /// An error about an event id, which it quotes.
    pub fn id(id: &str) -> Self {
        let id = quoted(id);
        Self::new(
            "id",
            format!("{id:?} is not 1 to 64 printable ASCII characters"),
        )
    }
}

/// The first characters of a text that a caller sent, for an error to quote.
pub fn quoted(text: &str) -> String {
    text.chars().take(QUOTED_CHARS).collect()
}
