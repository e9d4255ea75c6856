//! JSON Schema for the topics of prombus: what a schema may look like, whether a payload fits it, whether one version of
//! it may follow another, how payloads of one become those of the next, and which types fit it. Everything here is a pure function; nothing is read from a disk or a network.
//!
//! The dialect is draft 2020-12. `format` and the `content…` keywords are annotations and check nothing. References lead
//! into the schema itself, by JSON Pointer.

mod codegen;
mod compatibility;
mod cost;
mod document;
mod fast;
mod subset;
mod unique;
mod upcast;
mod validator;

pub use codegen::{Language, UnknownLanguage, codegen};
pub use compatibility::{Compatibility, Incompatible, UnknownCompatibility, check};
pub use cost::MAX_VALIDATION_COST;
pub use document::{InvalidSchema, MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH, MAX_SUBSCHEMAS, Schema};
pub use subset::{Finding, MAX_FINDINGS, Rule, findings};
pub use upcast::{MAX_UPCAST_STEPS, Upcast};
pub use validator::{Invalid, MAX_PATTERN_PROGRAM_BYTES, Validator};
