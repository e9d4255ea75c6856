//! What a schema becomes in Rust, and whether a type contains itself.

use crate::document::{Schema, children};
use serde_json::{Map, Value};
use std::collections::HashSet;

/// Keywords that may be beside the branches of a union.
const BESIDE_BRANCHES: [&str; 9] = [
    "anyOf",
    "oneOf",
    "title",
    "description",
    "$defs",
    "$schema",
    "$id",
    "$comment",
    "x-upcast",
];
/// Keywords that make more of an object than a struct can express.
const MORE_THAN_STRUCT: [&str; 6] = ["allOf", "anyOf", "oneOf", "$ref", "if", "patternProperties"];

/// What a schema becomes.
pub(super) enum Shape<'a> {
    Struct(&'a Map<String, Value>),
    /// An enum of texts.
    Words(Vec<&'a str>),
    /// One of several.
    Choice(&'a [Value]),
    /// Another name for a type.
    Other,
}

impl<'a> Shape<'a> {
    pub(super) fn of(value: &'a Value) -> Self {
        let Value::Object(map) = value else {
            return Self::Other;
        };
        if let Some(words) = words(map) {
            return words;
        }
        if is_struct(map) {
            return Self::Struct(map);
        }
        let has_more = |keyword: &String| !BESIDE_BRANCHES.contains(&keyword.as_str());
        match (map.get("anyOf"), map.get("oneOf")) {
            (Some(Value::Array(branches)), None) | (None, Some(Value::Array(branches)))
                if !map.keys().any(has_more) =>
            {
                Self::Choice(branches)
            }
            _ => Self::Other,
        }
    }
}

/// What is left of a schema without `null`, where that is one of its types or branches.
pub(super) fn without_null(value: &Value) -> Option<Value> {
    let map = value.as_object()?;
    if map.contains_key("enum") || map.contains_key("const") {
        return None;
    }
    if let Some(Value::Array(kinds)) = map.get("type") {
        let mut others = kinds.iter().filter(|kind| *kind != "null");
        let (first, second) = (others.next()?, others.next());
        if second.is_none() && kinds.len() == 2 {
            let mut inner = map.clone();
            inner.insert("type".to_owned(), first.clone());
            return Some(Value::Object(inner));
        }
    }
    let Shape::Choice(branches) = Shape::of(value) else {
        return None;
    };
    let is_null = |branch: &&Value| branch.get("type") == Some(&Value::from("null"));
    let mut others: Vec<Value> = branches
        .iter()
        .filter(|branch| !is_null(branch))
        .cloned()
        .collect();
    match others.len() {
        0 => None,
        count if count == branches.len() => None,
        1 => others.pop(),
        _ => Some(serde_json::json!({ "anyOf": others })),
    }
}

/// Whether the type at a pointer contains itself.
pub(super) fn is_recursive(schema: &Schema, pointer: &str) -> bool {
    reaches(schema, pointer, pointer, &mut HashSet::new())
}

fn reaches(schema: &Schema, from: &str, to: &str, seen: &mut HashSet<String>) -> bool {
    let Some(value) = schema.root().pointer(from) else {
        return false;
    };
    let mut next: Vec<String> = children(value)
        .into_iter()
        .filter(|(_, keyword, _)| !matches!(*keyword, "$defs" | "definitions"))
        .map(|(name, _, _)| format!("{from}{name}"))
        .collect();
    let reference = value.get("$ref").and_then(Value::as_str);
    if let Some((pointer, _)) = reference.and_then(|reference| schema.resolve(reference)) {
        if pointer == to {
            return true;
        }
        next.push(pointer);
    }
    next.into_iter()
        .any(|next| seen.insert(next.clone()) && reaches(schema, &next, to, seen))
}

/// The texts that are all a schema allows; `Other` where some are no texts, `None` where it does not list them.
fn words(map: &Map<String, Value>) -> Option<Shape<'_>> {
    let constant = map.get("const").map(std::slice::from_ref);
    let listed = map.get("enum").and_then(Value::as_array);
    let listed = listed.map(Vec::as_slice).or(constant)?;
    let words: Option<Vec<&str>> = listed.iter().map(Value::as_str).collect();
    Some(words.map_or(Shape::Other, Shape::Words))
}

fn is_struct(map: &Map<String, Value>) -> bool {
    let properties = map.get("properties").and_then(Value::as_object);
    let has_typed_rest = map
        .get("additionalProperties")
        .is_some_and(Value::is_object);
    map.get("type") == Some(&Value::from("object"))
        && properties.is_some_and(|properties| !properties.is_empty())
        && !has_typed_rest
        && !MORE_THAN_STRUCT
            .iter()
            .any(|keyword| map.contains_key(*keyword))
}
