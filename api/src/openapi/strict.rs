//! Makes the document as strict as the server: names have their patterns, numbers their bounds, and bodies of requests no
//! other fields than theirs. Applied to the whole document by the names of fields and parameters, so that no description
//! can forget it.

use serde_json::{Map, Value, json};

/// The largest integer that every JSON reader keeps exactly.
const MAX_INTEGER: u64 = 9_007_199_254_740_991;
/// The bodies of requests. The server rejects a field that is not among theirs.
const REQUESTS: [&str; 12] = [
    "Ack",
    "Envelope",
    "GroupChange",
    "Modack",
    "Nack",
    "Publish",
    "PublishAtomic",
    "PublishOptions",
    "Pull",
    "Redrive",
    "Seek",
    "TopicConfig",
];
/// Those that need `id` or `ids`.
const SETTLES: [&str; 3] = ["Ack", "Modack", "Nack"];

/// Adds what is known of all fields by their names.
pub(super) fn apply(document: &mut Value) {
    walk(document);
    let Some(schemas) = document.pointer_mut("/components/schemas") else {
        return;
    };
    for name in REQUESTS {
        if let Some(Value::Object(schema)) = schemas.get_mut(name) {
            // An import takes whole records, whose position it ignores.
            schema.insert("additionalProperties".to_owned(), json!(name == "Envelope"));
            allow_null(schema);
        }
    }
    for name in SETTLES {
        if let Some(Value::Object(schema)) = schemas.get_mut(name) {
            let one = json!([{"required": ["id"]}, {"required": ["ids"]}]);
            schema.insert("oneOf".to_owned(), one);
        }
    }
    if let Some(Value::Object(schema)) = schemas.get_mut("Seek") {
        let one = ["from", "ts", "afterId", "seq"].map(|name| json!({"required": [name]}));
        schema.insert("anyOf".to_owned(), json!(one));
    }
}

/// A field that may be left out may be `null` as well.
fn allow_null(schema: &mut Map<String, Value>) {
    let required = schema.get("required").and_then(Value::as_array);
    let required = required.cloned().unwrap_or_default();
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return;
    };
    for (name, property) in properties {
        if required.contains(&json!(name)) {
            continue;
        }
        if let Some(kind) = property.get("type").and_then(Value::as_str) {
            property["type"] = json!([kind, "null"]);
        }
        if let Some(Value::Array(words)) = property.get_mut("enum") {
            words.push(Value::Null);
        }
        if property.get("$ref").is_some() {
            *property = json!({"anyOf": [property.clone(), {"type": "null"}]});
        }
    }
}

fn walk(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::Object(properties)) = fields.get_mut("properties") {
                for (name, schema) in properties {
                    constrain(name, schema);
                }
            }
            if fields.contains_key("in")
                && let Some(name) = fields
                    .get("name")
                    .and_then(Value::as_str)
                    .map(str::to_owned)
                && let Some(schema) = fields.get_mut("schema")
            {
                constrain(&name, schema);
            }
            fields.values_mut().for_each(walk);
        }
        Value::Array(items) => items.iter_mut().for_each(walk),
        _ => {}
    }
}

/// Adds the constraints of a field; those that its own description has stay.
fn constrain(name: &str, schema: &mut Value) {
    let Value::Object(schema) = schema else {
        return;
    };
    let constraints = match (name, schema.get("type").and_then(Value::as_str)) {
        ("topic" | "snapshot_topic", Some("string")) => json!({
            "pattern": r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$",
            "minLength": 1,
            "maxLength": 249,
        }),
        ("group", Some("string")) => json!({
            "pattern": "^[A-Za-z0-9_.:-]+$",
            "minLength": 1,
            "maxLength": 128,
        }),
        ("id", Some("string")) => json!({
            "pattern": "^[!-~]([ -~]*[!-~])?$",
            "minLength": 1,
            "maxLength": 64,
        }),
        ("key", Some("string")) => json!({"maxLength": 512}),
        ("ids", Some("array")) => json!({"maxItems": 10_000}),
        ("max", Some("integer")) => json!({"minimum": 1, "maximum": 10_000}),
        ("rate", Some("integer")) => json!({"minimum": 1, "maximum": u32::MAX}),
        ("maxAttempts" | "partitions", Some("integer")) => json!({"maximum": u32::MAX}),
        (_, Some("integer")) => json!({"maximum": MAX_INTEGER}),
        _ => return,
    };
    for (constraint, value) in constraints.as_object().into_iter().flatten() {
        // A minimum of 0 is what every count has.
        let is_default = schema.get(constraint) == Some(&json!(0));
        if is_default || !schema.contains_key(constraint) {
            schema.insert(constraint.clone(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_patterns_and_requests_no_other_fields() {
        let mut document = json!({
            "paths": {"/x": {"get": {"parameters": [
                {"in": "query", "name": "topic", "schema": {"type": "string"}},
                {"in": "query", "name": "limit", "schema": {"type": "integer", "maximum": 5}},
            ]}}},
            "components": {"schemas": {
                "Pull": {"properties": {"max": {"type": "integer", "minimum": 0}}},
                "Pulled": {"properties": {"group": {"type": "string"}}},
            }},
        });
        apply(&mut document);
        let parameters = &document["paths"]["/x"]["get"]["parameters"];
        assert_eq!(parameters[0]["schema"]["maxLength"], 249);
        assert_eq!(parameters[1]["schema"]["maximum"], 5);
        let schemas = &document["components"]["schemas"];
        assert_eq!(schemas["Pull"]["additionalProperties"], false);
        assert_eq!(schemas["Pull"]["properties"]["max"]["minimum"], 1);
        let kinds = json!(["integer", "null"]);
        assert_eq!(schemas["Pull"]["properties"]["max"]["type"], kinds);
        assert_eq!(schemas["Pulled"]["additionalProperties"], Value::Null);
        assert_eq!(schemas["Pulled"]["properties"]["group"]["maxLength"], 128);
    }
}
