//! Types for TypeScript and Rust from the schemas of topics. What a type cannot express (ranges, patterns, `not`) is left
//! to the schema; what it can express is never narrower than the schema.

mod names;
mod rust;
mod rust_shape;
mod typescript;

use crate::document::Schema;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A language that types are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Types alone, without a line that runs.
    TypeScript,
    /// Structs and enums with serde.
    Rust,
}

/// No language that types can be written in.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown language {word:?}; expected ts or rust")]
pub struct UnknownLanguage {
    /// What was given.
    pub word: String,
}

/// The types of these topics, as one file. Topics come in the order they are given.
pub fn codegen(language: Language, topics: &[(&str, &Schema)]) -> String {
    match language {
        Language::TypeScript => typescript::file(topics),
        Language::Rust => rust::file(topics),
    }
}

impl FromStr for Language {
    type Err = UnknownLanguage;

    fn from_str(word: &str) -> Result<Self, UnknownLanguage> {
        match word {
            "ts" | "typescript" => Ok(Self::TypeScript),
            "rust" => Ok(Self::Rust),
            _ => Err(UnknownLanguage {
                word: word.to_owned(),
            }),
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TypeScript => "ts",
            Self::Rust => "rust",
        })
    }
}

/// The types of one topic that are referred to by name.
struct Definitions {
    /// The name of the topic's own type, which those of its definitions begin with.
    topic_type: String,
    /// By pointer.
    names: BTreeMap<String, String>,
    /// Pointers whose types are yet to be written.
    open: Vec<String>,
}

impl Definitions {
    fn new(topic_type: String) -> Self {
        Self {
            names: BTreeMap::from([(String::new(), topic_type.clone())]),
            topic_type,
            open: Vec::new(),
        }
    }

    /// The name of what is at a pointer; its type is written later.
    fn name(&mut self, pointer: &str, names: &mut names::Names) -> String {
        if let Some(name) = self.names.get(pointer) {
            return name.clone();
        }
        let last = pointer.rsplit('/').next().unwrap_or_default();
        let name = names.unique(format!("{}{}", self.topic_type, names::type_name(last)));
        self.names.insert(pointer.to_owned(), name.clone());
        self.open.push(pointer.to_owned());
        name
    }

    /// The next type that is yet to be written, with its name.
    fn next(&mut self) -> Option<(String, String)> {
        let pointer = self.open.pop()?;
        let name = self.names.get(&pointer)?.clone();
        Some((pointer, name))
    }
}

/// The properties of an object with whether they are required; those that are only named as required come last.
fn properties(map: &Map<String, Value>) -> Vec<(&str, &Value, bool)> {
    static ANY: Value = Value::Bool(true);
    let required: HashSet<&str> = match map.get("required") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => HashSet::new(),
    };
    let named = map.get("properties").and_then(Value::as_object);
    let mut found: Vec<(&str, &Value, bool)> = named
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.as_str(), value, required.contains(name.as_str())))
        .collect();
    let is_named = |name: &str| named.is_some_and(|named| named.contains_key(name));
    let mut others: Vec<&str> = required
        .into_iter()
        .filter(|name| !is_named(name))
        .collect();
    others.sort_unstable();
    found.extend(others.into_iter().map(|name| (name, &ANY, true)));
    found
}

/// A description as one line of a comment.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a schema says of itself.
fn description(value: &Value) -> Option<String> {
    let text = value.get("description").and_then(Value::as_str)?;
    Some(one_line(text)).filter(|text| !text.is_empty())
}
