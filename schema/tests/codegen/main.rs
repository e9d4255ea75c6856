//! Generated types: they are what is committed beside this test, they compile, and payloads go through them unchanged.
//! `PROMBUS_WRITE_CODEGEN=1` writes the committed files.
#![cfg(test)]

#[rustfmt::skip]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the file is written for a library, and only some of it is used here"
)]
mod generated;
mod schemas;
mod typescript;

use prombus_schema::{Language, Schema, Validator, codegen};
use schemas::{schema_of, schemas};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::path::Path;

/// What the Rust file begins with here, because every file of the house says what it is.
const RUST_HEAD: &str =
    "//! What `prombus codegen --lang rust` writes for the schemas of the test beside it.\n\n";

fn generate(language: Language) -> String {
    let schemas = schemas();
    let topics: Vec<(&str, &Schema)> = schemas
        .iter()
        .map(|(topic, schema)| (*topic, schema))
        .collect();
    codegen(language, &topics)
}

#[test]
fn the_committed_files_are_what_is_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/codegen");
    for (file, text) in [
        (
            "generated.rs",
            format!("{RUST_HEAD}{}", generate(Language::Rust)),
        ),
        ("generated.ts", generate(Language::TypeScript)),
    ] {
        let path = folder.join(file);
        if std::env::var_os("PROMBUS_WRITE_CODEGEN").is_some() {
            std::fs::write(&path, &text).expect("written");
        }
        let committed = std::fs::read_to_string(&path).expect("a file");
        assert_eq!(committed, text, "{file}: run with PROMBUS_WRITE_CODEGEN=1");
    }
}

/// The payload fits its schema, and comes back the same from its type.
fn goes_through<T: Serialize + DeserializeOwned>(topic: &str, payload: &Value) {
    let validator = Validator::new(&schema_of(topic)).expect("a validator");
    validator.check_value(payload).expect("it fits");
    let value: Result<T, _> = serde_json::from_value(payload.clone());
    let value = value.unwrap_or_else(|error| panic!("{payload}: {error}"));
    assert_eq!(&serde_json::to_value(&value).expect("JSON"), payload);
}

#[test]
fn payloads_go_through_the_types_of_rust_unchanged() {
    for payload in [
        json!({"id": "1", "type": "in-store", "lineItems": [{"sku": "a", "count": 2}], "note": null, "origin": [1]}),
        json!({
            "id": "1", "type": "self", "lineItems": [], "note": "x", "labels": {"a": "b"}, "origin": null,
            "address": {"zip": "1", "geo": [1.5, 2.5]}, "extra": [1],
        }),
    ] {
        goes_through::<generated::OrderCreated>(generated::ORDER_CREATED, &payload);
    }
    let tree = json!({"value": 1.5, "children": [{"value": 2.5}], "parent": {"value": 3.5}});
    goes_through::<generated::Tree>(generated::TREE, &tree);
    goes_through::<generated::Nested>(generated::NESTED, &json!([[], [[]]]));
    goes_through::<generated::Shape>(generated::SHAPE, &json!({"kind": "circle", "r": 1.5}));
    goes_through::<generated::Shape>(generated::SHAPE, &json!({"kind": "square", "side": 1.5}));
    goes_through::<generated::Option2>(generated::OPTION, &json!("x"));
    goes_through::<generated::Option2>(generated::OPTION, &json!(null));
    goes_through::<generated::Flag>(generated::FLAG, &json!(true));
    goes_through::<generated::Anything>(generated::ANYTHING, &json!([1, {}]));
}

#[test]
fn what_does_not_fit_a_closed_type_is_refused() {
    let read = |payload: Value| serde_json::from_value::<generated::Tree>(payload);
    assert!(read(json!({"value": 1, "other": 2})).is_err());
    assert!(read(json!({"children": []})).is_err());
    let shape = json!({"kind": "triangle", "r": 1});
    assert!(serde_json::from_value::<generated::Shape>(shape).is_err());
}

#[test]
fn languages_have_names() {
    assert_eq!("ts".parse(), Ok(Language::TypeScript));
    assert_eq!(Language::Rust.to_string().parse(), Ok(Language::Rust));
    let error = "go".parse::<Language>().expect_err("no language");
    assert_eq!(
        error.to_string(),
        "unknown language \"go\"; expected ts or rust"
    );
}
