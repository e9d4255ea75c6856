//! Schemas that are not taken, and payloads that are not.
#![cfg(test)]

use prombus_schema::{InvalidSchema, MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH, Schema, Validator};
use serde_json::{Value, json};

fn refused(value: Value) -> String {
    match Schema::new(value.clone()) {
        Ok(_) => panic!("{value} was taken"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn only_references_into_the_schema_itself_are_followed() {
    for target in [
        "https://example.com/schema.json",
        "file:///etc/passwd",
        "other.json#/a",
        "#name",
        "#/$defs/missing",
        "",
    ] {
        let error = refused(json!({"properties": {"a": {"$ref": target}}, "$defs": {"b": {}}}));
        assert!(
            error.starts_with("/properties/a/$ref: "),
            "{target}: {error}"
        );
    }
    for keyword in ["$dynamicRef", "$recursiveRef"] {
        let error = refused(json!({ "items": { keyword: "#" } }));
        assert!(error.contains("not supported"), "{error}");
    }
    assert!(refused(json!({"$defs": {"a": {"$id": "https://example.com/a"}}})).contains("$id"));
    assert!(
        Schema::new(
            json!({"$id": "https://example.com/a", "$defs": {"a b": true}, "$ref": "#/$defs/a%20b"})
        )
        .is_ok()
    );
}

#[test]
fn a_reference_that_goes_round_in_a_circle_is_refused() {
    refused(json!({"$ref": "#"}));
    refused(
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}}),
    );
    assert!(Schema::new(json!({"properties": {"next": {"$ref": "#"}}})).is_ok());
}

#[test]
fn other_dialects_and_what_is_no_schema_are_refused() {
    assert_eq!(
        Schema::new(json!({"$schema": "http://json-schema.org/draft-07/schema#"})),
        Err(InvalidSchema::OtherDialect)
    );
    refused(json!([]));
    refused(json!({"type": "text"}));
    refused(json!({"properties": {"a": {"minimum": "3"}}}));
    refused(json!({"items": [{}]}));
    assert!(matches!(
        Schema::parse("{"),
        Err(InvalidSchema::NotJson { .. })
    ));
    assert!(
        Schema::new(json!({"$schema": "https://json-schema.org/draft/2020-12/schema"})).is_ok()
    );
}

#[test]
fn patterns_that_need_backtracking_or_too_much_memory_are_refused() {
    for pattern in ["(?=a)b", "(a)\\1", "(((a{1000}){1000}){1000})"] {
        refused(json!({"type": "string", "pattern": pattern}));
        refused(json!({"patternProperties": { pattern: {} }}));
    }
    // What takes exponential time elsewhere takes linear time here.
    let schema = Schema::new(json!({"type": "string", "pattern": "^(a+)+$"})).unwrap();
    let text = format!("{}b", "a".repeat(100_000));
    assert!(
        Validator::new(&schema)
            .unwrap()
            .check_value(&json!(text))
            .is_err()
    );
}

#[test]
fn size_depth_and_number_of_parts_have_limits() {
    let long = format!("{{\"title\":\"{}\"}}", "x".repeat(MAX_SCHEMA_BYTES));
    assert!(matches!(
        Schema::parse(&long),
        Err(InvalidSchema::TooLong { .. })
    ));
    let mut deep = json!({});
    for _ in 0..=MAX_SCHEMA_DEPTH {
        deep = json!({ "items": deep });
    }
    assert!(refused(deep).contains("max_schema_depth"));
    let many: Vec<_> = (0..10_001).map(|_| json!({})).collect();
    assert!(refused(json!({ "anyOf": many })).contains("max_subschemas"));
}

#[test]
fn a_schema_whose_cost_doubles_with_each_reference_is_refused() {
    let mut defs = serde_json::Map::new();
    for at in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        defs.insert(format!("d{at}"), json!({"allOf": [next, next]}));
    }
    defs.insert("d40".into(), json!({"type": "string"}));
    assert!(refused(json!({"$defs": defs, "$ref": "#/$defs/d0"})).contains("max_validation_cost"));
}

#[test]
fn payloads_of_a_schema_that_branches_into_itself_may_not_be_deep() {
    let step = json!({"properties": {"next": {"$ref": "#"}}});
    let schema = Schema::new(
        json!({"anyOf": [step, {"properties": {"next": {"$ref": "#"}}, "required": ["x"]}]}),
    )
    .unwrap();
    let validator = Validator::new(&schema).unwrap();
    let nested = |depth: usize| (0..depth).fold(json!({}), |inner, _| json!({ "next": inner }));
    assert!(validator.check_value(&nested(10)).is_ok());
    let error = validator.check_value(&nested(100)).unwrap_err();
    assert!(error.reason.contains("nested deeper than"), "{error}");
    // One that refers to itself in one way costs no more with each level.
    let schema = Schema::new(json!({"properties": {"next": {"$ref": "#"}}})).unwrap();
    assert!(
        Validator::new(&schema)
            .unwrap()
            .check_value(&nested(100))
            .is_ok()
    );
}

#[test]
fn an_invalid_payload_is_named_by_its_path() {
    let schema = Schema::new(json!({"properties": {"a": {"items": {"type": "integer"}}}})).unwrap();
    let validator = Validator::new(&schema).unwrap();
    assert!(validator.check(r#"{"a":[1,2]}"#).is_ok());
    let error = validator.check(r#"{"a":[1,"x"]}"#).unwrap_err();
    assert_eq!(error.path, "/a/1");
    assert_eq!(error.to_string(), "/a/1: \"x\" is not of type \"integer\"");
    // `format` is an annotation.
    let schema = Schema::new(json!({"type": "string", "format": "email"})).unwrap();
    assert!(
        Validator::new(&schema)
            .unwrap()
            .check("\"no mail\"")
            .is_ok()
    );
}
