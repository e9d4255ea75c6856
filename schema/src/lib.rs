//! JSON Schema for the topics of prombus: what a schema may look like, whether a payload fits it, and whether one
//! version of it may follow another. Everything here is a pure function; nothing is read from a disk or a network.
//!
//! The dialect is draft 2020-12. `format` and the `content…` keywords are annotations and check nothing. References lead
//! into the schema itself, by JSON Pointer.

mod compatibility;
mod cost;
mod document;
mod subset;
mod validator;

pub use compatibility::{Compatibility, Incompatible, UnknownCompatibility, check};
pub use cost::MAX_VALIDATION_COST;
pub use document::{InvalidSchema, MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH, MAX_SUBSCHEMAS, Schema};
pub use subset::{Finding, MAX_FINDINGS, Rule, findings};
pub use validator::{Invalid, MAX_PATTERN_PROGRAM_BYTES, Validator};
