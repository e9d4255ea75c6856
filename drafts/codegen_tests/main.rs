//! Generated types: they are what is committed beside this test, they compile, and payloads go through them unchanged.
//! `PROMBUS_WRITE_CODEGEN=1` writes the committed files.
#![cfg(test)]

mod generated;

use prombus_schema::{Language, Schema, Validator, codegen};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

fn schemas() -> Vec<(&'static str, Schema)> {
    let schema = |value: Value| Schema::new(value).unwrap();
    vec![
        (
            "order.created",
            schema(json!({
                "type": "object",
                "description": "An order.",
                "properties": {
                    "id": {"type": "string"},
                    "type": {"enum": ["web", "in-store"]},
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
                },
                "required": ["id", "type", "lineItems", "note"],
                "additionalProperties": false,
                "$defs": {"address": {
                    "type": "object",
                    "properties": {"zip": {"type": "string"}, "geo": {"type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}], "items": false, "minItems": 2}},
                    "required": ["zip"],
                }},
            })),
        ),
        (
            "tree",
            schema(json!({
                "type": "object",
                "properties": {"value": {"type": "number"}, "children": {"type": "array", "items": {"$ref": "#"}}, "parent": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
                "required": ["value"],
                "additionalProperties": false,
            })),
        ),
        (
            "shape",
            schema(json!({"oneOf": [
                {"type": "object", "properties": {"kind": {"const": "circle"}, "r": {"type": "number"}}, "required": ["kind", "r"], "additionalProperties": false},
                {"type": "object", "properties": {"kind": {"const": "square"}, "side": {"type": "number"}}, "required": ["kind", "side"], "additionalProperties": false},
            ]})),
        ),
        ("flag", schema(json!({"type": "boolean"}))),
        ("anything", schema(json!(true))),
    ]
}

fn written(language: Language) -> String {
    let schemas = schemas();
    let topics: Vec<(&str, &Schema)> = schemas.iter().map(|(topic, schema)| (*topic, schema)).collect();
    codegen(language, &topics)
}

#[test]
fn the_committed_files_are_what_is_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/codegen");
    for (language, file) in [(Language::Rust, "generated.rs"), (Language::TypeScript, "generated.ts")] {
        let head = match language {
            Language::Rust => "//! What `prombus codegen` writes for the schemas of the test beside it.\n#![allow(dead_code, missing_docs, unreachable_pub, reason = \"only some of it is used here\")]\n",
            Language::TypeScript => "",
        };
        let text = format!("{head}{}", written(language));
        let path = folder.join(file);
        if std::env::var_os("PROMBUS_WRITE_CODEGEN").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap();
        assert_eq!(committed.split_whitespace().collect::<Vec<_>>(), text.split_whitespace().collect::<Vec<_>>(), "{file}: run with PROMBUS_WRITE_CODEGEN=1");
    }
}

/// Each payload fits its schema, and comes back the same from its type.
fn goes_through<T: serde::Serialize + serde::de::DeserializeOwned>(topic: &str, payload: Value) {
    let schemas = schemas();
    let (_, schema) = schemas.iter().find(|(name, _)| *name == topic).unwrap();
    Validator::new(schema).unwrap().check_value(&payload).unwrap();
    let value: T = serde_json::from_value(payload.clone()).unwrap_or_else(|error| panic!("{payload}: {error}"));
    assert_eq!(serde_json::to_value(&value).unwrap(), payload);
}

#[test]
fn payloads_go_through_the_types_of_rust_unchanged() {
    goes_through::<generated::OrderCreated>("order.created", json!({
        "id": "1", "type": "in-store", "lineItems": [{"sku": "a", "count": 2}], "note": null,
    }));
    goes_through::<generated::OrderCreated>("order.created", json!({
        "id": "1", "type": "web", "lineItems": [], "note": "x", "labels": {"a": "b"},
        "address": {"zip": "1", "geo": [1.5, 2.5]}, "extra": [1],
    }));
    goes_through::<generated::Tree>("tree", json!({"value": 1.5, "children": [{"value": 2.5}], "parent": {"value": 3.5}}));
    goes_through::<generated::Shape>("shape", json!({"kind": "circle", "r": 1.5}));
    goes_through::<generated::Shape>("shape", json!({"kind": "square", "side": 1.5}));
    goes_through::<generated::Flag>("flag", json!(true));
    goes_through::<generated::Anything>("anything", json!([1, {}]));
    assert!(serde_json::from_value::<generated::Tree>(json!({"value": 1, "other": 2})).is_err());
}

/// Where the compiler of TypeScript is installed beside the SDK, it takes the types and refuses what does not fit them.
#[test]
fn the_types_of_typescript_compile() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let compilers = ["sdk/typescript/node_modules/.bin/tsc", "web/node_modules/.bin/tsc"];
    let Some(compiler) = compilers.iter().map(|path| root.join(path)).find(|path| path.exists()) else {
        return;
    };
    let folder = std::env::temp_dir().join(format!("prombus-codegen-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("topics.ts"), written(Language::TypeScript)).unwrap();
    let compiles = |name: &str, text: &str| {
        let file = folder.join(name);
        std::fs::write(&file, text).unwrap();
        let arguments = ["--noEmit", "--strict", "--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler", "--types", ""];
        let output = Command::new(&compiler).args(arguments).arg(&file).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let good = r#"import type { Topics, Shape } from "./topics";
export const order: Topics["order.created"] = { id: "1", type: "web", lineItems: [{ sku: "a", count: 1 }], note: null, address: { zip: "1", geo: [1, 2] } };
export const shape: Shape = { kind: "circle", r: 1 };
export const tree: Topics["tree"] = { value: 1, children: [{ value: 2 }], parent: null };
"#;
    let (is_fine, text) = compiles("good.ts", good);
    assert!(is_fine, "{text}");
    let bad = r#"import type { Topics } from "./topics";
export const order: Topics["order.created"] = { id: 1, type: "web", lineItems: [], note: null };
"#;
    assert!(!compiles("bad.ts", bad).0);
    std::fs::remove_dir_all(&folder).unwrap();
}
