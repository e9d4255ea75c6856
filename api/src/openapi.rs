//! The OpenAPI document of the HTTP routes. `api/openapi.json` is what is served and what people and tools read. A test
//! derives it from the types of the bodies and from the table of operations, and compares the two;
//! `PROMBUS_WRITE_OPENAPI=1` lets that test write the file.

use serde_json::Value;

/// The document as it is served.
pub const TEXT: &str = include_str!("../openapi.json");

/// The document. That the text is one is what the test asserts.
pub fn document() -> Value {
    serde_json::from_str(TEXT).unwrap_or_default()
}

#[cfg(test)]
mod cloudevents_paths;
#[cfg(test)]
mod dashboard_paths;
#[cfg(test)]
mod operation;
#[cfg(test)]
mod paths;
#[cfg(test)]
mod schema_paths;
#[cfg(test)]
mod schemas;
#[cfg(test)]
mod tests;
