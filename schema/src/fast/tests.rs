//! The quick yes against the `jsonschema` crate: whatever it says yes to fits, and of plain payloads that fit it misses
//! none.

use super::FastSchema;
use crate::validator::options;
use proptest::prelude::*;
use serde_json::{Value, json};

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..6_i64).prop_map(Value::from),
        prop::sample::select(vec!["", "a", "ab", "b", "é", "aé", "a-7"]).prop_map(Value::from),
    ]
}

/// Values without fractions, escapes and the like, which the quick pass has to decide.
fn plain() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[abc]", inner, 0..3).prop_map(|map| json!(map)),
        ]
    })
}

/// JSON text of all kinds, also with what is hard, and some that is no JSON.
fn text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => plain().prop_map(|value| value.to_string()),
        1 => prop::sample::select(vec![
            "1.0", "2.5", "-0", "1e2", "-1.5", "-2.25", "4.000", "123456789012345678.5", "0.0", "3.0000000000000001", "01", "1.", "-", "99999999999999999999", "1e999",
            "\"\\u0061\"", "\"a\\nb\"", "\"\\ud800\"", "\"\u{1}\"", "tru", "nul", "[1,]", "[,1]", "{\"a\":1,}", "{\"a\" 1}", "", "{", "\"",
        ]).prop_map(str::to_owned),
    ];
    let name = || prop::sample::select(vec!["a", "b", "c", "\\u0061"]);
    leaf.prop_recursive(3, 16, 3, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[{}]", items.join(" ,"))),
            prop::collection::vec((name(), inner), 0..4).prop_map(|members| {
                let members: Vec<String> = members
                    .iter()
                    .map(|(name, value)| format!("\"{name}\" : {value}"))
                    .collect();
                format!(" {{{}}} ", members.join(","))
            }),
        ]
    })
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![4 => Just(json!({})), 1 => any::<bool>().prop_map(Value::from)];
    leaf.prop_recursive(3, 24, 3, |inner| {
        let kinds = vec!["null", "boolean", "integer", "number", "string", "array", "object"];
        let kind = move || prop::sample::select(kinds.clone());
        let one_of = |names: &[&'static str]| prop::sample::select(names.to_vec());
        let part = prop_oneof![
            4 => kind().prop_map(|kind| ("type", json!(kind))),
            1 => prop::collection::btree_set(kind(), 1..4).prop_map(|kinds| ("type", json!(kinds))),
            1 => prop::collection::vec(scalar(), 1..4).prop_map(|values| ("enum", json!(values))),
            1 => scalar().prop_map(|value| ("const", value)),
            2 => (-2..5_i64, one_of(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"])).prop_map(|(n, name)| (name, json!(n))),
            1 => (-4..8_i64, one_of(&["minimum", "exclusiveMaximum"])).prop_map(|(n, name)| (name, json!(n as f64 / 2.0))),
            2 => (0..4_u64, one_of(&["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"])).prop_map(|(n, name)| (name, json!(n))),
            1 => one_of(&["^a", "b$", "a", "^[a-z]+-?[0-9]*$", "[^a]", "a|b", "^(a|é)*$", "a{2}", ".", "\\d"]).prop_map(|pattern| ("pattern", json!(pattern))),
            1 => any::<bool>().prop_map(|unique| ("uniqueItems", json!(unique))),
            2 => prop::collection::btree_set("[abc]", 0..3).prop_map(|names| ("required", json!(names))),
            3 => prop::collection::btree_map("[abc]", inner.clone(), 0..3).prop_map(|map| ("properties", json!(map))),
            2 => inner.clone().prop_map(|value| ("additionalProperties", value)),
            2 => inner.prop_map(|value| ("items", value)),
            1 => one_of(&["format", "title"]).prop_map(|name| (name, json!("date"))),
        ];
        prop::collection::vec(part, 0..4).prop_map(|parts| parts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    })
}

/// What the library says, in the way of [`crate::Validator::check`].
fn is_valid(schema: &Value, text: &str) -> bool {
    let library = options().build(schema).expect("a schema");
    serde_json::from_str::<Value>(text).is_ok_and(|value| library.is_valid(&value))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn whatever_it_says_yes_to_fits(schema in schema(), text in text()) {
        if let Some(fast) = FastSchema::compile(&schema) {
            prop_assert!(!fast.fits(&text) || is_valid(&schema, &text), "{schema} {text}");
        }
    }

    #[test]
    fn of_plain_payloads_that_fit_it_misses_none(schema in schema(), value in plain()) {
        // How many names there are is not counted where they are unknown.
        let has_count = schema.to_string().contains("minProperties");
        if let Some(fast) = FastSchema::compile(&schema)
            && !has_count
        {
            let text = value.to_string();
            prop_assert_eq!(fast.fits(&text), is_valid(&schema, &text), "{} {}", schema, text);
        }
    }
}

/// Patterns put together from pieces of the syntax, some of which only one of the two engines knows.
fn pattern() -> impl Strategy<Value = String> {
    let pieces = vec![
        "a",
        "b",
        "-",
        "7",
        ".",
        "^",
        "$",
        "|",
        "*",
        "+",
        "?",
        "(",
        ")",
        "(?:",
        "[ab]",
        "[^a]",
        "[a-c-]",
        "[",
        "]",
        "{2}",
        "{1,2}",
        "{,2}",
        "{",
        "\\d",
        "\\w",
        "\\W",
        "\\s",
        "\\b",
        "\\.",
        "\\-",
        "\\cA",
        "\\p{L}",
        "[]a]",
        "[a&&b]",
        "[[:alpha:]]",
        "(?i)",
        "é",
        "#",
        " ",
        "[\\]a]",
        "[\\d-]",
        "\\/",
    ];
    prop::collection::vec(prop::sample::select(pieces), 1..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn patterns_match_what_the_library_matches(pattern in pattern(), text in "[abAé7 .\u{2028}\\[\\]{}#,/-]{0,5}") {
        let schema = json!({ "pattern": pattern });
        if let (Some(fast), Ok(library)) = (FastSchema::compile(&schema), options().build(&schema)) {
            let value = Value::from(text);
            prop_assert_eq!(fast.fits(&value.to_string()), library.is_valid(&value), "{} {}", pattern, value);
        }
    }
}

#[test]
fn common_schemas_are_compiled_and_others_are_not() {
    let known = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "a process",
        "type": "object",
        "properties": {
            "pid": {"type": "integer", "minimum": 0},
            "name": {"type": "string", "pattern": "^[a-z-]+[0-9]*$", "maxLength": 64},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 8},
        },
        "required": ["pid"],
        "additionalProperties": false,
    });
    let fast = FastSchema::compile(&known).expect("all of it is known");
    assert!(fast.fits(r#"{"pid":7,"name":"sensor-7","tags":["a","b"]}"#));
    assert!(fast.fits_compact(r#"{"pid":7,"name":"sensor-7"}"#));
    for spaced in [
        " { \"pid\" : 7 }\n",
        " {\"pid\":7}",
        "{\"pid\":7 }",
        "{\"pid\":7}\t",
    ] {
        assert!(
            fast.fits(spaced) && !fast.fits_compact(spaced),
            "{spaced:?}"
        );
    }
    for unsure in [
        r#"{"name":"x"}"#,
        r#"{"pid":-1}"#,
        r#"{"pid":7,"more":1}"#,
        r#"{"pid":7,"pid":8}"#,
        r#"{"pid":7}x"#,
        r#"{"pid":7"#,
        r#"{"p\u0069d":7}"#,
    ] {
        assert!(!fast.fits(unsure), "{unsure}");
    }
    for unknown in [
        json!({"$ref": "#/$defs/a", "$defs": {"a": {}}}),
        json!({"anyOf": [{}]}),
        json!({"properties": {"a": {"multipleOf": 2}}}),
        json!({"enum": [[1]]}),
    ] {
        assert!(FastSchema::compile(&unknown).is_none(), "{unknown}");
    }
}

#[test]
fn patterns_beyond_the_room_for_tables_are_matched_too() {
    let pattern = |at: usize| format!("^([a-z]{{2,9}}-){{1,9}}{at}$");
    let properties: serde_json::Map<String, Value> = (0..60)
        .map(|at| (format!("p{at}"), json!({ "pattern": pattern(at) })))
        .collect();
    let fast = FastSchema::compile(&json!({ "properties": properties })).expect("known");
    for at in 0..60 {
        assert!(fast.fits(&json!({ format!("p{at}"): format!("ab-cd-{at}") }).to_string()));
        assert!(!fast.fits(&json!({ format!("p{at}"): format!("ab-c-{at}") }).to_string()));
    }
}

#[test]
fn deep_payloads_are_left_to_the_library() {
    let fast = FastSchema::compile(&json!({"items": {}})).expect("known");
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(fast.fits(&nested(60)));
    assert!(!fast.fits(&nested(200)));
}

#[test]
fn a_name_of_the_schema_that_comes_twice_is_refused_with_the_reason() {
    let schema = crate::Schema::parse(r#"{"properties":{"role":{"enum":["user"]}}}"#).unwrap();
    let validator = crate::Validator::new(&schema).unwrap();
    assert_eq!(validator.check(r#"{"role":"user"}"#), Ok(()));
    // What came last fits, and readers that take the first would see something else.
    let error = validator
        .check(r#"{"role":"admin","role":"user"}"#)
        .unwrap_err();
    assert!(error.reason.contains("\"role\" twice"), "{error}");
}
