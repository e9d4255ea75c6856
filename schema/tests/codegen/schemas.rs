//! Schemas with everything that types are made of.

use prombus_schema::Schema;
use serde_json::{Value, json};

pub(crate) fn schemas() -> Vec<(&'static str, Schema)> {
    let all = [
        ("order.created", order()),
        ("tree", tree()),
        ("nested", json!({"type": "array", "items": {"$ref": "#"}})),
        ("shape", shape()),
        ("option", json!({"type": ["string", "null"]})),
        ("flag", json!({"type": "boolean"})),
        ("anything", json!(true)),
    ];
    all.into_iter()
        .map(|(topic, schema)| (topic, Schema::new(schema).expect("a schema")))
        .collect()
}

pub(crate) fn schema_of(topic: &str) -> Schema {
    let found = schemas().into_iter().find(|(name, _)| *name == topic);
    found.expect("a schema").1
}

fn order() -> Value {
    json!({
        "type": "object",
        "description": "An order. */\nIt has lines.",
        "properties": {
            "id": {"type": "string"},
            "type": {"enum": ["web", "in-store", "self"]},
            "lineItems": {"type": "array", "items": {
                "type": "object",
                "properties": {"sku": {"type": "string"}, "count": {"type": "integer", "minimum": 1}},
                "required": ["sku", "count"],
                "additionalProperties": false,
            }},
            "note": {"type": ["string", "null"], "description": "What the customer wrote."},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "address": {"$ref": "#/$defs/address"},
            "extra": {},
            "origin": {},
        },
        "required": ["id", "type", "lineItems", "note", "origin"],
        "additionalProperties": false,
        "$defs": {"address": {
            "type": "object",
            "properties": {
                "zip": {"type": "string"},
                "geo": {
                    "type": "array",
                    "prefixItems": [{"type": "number"}, {"type": "number"}],
                    "items": false,
                    "minItems": 2,
                },
            },
            "required": ["zip"],
        }},
    })
}

fn tree() -> Value {
    json!({
        "type": "object",
        "properties": {
            "value": {"type": "number"},
            "children": {"type": "array", "items": {"$ref": "#"}},
            "parent": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
        },
        "required": ["value"],
        "additionalProperties": false,
    })
}

fn shape() -> Value {
    let one_of = |kind: &str, size: &str| {
        json!({
            "type": "object",
            "properties": {"kind": {"const": kind}, size: {"type": "number"}},
            "required": ["kind", size],
            "additionalProperties": false,
        })
    };
    json!({"oneOf": [one_of("circle", "r"), one_of("square", "side")]})
}
