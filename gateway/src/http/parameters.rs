//! The query parameters of each route, from the OpenAPI document: what is not documented is rejected, so that a misspelt
//! parameter is not silently ignored.

use crate::api_error::ApiError;
use prombus_api::http::Query;
use prombus_api::{Code, nearest, openapi};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::OnceLock;

/// Taken by every route; see `credentials`.
const TOKEN: &str = "token";

/// The parameters of an operation.
struct Parameters {
    names: Vec<String>,
    /// Whether any other parameter has a meaning, too.
    is_open: bool,
}

type Operations = HashMap<(String, String), Parameters>;

/// Rejects a query with a parameter that the operation does not have.
pub(super) fn check(path: &str, method: &str, query: Option<&str>) -> Result<(), ApiError> {
    let Some(query) = query else {
        return Ok(());
    };
    static OPERATIONS: OnceLock<Operations> = OnceLock::new();
    let operations = OPERATIONS.get_or_init(|| operations(&openapi::document()));
    let key = (path.to_owned(), method.to_lowercase());
    let Some(known) = operations.get(&key).filter(|known| !known.is_open) else {
        return Ok(());
    };
    let query = Query::parse(query)?;
    for (name, _) in query.pairs() {
        if name != TOKEN && !known.names.iter().any(|known| known == name) {
            return Err(unknown(name, &known.names));
        }
    }
    Ok(())
}

fn unknown(name: &str, known: &[String]) -> ApiError {
    let names = known.iter().map(String::as_str);
    let hint = match nearest(name, names) {
        Some(meant) => format!("did you mean {meant}?"),
        None if known.is_empty() => "this path takes none".to_owned(),
        None => format!("expected one of {}", known.join(", ")),
    };
    let name: String = name.chars().take(64).collect();
    ApiError::new(Code::BadFrame, format!("{name}: unknown parameter; {hint}"))
}

fn operations(document: &Value) -> Operations {
    let mut all = Operations::new();
    let paths = document["paths"].as_object().into_iter().flatten();
    for (path, operations) in paths {
        for (method, operation) in operations.as_object().into_iter().flatten() {
            let parameters = operation["parameters"].as_array();
            let queries = parameters.into_iter().flatten();
            let queries = queries.filter(|parameter| parameter["in"] == "query");
            let mut known = Parameters {
                names: Vec::new(),
                is_open: false,
            };
            for parameter in queries {
                known.is_open |= parameter["schema"]["type"] == "object";
                known
                    .names
                    .extend(parameter["name"].as_str().map(str::to_owned));
            }
            all.insert((path.clone(), method.clone()), known);
        }
    }
    all
}
