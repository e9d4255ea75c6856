//! Payloads held against a schema. Patterns run on the `regex` engine, whose time is linear in the text; a pattern that
//! needs more than it offers (look-around, back-references) is refused when the schema is registered.

use crate::cost::max_depth;
use crate::document::{InvalidSchema, Schema};
use crate::fast::FastSchema;
use crate::unique;
use jsonschema::{Draft, PatternOptions, ValidationOptions};
use serde_json::Value;
use std::fmt;
use thiserror::Error;

/// The most bytes that one compiled pattern may take, and the most that its matching may cache.
pub const MAX_PATTERN_PROGRAM_BYTES: usize = 1 << 20;
/// How many characters of a reason an error quotes. It may contain the value that does not fit.
const MAX_REASON_CHARS: usize = 256;

/// A schema, compiled.
pub struct Validator {
    /// Says yes to most payloads that fit, where the schema has only common keywords.
    fast: Option<FastSchema>,
    compiled: jsonschema::Validator,
    /// How deep a payload may be nested, where the schema makes deep ones expensive.
    max_depth: Option<usize>,
}

/// Where a payload does not fit its schema.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}: {reason}", if path.is_empty() { "/" } else { path })]
pub struct Invalid {
    /// JSON Pointer to the part of the payload that does not fit; empty for the whole.
    pub path: String,
    /// What was expected there.
    pub reason: String,
}

impl Validator {
    /// Compiles a schema.
    pub fn new(schema: &Schema) -> Result<Self, InvalidSchema> {
        let compiled = options().build(schema.root()).map_err(bad_keyword)?;
        let max_depth = max_depth(schema.fan_out);
        let fast = match max_depth {
            None => FastSchema::compile(schema.root()),
            Some(_) => None,
        };
        Ok(Self {
            fast,
            compiled,
            max_depth,
        })
    }

    /// Whether a payload certainly is JSON without insignificant whitespace and certainly fits, so that nobody else has to look
    /// at its text. Most payloads that fit are found so; the others are for [`Self::check`].
    pub fn fits_compact(&self, payload: &str) -> bool {
        let fast = self.fast.as_ref();
        fast.is_some_and(|fast| fast.fits_compact(payload))
    }

    /// Holds JSON text against the schema. A text that gives a name of the schema twice does not fit.
    pub fn check(&self, payload: &str) -> Result<(), Invalid> {
        if self.fast.as_ref().is_some_and(|fast| fast.fits(payload)) {
            return Ok(());
        }
        let value = unique::parse(payload).map_err(|error| Invalid {
            path: String::new(),
            reason: error.to_string(),
        })?;
        self.check_value(&value)
    }

    /// The same for a value.
    pub fn check_value(&self, value: &Value) -> Result<(), Invalid> {
        if let Some(limit) = self.max_depth
            && depth(value) > limit
        {
            let reason = format!(
                "nested deeper than {limit}, the most for a schema that refers to itself in several ways"
            );
            return Err(Invalid {
                path: String::new(),
                reason,
            });
        }
        // Finding out whether it fits is quicker than finding out why it does not.
        if self.compiled.is_valid(value) {
            return Ok(());
        }
        match self.compiled.validate(value) {
            Ok(()) => Ok(()),
            Err(error) => Err(Invalid {
                path: error.instance_path().as_str().to_owned(),
                reason: error.to_string().chars().take(MAX_REASON_CHARS).collect(),
            }),
        }
    }
}

/// How schemas are compiled, whole ones and parts.
pub(crate) fn options<'i>() -> ValidationOptions<'i> {
    let patterns = PatternOptions::regex()
        .size_limit(MAX_PATTERN_PROGRAM_BYTES)
        .dfa_size_limit(MAX_PATTERN_PROGRAM_BYTES);
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .should_validate_formats(false)
        .with_pattern_options(patterns)
        .offline()
}

/// Refuses what is not a schema of the dialect, or cannot be compiled.
pub(crate) fn check_meta_schema(root: &Value) -> Result<(), InvalidSchema> {
    if !root.is_object() && !root.is_boolean() {
        return Err(InvalidSchema::BadKeyword {
            path: String::new(),
            reason: "a schema is an object or a boolean".into(),
        });
    }
    options().build(root).map(drop).map_err(bad_keyword)
}

fn bad_keyword(error: jsonschema::ValidationError<'_>) -> InvalidSchema {
    InvalidSchema::BadKeyword {
        path: error.instance_path().as_str().to_owned(),
        reason: error.to_string().chars().take(MAX_REASON_CHARS).collect(),
    }
}

fn depth(value: &Value) -> usize {
    let parts = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(map) => map.values().map(depth).max(),
        _ => return 0,
    };
    1 + parts.unwrap_or(0)
}

impl fmt::Debug for Validator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Validator").finish_non_exhaustive()
    }
}
