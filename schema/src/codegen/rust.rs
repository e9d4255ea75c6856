//! Rust: structs and enums with serde for each topic, its definitions and what is nested in them.

use super::names::{Names, constant_name, field_name, type_name};
use super::rust_shape::{Shape, is_recursive, without_null};
use super::{Definitions, description, properties};
use crate::document::Schema;
use serde_json::{Map, Value};
use std::fmt::Write as _;

const HEAD: &str = "// Written by `prombus codegen --lang rust`. Do not edit: change the schemas and run it again.\n";
const ANY: &str = "::serde_json::Value";
const DERIVES: &str =
    "#[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize)]";
/// Names of types that the file uses, and the one name that no variant may have.
const RESERVED: [&str; 5] = ["Option", "String", "Vec", "Box", "Self"];

/// The types of one topic, while they are written.
struct Writer<'a> {
    topic: &'a str,
    schema: &'a Schema,
    definitions: Definitions,
    names: &'a mut Names,
    out: String,
}

pub(super) fn file(topics: &[(&str, &Schema)]) -> String {
    let mut names = Names::reserving(&RESERVED);
    let mut constants = Names::default();
    let mut out = HEAD.to_owned();
    for (topic, schema) in topics {
        let constant = constants.unique(constant_name(topic));
        let _ = write!(
            out,
            "\n/// The name of the topic.\npub const {constant}: &str = {topic:?};\n"
        );
        let name = names.unique(type_name(topic));
        let mut writer = Writer {
            topic,
            schema,
            definitions: Definitions::new(name.clone()),
            names: &mut names,
            out: String::new(),
        };
        writer.declare_at("", &name);
        while let Some((pointer, name)) = writer.definitions.next() {
            writer.declare_at(&pointer, &name);
        }
        out.push_str(&writer.out);
    }
    out
}

impl Writer<'_> {
    /// Writes the type of what is at a pointer.
    fn declare_at(&mut self, pointer: &str, name: &str) {
        let schema = self.schema;
        let Some(value) = schema.root().pointer(pointer) else {
            return;
        };
        let about = match pointer {
            "" => format!("The payload of `{}`.", self.topic),
            pointer => format!("`{pointer}` of `{}`.", self.topic),
        };
        // An alias cannot contain itself; a struct around it can.
        let is_wrapped = matches!(Shape::of(value), Shape::Other) && is_recursive(schema, pointer);
        if is_wrapped {
            let kind = self.kind(value, name);
            let about = description(value).unwrap_or(about);
            let _ = write!(
                self.out,
                "\n/// {about}\n{DERIVES}\n#[serde(transparent)]\npub struct {name}(pub {kind});\n"
            );
        } else {
            self.declare(name, value, about)
        }
    }

    /// Writes the type of a schema under a name: a struct or an enum where it is one, else another name for it.
    fn declare(&mut self, name: &str, value: &Value, about: String) {
        let about = description(value).unwrap_or(about);
        match Shape::of(value) {
            Shape::Struct(map) => self.structure(name, map, &about),
            Shape::Words(words) => self.words(name, &words, &about),
            Shape::Choice(branches) if without_null(value).is_none() => {
                self.choice(name, branches, &about);
            }
            Shape::Choice(_) | Shape::Other => {
                let kind = self.kind(value, name);
                let _ = write!(self.out, "\n/// {about}\npub type {name} = {kind};\n");
            }
        }
    }

    fn structure(&mut self, name: &str, map: &Map<String, Value>, about: &str) {
        let is_closed = map.get("additionalProperties") == Some(&Value::Bool(false));
        let mut fields = String::new();
        let mut field_names = Names::default();
        for (property, value, is_required) in properties(map) {
            let field = field_names.unique(field_name(property));
            let mut kind = self.kind(value, &format!("{name}{}", type_name(property)));
            let mut settings = Vec::new();
            if field != *property {
                settings.push(format!("rename = {property:?}"));
            }
            if !is_required {
                settings.push("default, skip_serializing_if = \"Option::is_none\"".to_owned());
                kind = optional(kind);
            }
            let about = description(value).unwrap_or_else(|| format!("`{property}`."));
            let _ = writeln!(fields, "    /// {}", super::one_line(&about));
            if !settings.is_empty() {
                let _ = writeln!(fields, "    #[serde({})]", settings.join(", "));
            }
            let _ = writeln!(fields, "    pub {field}: {kind},");
        }
        let closed = if is_closed {
            "#[serde(deny_unknown_fields)]\n"
        } else {
            ""
        };
        let _ = write!(
            self.out,
            "\n/// {about}\n{DERIVES}\n{closed}pub struct {name} {{\n{fields}}}\n"
        );
    }

    fn words(&mut self, name: &str, words: &[&str], about: &str) {
        let mut variants = String::new();
        let mut names = Names::reserving(&RESERVED);
        for word in words {
            let variant = names.unique(type_name(word));
            let about = super::one_line(&format!("`{word}`."));
            let _ = write!(
                variants,
                "    /// {about}\n    #[serde(rename = {word:?})]\n    {variant},\n"
            );
        }
        let _ = write!(
            self.out,
            "\n/// {about}\n{DERIVES}\npub enum {name} {{\n{variants}}}\n"
        );
    }

    fn choice(&mut self, name: &str, branches: &[Value], about: &str) {
        let mut variants = String::new();
        for (at, branch) in branches.iter().enumerate() {
            let number = at + 1;
            let kind = self.kind(branch, &format!("{name}Variant{number}"));
            let about = description(branch).unwrap_or_else(|| format!("Branch {number}."));
            let _ = write!(variants, "    /// {about}\n    Variant{number}({kind}),\n");
        }
        let _ = write!(
            self.out,
            "\n/// {about}\n{DERIVES}\n#[serde(untagged)]\npub enum {name} {{\n{variants}}}\n"
        );
    }

    /// The type of a schema; what needs a name of its own gets `wanted`.
    fn kind(&mut self, value: &Value, wanted: &str) -> String {
        if let Some(map) = value.as_object()
            && let Some(reference) = map.get("$ref").and_then(Value::as_str)
        {
            return self.reference(reference);
        }
        if let Some(inner) = without_null(value) {
            return optional(self.kind(&inner, wanted));
        }
        if !matches!(Shape::of(value), Shape::Other) {
            let name = self.names.unique(wanted.to_owned());
            self.declare(
                &name,
                value,
                format!("A part of the payload of `{}`.", self.topic),
            );
            return name;
        }
        let is_listed = value.get("enum").is_some() || value.get("const").is_some();
        match value.get("type").and_then(Value::as_str) {
            _ if is_listed => ANY.to_owned(),
            Some("boolean") => "bool".to_owned(),
            Some("integer") => "i64".to_owned(),
            Some("number") => "f64".to_owned(),
            Some("string") => "String".to_owned(),
            Some("null") => "()".to_owned(),
            Some("array") if value.get("prefixItems").is_none() => {
                format!(
                    "Vec<{}>",
                    self.item(value.get("items"), &format!("{wanted}Item"))
                )
            }
            Some("object") if is_map(value) => {
                let values = value.get("additionalProperties");
                let kind = self.item(values, &format!("{wanted}Value"));
                format!("::std::collections::BTreeMap<String, {kind}>")
            }
            _ => ANY.to_owned(),
        }
    }

    /// The type of what is in a list or a map, which need no box of their own.
    fn item(&mut self, value: Option<&Value>, wanted: &str) -> String {
        let kind = value.map_or_else(|| ANY.to_owned(), |value| self.kind(value, wanted));
        let inside = kind
            .strip_prefix("Box<")
            .and_then(|kind| kind.strip_suffix('>'));
        inside.map(str::to_owned).unwrap_or(kind)
    }

    fn reference(&mut self, reference: &str) -> String {
        let Some((pointer, _)) = self.schema.resolve(reference) else {
            return ANY.to_owned();
        };
        let name = self.definitions.name(&pointer, self.names);
        // Something that contains itself needs a box on the way.
        if is_recursive(self.schema, &pointer) {
            format!("Box<{name}>")
        } else {
            name
        }
    }
}

fn optional(kind: String) -> String {
    if kind.starts_with("Option<") {
        kind
    } else {
        format!("Option<{kind}>")
    }
}

/// Whether nothing but `additionalProperties` says what an object has.
fn is_map(value: &Value) -> bool {
    let properties = value.get("properties").and_then(Value::as_object);
    value.get("patternProperties").is_none()
        && properties.is_none_or(Map::is_empty)
        && ["allOf", "anyOf", "oneOf", "if"]
            .iter()
            .all(|keyword| value.get(*keyword).is_none())
}
