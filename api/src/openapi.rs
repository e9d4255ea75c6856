//! The OpenAPI document of the HTTP routes, built from code. `api/openapi.json` is the same document for people and
//! tools to read; a test holds the two together, and `PROMBUS_WRITE_OPENAPI=1` lets that test write the file.

mod cloudevents_paths;
mod dashboard_paths;
mod operation;
mod paths;
mod schema;
mod schema_paths;
mod schemas;
mod strict;

use crate::code::Code;
use serde_json::{Value, json};

/// The document.
pub fn document() -> Value {
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "prombus",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A durable event bus. Publishing and subscribing at speed goes over the WebSocket at `/ws`; \
                everything here works with plain HTTP.",
            "license": {"name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT"},
        },
        "security": [{}, {"bearer": []}, {"token": []}],
        "paths": paths::all(),
        "components": {
            "schemas": schemas::all(),
            "responses": {
                "Error": {
                    "description": errors(),
                    "headers": {
                        "Retry-After": {
                            "description": "With 429: seconds until it is worth another try.",
                            "schema": {"type": "integer"},
                        },
                    },
                    "content": {"application/json": {"schema": schema::reference("ErrorBody")}},
                },
            },
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "A static token or a JWT."},
                "token": {
                    "type": "apiKey",
                    "in": "query",
                    "name": "token",
                    "description": "For browsers that cannot set the header.",
                },
            },
        },
    });
    strict::apply(&mut document);
    document
}

/// Every code with its status and meaning.
fn errors() -> String {
    let line = |code: &Code| format!("- {} `{code}`: {}", code.http_status(), code.meaning());
    let lines: Vec<String> = Code::ALL.iter().map(line).collect();
    format!(
        "The status says what kind of error it is, the code which one.\n\n{}",
        lines.join("\n")
    )
}

#[cfg(test)]
mod tests;
