//! A schema as it was registered: parsed, with its limits checked and its references resolved to places in itself.

use crate::cost;
use crate::upcast::Upcast;
use crate::validator;
use jsonschema::ValidatorMap;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use thiserror::Error;

/// The longest schema text.
pub const MAX_SCHEMA_BYTES: usize = 128 << 10;
/// How deep a schema may be nested.
pub const MAX_SCHEMA_DEPTH: usize = 64;
/// The most objects and lists a schema may consist of.
pub const MAX_SUBSCHEMAS: usize = 10_000;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
/// Keywords that look somewhere else than their own place for what they mean.
const FOREIGN: [&str; 4] = [
    "$dynamicRef",
    "$recursiveRef",
    "$dynamicAnchor",
    "$recursiveAnchor",
];

/// Keywords whose value is a schema that is asked about the same instance, or about parts of it.
pub(crate) const ONE: [&str; 12] = [
    "not",
    "if",
    "then",
    "else",
    "items",
    "contains",
    "additionalProperties",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
    "additionalItems",
];
/// Keywords whose value is a list of schemas.
pub(crate) const MANY: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords whose value is an object of schemas.
pub(crate) const NAMED: [&str; 6] = [
    "$defs",
    "definitions",
    "properties",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
];

/// Why a text is not a schema that is taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidSchema {
    /// It is longer than [`MAX_SCHEMA_BYTES`].
    #[error("the schema has {bytes} bytes, the limit (max_schema_bytes) is {MAX_SCHEMA_BYTES}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// It is not JSON.
    #[error("the schema is not JSON: {reason}")]
    NotJson {
        /// What the parser said.
        reason: String,
    },
    /// It is nested too deep or has too many parts.
    #[error("{path}: the schema exceeds {limit}, which is {value}")]
    TooComplex {
        /// Where.
        path: String,
        /// The limit's name.
        limit: &'static str,
        /// Its value.
        value: usize,
    },
    /// It is written in another dialect.
    #[error("/$schema: expected {DIALECT}, or no $schema")]
    OtherDialect,
    /// It refers to something outside itself, or in a way that is not supported.
    #[error("{path}: {reason}")]
    BadReference {
        /// Where the reference is.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A keyword has a value that it cannot have.
    #[error("{path}: {reason}")]
    BadKeyword {
        /// Where.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// A schema that is within its limits and refers only to itself.
pub struct Schema {
    root: Value,
    /// How often one place of a payload may be looked at, in a level of nesting; see [`cost`].
    pub(crate) fan_out: usize,
    /// Validators of its parts, for checking single values; made when they are needed first.
    parts: OnceLock<Option<ValidatorMap>>,
    /// Validators of parts that refer to nothing, and of patterns; as many as the schema has.
    leaves: Mutex<HashMap<String, Option<Arc<jsonschema::Validator>>>>,
}

impl Schema {
    /// Parses a schema and checks it.
    pub fn parse(text: &str) -> Result<Self, InvalidSchema> {
        let bytes = text.len();
        if bytes > MAX_SCHEMA_BYTES {
            return Err(InvalidSchema::TooLong { bytes });
        }
        let root = serde_json::from_str(text).map_err(|error| InvalidSchema::NotJson {
            reason: error.to_string(),
        })?;
        Self::new(root)
    }

    /// The same for a value.
    pub fn new(root: Value) -> Result<Self, InvalidSchema> {
        let dialect = root.get("$schema").and_then(Value::as_str);
        if root.get("$schema").is_some()
            && dialect.map(|uri| uri.trim_end_matches('#')) != Some(DIALECT)
        {
            return Err(InvalidSchema::OtherDialect);
        }
        let mut seen = 0;
        walk(&root, "", 0, &mut seen)?;
        check_references(&root, &root, "")?;
        let fan_out = cost::check(&root)?;
        validator::check_meta_schema(&root)?;
        Upcast::of(&root)?;
        Ok(Self {
            root,
            fan_out,
            parts: OnceLock::new(),
            leaves: Mutex::default(),
        })
    }

    /// The schema itself.
    pub fn root(&self) -> &Value {
        &self.root
    }

    /// Its text, without insignificant whitespace.
    pub fn to_text(&self) -> String {
        self.root.to_string()
    }

    /// Where a reference leads: the pointer and what is there.
    pub(crate) fn resolve<'a>(&'a self, reference: &'a str) -> Option<(String, &'a Value)> {
        let pointer = decoded(reference.strip_prefix('#')?)?;
        let value = self.root.pointer(&pointer)?;
        Some((pointer, value))
    }

    /// Whether the part of the schema at a pointer accepts a value; `None` where that cannot be told.
    pub(crate) fn accepts(&self, pointer: &str, value: &Value) -> Option<bool> {
        match self.root.pointer(pointer)? {
            Value::Bool(accepts) => return Some(*accepts),
            part if !has_reference(part) => {
                return Some(self.leaf(pointer, part)?.is_valid(value));
            }
            _ => {}
        }
        let parts = self
            .parts
            .get_or_init(|| validator::options().build_map(&self.root).ok());
        let part = parts.as_ref()?.get(&format!("#{pointer}"))?;
        Some(part.is_valid(value))
    }

    /// Whether a name matches a pattern, as the validator would say.
    pub(crate) fn is_match(&self, pattern: &str, name: &str) -> Option<bool> {
        let leaf = self.leaf(
            &format!("pattern {pattern}"),
            &json!({ "pattern": pattern }),
        )?;
        Some(leaf.is_valid(&json!(name)))
    }

    fn leaf(&self, name: &str, part: &Value) -> Option<Arc<jsonschema::Validator>> {
        let mut leaves = self.leaves.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(leaf) = leaves.get(name) {
            return leaf.clone();
        }
        let leaf = validator::options().build(part).ok().map(Arc::new);
        leaves.insert(name.to_owned(), leaf.clone());
        leaf
    }
}

/// Whether anything in a part of a schema refers to another.
pub(crate) fn has_reference(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.contains_key("$ref") || map.values().any(has_reference),
        Value::Array(items) => items.iter().any(has_reference),
        _ => false,
    }
}

/// A name as a part of a JSON Pointer.
pub(crate) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The schemas that a schema consists of: the pointer to each, from its own, and the keyword that it is under.
pub(crate) fn children(value: &Value) -> Vec<(String, &'static str, &Value)> {
    let mut found = Vec::new();
    let Value::Object(map) = value else {
        return found;
    };
    for keyword in ONE {
        if let Some(child) = map.get(keyword) {
            found.push((format!("/{keyword}"), keyword, child));
        }
    }
    for keyword in MANY {
        let items = map.get(keyword).and_then(Value::as_array);
        for (at, child) in items.into_iter().flatten().enumerate() {
            found.push((format!("/{keyword}/{at}"), keyword, child));
        }
    }
    for keyword in NAMED {
        let items = map.get(keyword).and_then(Value::as_object);
        for (name, child) in items.into_iter().flatten() {
            // `dependencies` of older drafts also has lists of names.
            if child.is_object() || child.is_boolean() {
                found.push((format!("/{keyword}/{}", escaped(name)), keyword, child));
            }
        }
    }
    found
}

fn walk(value: &Value, path: &str, depth: usize, seen: &mut usize) -> Result<(), InvalidSchema> {
    let too_complex = |limit, value| InvalidSchema::TooComplex {
        path: path.to_owned(),
        limit,
        value,
    };
    if depth > MAX_SCHEMA_DEPTH {
        return Err(too_complex("max_schema_depth", MAX_SCHEMA_DEPTH));
    }
    let parts: Vec<(String, &Value)> = match value {
        Value::Object(map) => map
            .iter()
            .map(|(name, part)| (escaped(name), part))
            .collect(),
        Value::Array(items) => {
            let parts = items.iter().enumerate();
            parts.map(|(at, part)| (at.to_string(), part)).collect()
        }
        _ => return Ok(()),
    };
    *seen += 1;
    if *seen > MAX_SUBSCHEMAS {
        return Err(too_complex("max_subschemas", MAX_SUBSCHEMAS));
    }
    for (name, part) in parts {
        walk(part, &format!("{path}/{name}"), depth + 1, seen)?;
    }
    Ok(())
}

/// Refuses references that lead out of the schema, to nothing, or in a circle without ever reaching a part of a payload.
fn check_references(root: &Value, value: &Value, path: &str) -> Result<(), InvalidSchema> {
    let Value::Object(map) = value else {
        return Ok(());
    };
    let bad = |keyword: &str, reason: String| InvalidSchema::BadReference {
        path: format!("{path}/{keyword}"),
        reason,
    };
    for keyword in FOREIGN {
        if map.contains_key(keyword) {
            return Err(bad(keyword, format!("{keyword} is not supported")));
        }
    }
    if !path.is_empty() && map.contains_key("$id") {
        return Err(bad(
            "$id",
            "only the schema as a whole may have an $id".into(),
        ));
    }
    if let Some(reference) = map.get("$ref") {
        let target = reference.as_str().unwrap_or_default();
        let Some(pointer) = target.strip_prefix('#').and_then(decoded) else {
            let reason = format!(
                "{reference} is not in this schema; only references such as \"#/$defs/name\" are followed"
            );
            return Err(bad("$ref", reason));
        };
        match root.pointer(&pointer) {
            Some(Value::Object(_) | Value::Bool(_)) => {}
            _ => return Err(bad("$ref", format!("{reference} leads to no schema"))),
        }
        let mut seen = HashSet::new();
        if is_circle(root, &pointer, &mut seen, &mut HashSet::new()) {
            let reason =
                format!("{reference} leads to itself without looking at a part of the payload");
            return Err(bad("$ref", reason));
        }
    }
    for (name, _, child) in children(value) {
        check_references(root, child, &format!("{path}{name}"))?;
    }
    Ok(())
}

/// Whether following references and the keywords that stay at the same place comes back to where it began.
fn is_circle(
    root: &Value,
    pointer: &str,
    open: &mut HashSet<String>,
    done: &mut HashSet<String>,
) -> bool {
    if done.contains(pointer) {
        return false;
    }
    if !open.insert(pointer.to_owned()) {
        return true;
    }
    let next = root
        .pointer(pointer)
        .map(|value| same_place(value, pointer));
    let found = next
        .unwrap_or_default()
        .iter()
        .any(|next| is_circle(root, next, open, done));
    open.remove(pointer);
    done.insert(pointer.to_owned());
    found
}

/// The schemas that are asked about the same place of a payload as this one.
pub(crate) fn same_place(value: &Value, pointer: &str) -> Vec<String> {
    let mut next: Vec<String> = children(value)
        .into_iter()
        .filter(|(_, keyword, _)| is_same_place(keyword))
        .map(|(name, _, _)| format!("{pointer}{name}"))
        .collect();
    let reference = value.get("$ref").and_then(Value::as_str);
    next.extend(reference.and_then(|target| decoded(target.strip_prefix('#')?)));
    next
}

pub(crate) fn is_same_place(keyword: &str) -> bool {
    matches!(
        keyword,
        "allOf"
            | "anyOf"
            | "oneOf"
            | "not"
            | "if"
            | "then"
            | "else"
            | "dependentSchemas"
            | "dependencies"
    )
}

/// The JSON Pointer of a URI fragment; `None` where it is none.
pub(crate) fn decoded(fragment: &str) -> Option<String> {
    if !fragment.is_empty() && !fragment.starts_with('/') {
        return None;
    }
    if !fragment.contains('%') {
        return Some(fragment.to_owned());
    }
    let bytes = fragment.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'%' {
            let digits = fragment.get(at + 1..at + 3)?;
            plain.push(u8::from_str_radix(digits, 16).ok()?);
            at += 3;
        } else {
            plain.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8(plain).ok()
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.root).finish()
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.root == other.root
    }
}
