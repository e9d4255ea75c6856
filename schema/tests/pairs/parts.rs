//! Objects and arrays.

use crate::{FINE, Pair, closed, pair};
use serde_json::{Value, json};

pub(crate) fn objects() -> Vec<Pair> {
    [
        named_properties(),
        other_properties(),
        sizes_and_dependencies(),
    ]
    .concat()
}

fn named_properties() -> Vec<Pair> {
    let a = json!({"a": {"type": "string"}});
    let ab = json!({"a": {"type": "string"}, "b": {"type": "integer"}});
    let ab_default = json!({"a": {"type": "string"}, "b": {"type": "integer", "default": 0}});
    let open = |properties: &Value, required: &[&str]| json!({"type": "object", "properties": properties, "required": required});
    vec![
        pair(
            "optional added to a closed model",
            closed(a.clone(), &["a"]),
            closed(ab.clone(), &["a"]),
            FINE,
            "additional_properties_narrowed",
        ),
        pair(
            "optional added to an open model",
            open(&a, &[]),
            open(&ab, &[]),
            "property_added_to_open_model",
            FINE,
        ),
        pair(
            "required added",
            closed(a.clone(), &["a"]),
            closed(ab.clone(), &["a", "b"]),
            "required_added",
            "additional_properties_narrowed",
        ),
        pair(
            "required added with a default",
            closed(a.clone(), &["a"]),
            closed(ab_default, &["a", "b"]),
            "required_added",
            "additional_properties_narrowed",
        ),
        pair(
            "required dropped",
            closed(ab.clone(), &["a", "b"]),
            closed(ab.clone(), &["a"]),
            FINE,
            "required_added",
        ),
        pair(
            "property removed from an open model",
            open(&ab, &[]),
            open(&a, &[]),
            FINE,
            "property_added_to_open_model",
        ),
        pair(
            "property removed from a closed model",
            closed(ab.clone(), &[]),
            closed(a.clone(), &[]),
            "additional_properties_narrowed",
            FINE,
        ),
        pair(
            "model closed",
            open(&a, &[]),
            closed(a.clone(), &[]),
            "additional_properties_narrowed",
            FINE,
        ),
    ]
}

fn other_properties() -> Vec<Pair> {
    let ab = json!({"a": {"type": "string"}, "b": {"type": "integer"}});
    let extra = |schema: Value| json!({"type": "object", "additionalProperties": schema});
    vec![
        pair(
            "additional of a type added",
            extra(json!(true)),
            extra(json!({"type": "string"})),
            "additional_properties_narrowed",
            FINE,
        ),
        pair(
            "additional widened",
            extra(json!({"type": "integer"})),
            extra(json!({"type": "number"})),
            FINE,
            "additional_properties_narrowed",
        ),
        pair(
            "named property under typed additional",
            extra(json!({"type": "string"})),
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
            FINE,
            FINE,
        ),
        pair(
            "nested property narrowed",
            closed(json!({"o": closed(ab.clone(), &[])}), &[]),
            closed(
                json!({"o": closed(json!({"a": {"type": "string"}, "b": {"type": "integer", "minimum": 0}}), &[])}),
                &[],
            ),
            "range_narrowed",
            FINE,
        ),
        pair(
            "same pattern, wider",
            json!({"type": "object", "patternProperties": {"^x-": {"type": "integer"}}, "additionalProperties": false}),
            json!({"type": "object", "patternProperties": {"^x-": {"type": "number"}}, "additionalProperties": false}),
            FINE,
            "additional_properties_narrowed",
        ),
        pair(
            "pattern covers a name",
            closed(json!({"x-a": {"type": "string"}}), &[]),
            json!({"type": "object", "patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": false}),
            FINE,
            "additional_properties_narrowed",
        ),
        pair(
            "pattern added to an open model",
            json!({"type": "object"}),
            json!({"type": "object", "patternProperties": {"^x-": {"type": "string"}}}),
            "additional_properties_narrowed",
            FINE,
        ),
        pair(
            "minProperties follows from required",
            closed(ab.clone(), &["a", "b"]),
            json!({"type": "object", "minProperties": 2}),
            FINE,
            "additional_properties_narrowed",
        ),
    ]
}

fn sizes_and_dependencies() -> Vec<Pair> {
    let ab = json!({"a": {"type": "string"}, "b": {"type": "integer"}});
    let open = |properties: &Value, required: &[&str]| json!({"type": "object", "properties": properties, "required": required});
    vec![
        pair(
            "maxProperties follows from a closed model",
            closed(ab.clone(), &[]),
            json!({"type": "object", "maxProperties": 2}),
            FINE,
            "additional_properties_narrowed",
        ),
        pair(
            "maxProperties added",
            json!({"type": "object"}),
            json!({"type": "object", "maxProperties": 3}),
            "size_narrowed",
            FINE,
        ),
        pair(
            "propertyNames of a closed model",
            closed(ab.clone(), &[]),
            json!({"type": "object", "propertyNames": {"maxLength": 1}}),
            FINE,
            "additional_properties_narrowed",
        ),
        pair(
            "propertyNames added",
            json!({"type": "object"}),
            json!({"type": "object", "propertyNames": {"maxLength": 1}}),
            "property_names_changed",
            FINE,
        ),
        pair(
            "dependentRequired added",
            open(&ab, &[]),
            json!({"type": "object", "properties": ab, "dependentRequired": {"a": ["b"]}}),
            "dependency_changed",
            FINE,
        ),
        pair(
            "dependentRequired that is required",
            open(&ab, &["b"]),
            json!({"type": "object", "properties": ab, "dependentRequired": {"a": ["b"]}}),
            FINE,
            "required_added",
        ),
        pair(
            "dependentSchemas added",
            open(&ab, &[]),
            json!({"type": "object", "properties": ab, "dependentSchemas": {"a": {"required": ["b"]}}}),
            "dependency_changed",
            FINE,
        ),
    ]
}

pub(crate) fn arrays() -> Vec<Pair> {
    vec![
        pair(
            "items widened",
            list(int()),
            list(num()),
            FINE,
            "type_narrowed",
        ),
        pair(
            "items added",
            json!({"type": "array"}),
            list(int()),
            "type_narrowed",
            FINE,
        ),
        pair(
            "minItems lowered",
            json!({"type": "array", "minItems": 2}),
            json!({"type": "array", "minItems": 1}),
            FINE,
            "size_narrowed",
        ),
        pair(
            "maxItems added",
            json!({"type": "array"}),
            json!({"type": "array", "maxItems": 2}),
            "size_narrowed",
            FINE,
        ),
        pair(
            "tuple to list",
            json!({"type": "array", "prefixItems": [int(), num()], "items": false}),
            list(num()),
            FINE,
            "forbidden",
        ),
        pair(
            "tuple grows",
            json!({"type": "array", "prefixItems": [int()], "items": false}),
            json!({"type": "array", "prefixItems": [int(), num()], "items": false}),
            FINE,
            "forbidden",
        ),
        pair(
            "tuple has no more elements",
            json!({"type": "array", "prefixItems": [int()], "items": false}),
            json!({"type": "array", "maxItems": 1}),
            FINE,
            "type_narrowed",
        ),
        pair(
            "tuple element narrowed",
            json!({"type": "array", "prefixItems": [num()]}),
            json!({"type": "array", "prefixItems": [int()]}),
            "type_narrowed",
            FINE,
        ),
        pair(
            "uniqueItems added",
            list(int()),
            json!({"type": "array", "items": int(), "uniqueItems": true}),
            "unique_items_added",
            FINE,
        ),
        pair(
            "contains added",
            list(int()),
            json!({"type": "array", "items": int(), "contains": {"const": 1}}),
            "contains_changed",
            FINE,
        ),
        pair(
            "an empty list is any list",
            json!({"type": "array", "maxItems": 0}),
            list(int()),
            FINE,
            "size_narrowed",
        ),
    ]
}

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

fn int() -> Value {
    json!({"type": "integer"})
}

fn num() -> Value {
    json!({"type": "number"})
}
