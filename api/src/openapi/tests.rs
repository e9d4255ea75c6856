//! The document against the checked-in file, against itself, and against the bodies that it describes.

mod atomic_samples;
mod dashboard_samples;
mod samples;
mod schema_samples;
mod shadow_samples;

use super::*;
use samples::samples;
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn the_checked_in_document_is_this_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
    if std::env::var_os("PROMBUS_WRITE_OPENAPI").is_some() {
        let text = serde_json::to_string_pretty(&document()).unwrap();
        std::fs::write(&path, text + "\n").unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let checked_in: Value = serde_json::from_str(&text).unwrap();
    assert!(
        checked_in == document(),
        "api/openapi.json is not what the code says: run this test with PROMBUS_WRITE_OPENAPI=1"
    );
}

#[test]
fn references_lead_somewhere_and_no_schema_is_forgotten() {
    let document = document();
    let mut used = BTreeSet::new();
    references(&document, &mut used);
    for reference in &used {
        let pointer = reference.trim_start_matches('#');
        assert!(
            document.pointer(pointer).is_some(),
            "{reference} leads nowhere"
        );
    }
    // These stand on lines or inside payloads, where a reference cannot.
    let in_prose = ["Envelope", "DeadLetter"];
    for name in document["components"]["schemas"]
        .as_object()
        .unwrap()
        .keys()
    {
        let is_used = used.contains(&format!("#/components/schemas/{name}"));
        assert!(
            is_used || in_prose.contains(&name.as_str()),
            "{name} is not used"
        );
    }
}

#[test]
fn operations_have_their_own_ids_and_their_path_parameters() {
    let document = document();
    let mut ids = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for operation in operations.as_object().unwrap().values() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id.to_owned()), "{id} stands twice");
            let parameters = operation["parameters"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let in_path = parameters.iter().any(|parameter| parameter["in"] == "path");
            assert_eq!(path.contains('{'), in_path, "{path}");
        }
    }
}

#[test]
fn every_code_is_described() {
    let document = document();
    let words = document["components"]["schemas"]["Code"]["enum"]
        .as_array()
        .unwrap();
    let text = document["components"]["responses"]["Error"]["description"]
        .as_str()
        .unwrap();
    for code in Code::ALL {
        assert!(words.contains(&json!(code.as_str())), "{code}");
        assert!(
            text.contains(&format!("- {} `{code}`: ", code.http_status())),
            "{code}"
        );
    }
}

/// Each body with all its fields fits its schema, and has every field that the schema knows.
#[test]
fn bodies_are_as_described() {
    let document = document();
    let schemas = &document["components"]["schemas"];
    let samples = samples();
    let described: BTreeSet<&str> = samples.iter().map(|(name, _)| *name).collect();
    for name in schemas
        .as_object()
        .unwrap()
        .keys()
        .filter(|name| *name != "Code")
    {
        assert!(described.contains(name.as_str()), "{name} has no sample");
    }
    for name in described {
        let mut seen = BTreeSet::new();
        for (_, sample) in samples.iter().filter(|(of, _)| *of == name) {
            fits(schemas, &schemas[name], sample, name);
            seen.extend(sample.as_object().unwrap().keys().cloned());
        }
        let known = schemas[name]["properties"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        assert_eq!(seen, known, "{name}");
    }
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(
                fields
                    .get("$ref")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
            );
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

/// As much of JSON Schema as the document uses.
fn fits(schemas: &Value, schema: &Value, value: &Value, place: &str) {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap();
        return fits(schemas, &schemas[name], value, place);
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    match &schema["type"] {
        Value::Null => {}
        Value::Array(kinds) => assert!(kinds.contains(&json!(kind)), "{place}: {value}"),
        expected => assert_eq!(expected, kind, "{place}: {value}"),
    }
    if let Some(words) = schema["enum"].as_array() {
        assert!(words.contains(value), "{place}: {value}");
    }
    if let Some(items) = value.as_array() {
        items
            .iter()
            .for_each(|item| fits(schemas, &schema["items"], item, place));
    }
    if let (Some(fields), Some(properties)) = (value.as_object(), schema["properties"].as_object())
    {
        for (name, value) in fields {
            let property = properties.get(name);
            let property = property.unwrap_or_else(|| panic!("{place} has no {name}"));
            fits(schemas, property, value, &format!("{place}.{name}"));
        }
        for name in schema["required"].as_array().into_iter().flatten() {
            assert!(
                fields.contains_key(name.as_str().unwrap()),
                "{place} lacks {name}"
            );
        }
    }
}
