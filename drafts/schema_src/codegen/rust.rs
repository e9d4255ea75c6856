//! Rust: structs and enums with serde for each topic, its definitions and what is nested in them.

use super::names::{Names, field_name, type_name};
use crate::document::{Schema, children};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

const HEAD: &str = "// Written by `prombus codegen --lang rust`. Do not edit: change the schemas and run it again.\n";
const ANY: &str = "::serde_json::Value";
const DERIVES: &str = "#[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize)]";

/// The types of one topic, while they are written.
struct Writer<'a> {
    schema: &'a Schema,
    /// The names of what is referred to, by pointer.
    references: BTreeMap<String, String>,
    topic_type: String,
    names: &'a mut Names,
    /// Pointers whose types are yet to be written.
    open: Vec<String>,
    out: String,
}

pub(super) fn file(topics: &[(&str, &Schema)]) -> String {
    let mut names = Names::default();
    let mut out = HEAD.to_owned();
    for (topic, schema) in topics {
        let name = names.unique(type_name(topic));
        let mut writer = Writer {
            schema,
            references: BTreeMap::from([(String::new(), name.clone())]),
            topic_type: name.clone(),
            names: &mut names,
            open: Vec::new(),
            out: String::new(),
        };
        let about = format!("The payload of `{topic}`.");
        writer.declare(&name, schema.root(), &about);
        while let Some(pointer) = writer.open.pop() {
            let name = writer.references.get(&pointer).cloned().unwrap_or_default();
            if let Some(value) = schema.root().pointer(&pointer) {
                writer.declare(&name, value, &format!("`{pointer}` of `{topic}`."));
            }
        }
        out.push_str(&writer.out);
    }
    out
}

impl Writer<'_> {
    /// Writes the type of a schema under a name: a struct or an enum where it is one, else another name for it.
    fn declare(&mut self, name: &str, value: &Value, about: &str) {
        let described = value.get("description").and_then(Value::as_str);
        let about = described.unwrap_or(about).replace('\n', " ");
        match shape(value) {
            Shape::Struct(map) => self.structure(name, map, &about),
            Shape::Words(words) => self.words(name, &words, &about),
            Shape::Choice(branches) => self.choice(name, branches, &about),
            Shape::Other => {
                let kind = self.of(value, name);
                let _ = write!(self.out, "\n/// {about}\npub type {name} = {kind};\n");
            }
        }
    }

    fn structure(&mut self, name: &str, map: &Map<String, Value>, about: &str) {
        let required: HashSet<&str> = match map.get("required") {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => HashSet::new(),
        };
        let is_closed = map.get("additionalProperties") == Some(&Value::Bool(false))
            && !map.contains_key("patternProperties");
        let mut fields = String::new();
        let mut field_names = Names::default();
        let properties = map.get("properties").and_then(Value::as_object);
        for (property, value) in properties.into_iter().flatten() {
            let field = field_names.unique(field_name(property));
            let mut kind = self.of(value, &format!("{name}{}", type_name(property)));
            let mut settings = Vec::new();
            if field != *property {
                settings.push(format!("rename = {property:?}"));
            }
            if !required.contains(property.as_str()) {
                settings.push("default, skip_serializing_if = \"Option::is_none\"".to_owned());
                if !kind.starts_with("Option<") {
                    kind = format!("Option<{kind}>");
                }
            }
            let described = value.get("description").and_then(Value::as_str);
            if let Some(described) = described {
                let _ = writeln!(fields, "    /// {}", described.replace('\n', " "));
            }
            if !settings.is_empty() {
                let _ = writeln!(fields, "    #[serde({})]", settings.join(", "));
            }
            let _ = writeln!(fields, "    pub {field}: {kind},");
        }
        let closed = if is_closed { "#[serde(deny_unknown_fields)]\n" } else { "" };
        let _ = write!(self.out, "\n/// {about}\n{DERIVES}\n{closed}pub struct {name} {{\n{fields}}}\n");
    }

    fn words(&mut self, name: &str, words: &[&str], about: &str) {
        let mut variants = String::new();
        let mut names = Names::default();
        for word in words {
            let variant = names.unique(type_name(word));
            let _ = write!(variants, "    #[serde(rename = {word:?})]\n    {variant},\n");
        }
        let _ = write!(self.out, "\n/// {about}\n{DERIVES}\npub enum {name} {{\n{variants}}}\n");
    }

    fn choice(&mut self, name: &str, branches: &[Value], about: &str) {
        let mut variants = String::new();
        for (at, branch) in branches.iter().enumerate() {
            let number = at + 1;
            let kind = self.of(branch, &format!("{name}Variant{number}"));
            let _ = write!(variants, "    /// Branch {number}.\n    Variant{number}({kind}),\n");
        }
        let _ = write!(self.out, "\n/// {about}\n{DERIVES}\n#[serde(untagged)]\npub enum {name} {{\n{variants}}}\n");
    }

    /// The type of a schema; what needs a name of its own gets `wanted`.
    fn of(&mut self, value: &Value, wanted: &str) -> String {
        if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
            return self.reference(reference);
        }
        if let Some(inner) = nullable(value) {
            let kind = self.of(&inner, wanted);
            return if kind.starts_with("Option<") { kind } else { format!("Option<{kind}>") };
        }
        if !matches!(shape(value), Shape::Other) {
            let name = self.names.unique(wanted.to_owned());
            self.declare(&name, value, "A part of a payload.");
            return name;
        }
        match value.get("type").and_then(Value::as_str) {
            Some("boolean") => "bool".to_owned(),
            Some("integer") => "i64".to_owned(),
            Some("number") => "f64".to_owned(),
            Some("string") => "String".to_owned(),
            Some("null") => "()".to_owned(),
            Some("array") if value.get("prefixItems").is_none() => {
                let items = value.get("items").cloned().unwrap_or(Value::Bool(true));
                format!("Vec<{}>", self.of(&items, &format!("{wanted}Item")))
            }
            Some("object") if value.get("patternProperties").is_none() => {
                let values = value.get("additionalProperties").cloned().unwrap_or(Value::Bool(true));
                let kind = self.of(&values, &format!("{wanted}Value"));
                format!("::std::collections::BTreeMap<String, {kind}>")
            }
            _ => ANY.to_owned(),
        }
    }

    fn reference(&mut self, reference: &str) -> String {
        let Some((pointer, _)) = self.schema.resolve(reference) else {
            return ANY.to_owned();
        };
        let name = match self.references.get(&pointer) {
            Some(name) => name.clone(),
            None => {
                let last = pointer.rsplit('/').next().unwrap_or_default();
                let name = self.names.unique(format!("{}{}", self.topic_type, type_name(last)));
                self.references.insert(pointer.clone(), name.clone());
                self.open.push(pointer.clone());
                name
            }
        };
        // Something that contains itself needs a box on the way.
        if reaches(self.schema, &pointer, &pointer, &mut HashSet::new()) {
            return format!("Box<{name}>");
        }
        name
    }
}

/// What a schema becomes.
enum Shape<'a> {
    Struct(&'a Map<String, Value>),
    /// An enum of texts.
    Words(Vec<&'a str>),
    /// One of several.
    Choice(&'a [Value]),
    Other,
}

fn shape(value: &Value) -> Shape<'_> {
    let Value::Object(map) = value else {
        return Shape::Other;
    };
    let constant = map.get("const").map(std::slice::from_ref);
    let words = map.get("enum").and_then(Value::as_array).map(Vec::as_slice).or(constant);
    if let Some(words) = words {
        let texts: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        return if texts.len() == words.len() { Shape::Words(texts) } else { Shape::Other };
    }
    let has_properties = map.get("properties").and_then(Value::as_object).is_some_and(|properties| !properties.is_empty());
    let is_mixed = ["allOf", "anyOf", "oneOf", "$ref", "if", "patternProperties"].iter().any(|keyword| map.contains_key(*keyword));
    let is_struct = map.get("type") == Some(&Value::from("object")) && has_properties && !is_mixed;
    let has_typed_rest = map.get("additionalProperties").is_some_and(Value::is_object);
    if is_struct && !has_typed_rest {
        return Shape::Struct(map);
    }
    let says_more = map.keys().any(|keyword| !matches!(keyword.as_str(), "anyOf" | "oneOf" | "title" | "description" | "$defs" | "$schema" | "$id" | "$comment"));
    match (map.get("anyOf"), map.get("oneOf")) {
        (Some(Value::Array(branches)), None) | (None, Some(Value::Array(branches))) if !says_more => Shape::Choice(branches),
        _ => Shape::Other,
    }
}

/// What is left of a schema without `null`, where that is one of its types or branches.
fn nullable(value: &Value) -> Option<Value> {
    let map = value.as_object()?;
    if map.contains_key("enum") || map.contains_key("const") {
        return None;
    }
    if let Some(Value::Array(kinds)) = map.get("type") {
        let others: Vec<Value> = kinds.iter().filter(|kind| *kind != "null").cloned().collect();
        if others.len() == 1 && others.len() < kinds.len() {
            let mut inner = map.clone();
            inner.insert("type".to_owned(), others[0].clone());
            return Some(Value::Object(inner));
        }
    }
    let Shape::Choice(branches) = shape(value) else {
        return None;
    };
    let is_null = |branch: &&Value| branch.get("type") == Some(&Value::from("null"));
    let others: Vec<Value> = branches.iter().filter(|branch| !is_null(branch)).cloned().collect();
    if others.len() == branches.len() || others.is_empty() {
        return None;
    }
    Some(match others.len() {
        1 => others[0].clone(),
        _ => serde_json::json!({ "anyOf": others }),
    })
}

/// Whether following references and parts from a place comes to another one.
fn reaches(schema: &Schema, from: &str, to: &str, seen: &mut HashSet<String>) -> bool {
    let Some(value) = schema.root().pointer(from) else {
        return false;
    };
    let mut next: Vec<String> = children(value).into_iter().filter(|(_, keyword, _)| !matches!(*keyword, "$defs" | "definitions")).map(|(name, _, _)| format!("{from}{name}")).collect();
    let reference = value.get("$ref").and_then(Value::as_str);
    if let Some((pointer, _)) = reference.and_then(|reference| schema.resolve(reference)) {
        if pointer == to {
            return true;
        }
        next.push(pointer);
    }
    next.into_iter().any(|next| seen.insert(next.clone()) && reaches(schema, &next, to, seen))
}
