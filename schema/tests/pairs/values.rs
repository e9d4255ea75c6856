//! Types, values, numbers and texts.

use crate::{FINE, Pair, pair};
use serde_json::{Value, json};

pub(crate) fn types() -> Vec<Pair> {
    let t = |name: &str| json!({ "type": name });
    vec![
        pair("the same", t("string"), t("string"), FINE, FINE),
        pair(
            "integer to number",
            t("integer"),
            t("number"),
            FINE,
            "type_narrowed",
        ),
        pair(
            "string to integer",
            t("string"),
            t("integer"),
            "type_narrowed",
            "type_narrowed",
        ),
        pair(
            "one type to two",
            t("string"),
            json!({"type": ["string", "integer"]}),
            FINE,
            "type_narrowed",
        ),
        pair(
            "made nullable",
            t("string"),
            json!({"type": ["string", "null"]}),
            FINE,
            "type_narrowed",
        ),
        pair(
            "a type dropped",
            t("string"),
            json!({}),
            FINE,
            "type_narrowed",
        ),
        pair(
            "everything to nothing",
            json!(true),
            json!(false),
            "forbidden",
            FINE,
        ),
        pair(
            "all types named",
            json!({}),
            json!({"type": ["null", "boolean", "number", "string", "array", "object"]}),
            FINE,
            FINE,
        ),
        pair(
            "whole by multipleOf",
            json!({"type": "number", "multipleOf": 1}),
            t("integer"),
            FINE,
            FINE,
        ),
        pair(
            "only annotations",
            t("string"),
            json!({"type": "string", "title": "T", "description": "d", "examples": ["x"], "format": "email", "$comment": "c"}),
            FINE,
            FINE,
        ),
        pair(
            "boolean to both constants",
            t("boolean"),
            json!({"enum": [true, false]}),
            FINE,
            FINE,
        ),
    ]
}

pub(crate) fn values() -> Vec<Pair> {
    vec![
        pair(
            "enum grows",
            json!({"enum": ["a", "b"]}),
            json!({"enum": ["a", "b", "c"]}),
            FINE,
            "value_removed",
        ),
        pair(
            "enum reordered",
            json!({"enum": ["a", "b"]}),
            json!({"enum": ["b", "a"]}),
            FINE,
            FINE,
        ),
        pair(
            "enum to its type",
            json!({"enum": ["a", "b"]}),
            json!({"type": "string"}),
            FINE,
            "values_restricted",
        ),
        pair(
            "const to enum",
            json!({"const": 1}),
            json!({"enum": [1, 2]}),
            FINE,
            "value_removed",
        ),
        pair(
            "one is one point zero",
            json!({"const": 1}),
            json!({"const": 1.0}),
            FINE,
            FINE,
        ),
        pair(
            "const changed",
            json!({"const": "v1"}),
            json!({"const": "v2"}),
            "value_removed",
            "value_removed",
        ),
        pair(
            "enum within a range",
            json!({"enum": [1, 5]}),
            json!({"type": "integer", "maximum": 5}),
            FINE,
            "values_restricted",
        ),
        pair(
            "enum value that its type forbids",
            json!({"type": "string", "enum": ["a", 1]}),
            json!({"enum": ["a"]}),
            FINE,
            FINE,
        ),
        pair(
            "enum of objects",
            json!({"enum": [{"a": 1}]}),
            json!({"type": "object", "required": ["a"]}),
            FINE,
            "values_restricted",
        ),
    ]
}

pub(crate) fn numbers() -> Vec<Pair> {
    let n = |more: Value| {
        let mut schema = json!({"type": "number"});
        schema
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        schema
    };
    vec![
        pair(
            "minimum lowered",
            n(json!({"minimum": 10})),
            n(json!({"minimum": 5})),
            FINE,
            "range_narrowed",
        ),
        pair(
            "maximum added",
            n(json!({})),
            n(json!({"maximum": 5})),
            "range_narrowed",
            FINE,
        ),
        pair(
            "exclusive to inclusive",
            n(json!({"exclusiveMinimum": 0})),
            n(json!({"minimum": 0})),
            FINE,
            "range_narrowed",
        ),
        pair(
            "integers above zero",
            json!({"type": "integer", "exclusiveMinimum": 0}),
            json!({"type": "integer", "minimum": 1}),
            FINE,
            FINE,
        ),
        pair(
            "numbers above zero",
            n(json!({"exclusiveMinimum": 0})),
            n(json!({"minimum": 1})),
            "range_narrowed",
            FINE,
        ),
        pair(
            "large integers are exact",
            json!({"type": "integer", "maximum": 9_007_199_254_740_993_i64}),
            json!({"type": "integer", "maximum": 9_007_199_254_740_992_i64}),
            "range_narrowed",
            FINE,
        ),
        pair(
            "multiple of a multiple",
            n(json!({"multipleOf": 10})),
            n(json!({"multipleOf": 5})),
            FINE,
            "multiple_of_narrowed",
        ),
        pair(
            "decimal multiples",
            n(json!({"multipleOf": 0.1})),
            n(json!({"multipleOf": 0.01})),
            FINE,
            "multiple_of_narrowed",
        ),
        pair(
            "multiples that do not divide",
            n(json!({"multipleOf": 3})),
            n(json!({"multipleOf": 2})),
            "multiple_of_narrowed",
            "multiple_of_narrowed",
        ),
        pair(
            "a range on texts only",
            json!({"type": "string"}),
            json!({"type": "string", "minimum": 3}),
            FINE,
            FINE,
        ),
    ]
}

pub(crate) fn texts() -> Vec<Pair> {
    vec![
        pair(
            "maxLength raised",
            json!({"type": "string", "maxLength": 5}),
            json!({"type": "string", "maxLength": 9}),
            FINE,
            "length_narrowed",
        ),
        pair(
            "minLength added",
            json!({"type": "string"}),
            json!({"type": "string", "minLength": 1}),
            "length_narrowed",
            FINE,
        ),
        pair(
            "minLength zero says nothing",
            json!({"type": "string"}),
            json!({"type": "string", "minLength": 0}),
            FINE,
            FINE,
        ),
        pair(
            "pattern added",
            json!({"type": "string"}),
            json!({"type": "string", "pattern": "^a"}),
            "pattern_changed",
            FINE,
        ),
        pair(
            "pattern kept",
            json!({"type": "string", "pattern": "^a"}),
            json!({"type": ["string", "null"], "pattern": "^a"}),
            FINE,
            "type_narrowed",
        ),
        pair(
            "pattern changed",
            json!({"type": "string", "pattern": "^ab"}),
            json!({"type": "string", "pattern": "^a"}),
            "pattern_changed",
            "pattern_changed",
        ),
        pair(
            "enum that matches a pattern",
            json!({"enum": ["ab"]}),
            json!({"type": "string", "pattern": "^a"}),
            FINE,
            "values_restricted",
        ),
        pair(
            "enum that does not match",
            json!({"enum": ["ab", "b"]}),
            json!({"type": "string", "pattern": "^a"}),
            "value_removed",
            "values_restricted",
        ),
    ]
}
