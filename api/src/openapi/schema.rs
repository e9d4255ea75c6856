//! Words to write schemas with.

use serde_json::{Map, Value, json};

/// A reference to another schema.
pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// Any JSON.
pub(super) fn any(description: &str) -> Value {
    json!({"description": description})
}

/// A string.
pub(super) fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

/// One of some words.
pub(super) fn word(description: &str, words: &[&str]) -> Value {
    json!({"type": "string", "enum": words, "description": description})
}

/// A whole number from 0.
pub(super) fn count(description: &str) -> Value {
    json!({"type": "integer", "minimum": 0, "description": description})
}

/// Yes or no.
pub(super) fn flag(description: &str) -> Value {
    json!({"type": "boolean", "description": description})
}

/// An array.
pub(super) fn list(description: &str, items: &Value) -> Value {
    json!({"type": "array", "items": items, "description": description})
}

/// An array of strings.
pub(super) fn texts(description: &str) -> Value {
    list(description, &json!({"type": "string"}))
}

/// An object of strings.
pub(super) fn text_map(description: &str) -> Value {
    json!({"type": "object", "additionalProperties": {"type": "string"}, "description": description})
}

/// An object with fields that have to be there and fields that may be left out.
pub(super) fn object(
    description: &str,
    required: Vec<(&str, Value)>,
    optional: Vec<(&str, Value)>,
) -> Value {
    let names: Vec<&str> = required.iter().map(|(name, _)| *name).collect();
    let mut schema = json!({"type": "object", "description": description});
    if !names.is_empty() {
        schema["required"] = json!(names);
    }
    let fields = required.into_iter().chain(optional);
    let properties: Map<String, Value> = fields
        .map(|(name, schema)| (name.to_owned(), schema))
        .collect();
    schema["properties"] = Value::Object(properties);
    schema
}
