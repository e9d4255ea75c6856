//! Choices, references, and what cannot be decided.

use crate::{FINE, Pair, closed, pair};
use serde_json::{Value, json};

pub(crate) fn choices() -> Vec<Pair> {
    [unions(), conditions()].concat()
}

fn unions() -> Vec<Pair> {
    let s = || json!({"type": "string"});
    let i = || json!({"type": "integer"});
    let circle = || {
        closed(
            json!({"kind": {"const": "circle"}, "r": {"type": "number"}}),
            &["kind", "r"],
        )
    };
    let square = || {
        closed(
            json!({"kind": {"const": "square"}, "a": {"type": "number"}}),
            &["kind", "a"],
        )
    };
    vec![
        pair(
            "anyOf grows",
            json!({"anyOf": [s()]}),
            json!({"anyOf": [s(), i()]}),
            FINE,
            "no_branch_accepts",
        ),
        pair(
            "anyOf shrinks",
            json!({"anyOf": [s(), i()]}),
            json!({"anyOf": [s()]}),
            "no_branch_accepts",
            FINE,
        ),
        pair(
            "types to anyOf",
            json!({"type": ["string", "integer"]}),
            json!({"anyOf": [s(), i()]}),
            FINE,
            FINE,
        ),
        pair(
            "anyOf to types",
            json!({"anyOf": [s(), {"type": "null"}]}),
            json!({"type": ["string", "null"]}),
            FINE,
            FINE,
        ),
        pair(
            "nullable by oneOf",
            s(),
            json!({"oneOf": [s(), {"type": "null"}]}),
            FINE,
            "value_removed",
        ),
        pair(
            "tagged union grows",
            json!({"oneOf": [circle()]}),
            json!({"oneOf": [circle(), square()]}),
            FINE,
            "no_branch_accepts",
        ),
        pair(
            "oneOf that overlaps",
            i(),
            json!({"oneOf": [i(), {"type": "number"}]}),
            "branches_overlap",
            "type_narrowed",
        ),
        pair(
            "oneOf kept beside more",
            json!({"oneOf": [i(), {"minimum": 2}]}),
            json!({"oneOf": [i(), {"minimum": 2}], "title": "t"}),
            FINE,
            FINE,
        ),
    ]
}

fn conditions() -> Vec<Pair> {
    let s = || json!({"type": "string"});
    vec![
        pair(
            "allOf taken apart",
            json!({"allOf": [s(), {"maxLength": 5}]}),
            json!({"type": "string", "maxLength": 5}),
            FINE,
            FINE,
        ),
        pair(
            "allOf grows",
            json!({"allOf": [s()]}),
            json!({"allOf": [s(), {"minLength": 1}]}),
            "length_narrowed",
            FINE,
        ),
        pair(
            "not what is impossible",
            s(),
            json!({"not": {"type": "integer"}}),
            FINE,
            "type_narrowed",
        ),
        pair(
            "not what is possible",
            s(),
            json!({"type": "string", "not": {"const": "x"}}),
            "not_excluded",
            FINE,
        ),
        pair(
            "if added",
            json!({"type": "object"}),
            json!({"type": "object", "if": {"required": ["a"]}, "then": {"required": ["b"]}}),
            "required_added",
            FINE,
        ),
        pair(
            "if that never applies",
            s(),
            json!({"if": {"type": "object"}, "then": {"required": ["b"]}}),
            FINE,
            "type_narrowed",
        ),
    ]
}

pub(crate) fn references() -> Vec<Pair> {
    let list = |value: &str| json!({"$defs": {"node": closed(json!({"value": {"type": value}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}), &["value"])}, "$ref": "#/$defs/node"});
    let tree = |more: Value| {
        let mut properties = json!({"children": {"type": "array", "items": {"$ref": "#"}}});
        properties
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({"type": "object", "properties": properties, "additionalProperties": false})
    };
    vec![
        pair(
            "reference taken in",
            json!({"$defs": {"s": {"type": "string"}}, "$ref": "#/$defs/s"}),
            json!({"type": "string"}),
            FINE,
            FINE,
        ),
        pair(
            "definition renamed",
            json!({"$defs": {"a": {"type": "string"}}, "properties": {"x": {"$ref": "#/$defs/a"}}}),
            json!({"$defs": {"b": {"type": "string"}}, "properties": {"x": {"$ref": "#/$defs/b"}}}),
            FINE,
            FINE,
        ),
        pair(
            "the same words, another definition",
            json!({"$defs": {"a": {"type": "string"}}, "properties": {"x": {"$ref": "#/$defs/a"}}}),
            json!({"$defs": {"a": {"type": "integer"}}, "properties": {"x": {"$ref": "#/$defs/a"}}}),
            "type_narrowed",
            "type_narrowed",
        ),
        pair(
            "recursive list widened",
            list("integer"),
            list("number"),
            FINE,
            "no_branch_accepts",
        ),
        pair(
            "recursive tree with one more property",
            tree(json!({})),
            tree(json!({"name": {"type": "string"}})),
            FINE,
            "additional_properties_narrowed",
        ),
        pair(
            "reference beside other keywords",
            json!({"$defs": {"s": {"type": "string"}}, "$ref": "#/$defs/s", "maxLength": 5}),
            json!({"type": "string", "maxLength": 9}),
            FINE,
            "length_narrowed",
        ),
    ]
}

pub(crate) fn undecided() -> Vec<Pair> {
    vec![
        pair(
            "unknown keyword added",
            json!({"type": "string"}),
            json!({"type": "string", "x-unit": "ms"}),
            "unknown_keyword",
            FINE,
        ),
        pair(
            "unknown keyword kept",
            json!({"type": "integer", "x-unit": "ms"}),
            json!({"type": "number", "x-unit": "ms"}),
            FINE,
            "type_narrowed",
        ),
        pair(
            "unevaluatedProperties added",
            json!({"type": "object"}),
            json!({"type": "object", "unevaluatedProperties": false}),
            "unknown_keyword",
            FINE,
        ),
        pair(
            "unevaluatedProperties in the same schema",
            json!({"type": "object", "unevaluatedProperties": false}),
            json!({"type": "object", "unevaluatedProperties": false}),
            FINE,
            FINE,
        ),
        pair(
            "dependencies of older drafts",
            json!({"type": "object"}),
            json!({"type": "object", "dependencies": {"a": ["b"]}}),
            "unknown_keyword",
            FINE,
        ),
        pair(
            "content keywords",
            json!({"type": "string"}),
            json!({"type": "string", "contentMediaType": "application/json"}),
            "unknown_keyword",
            FINE,
        ),
    ]
}
