//! TypeScript: one exported type for each topic and each definition, and a map from topics to their types.

use super::names::{Names, type_name};
use super::{Definitions, description, properties};
use crate::document::Schema;
use serde_json::{Map, Value};
use std::fmt::Write as _;

const HEAD: &str = "// Written by `prombus codegen --lang ts`. Do not edit: change the schemas and run it again.\n";

/// Names that the file uses itself.
const RESERVED: [&str; 1] = ["Topics"];

/// The types of one topic, while they are written.
struct Writer<'a> {
    schema: &'a Schema,
    definitions: Definitions,
    names: &'a mut Names,
}

pub(super) fn file(topics: &[(&str, &Schema)]) -> String {
    let mut names = Names::reserving(&RESERVED);
    let mut out = HEAD.to_owned();
    let mut map = String::new();
    for (topic, schema) in topics {
        let name = names.unique(type_name(topic));
        let mut writer = Writer {
            schema,
            definitions: Definitions::new(name.clone()),
            names: &mut names,
        };
        let about = format!("The payload of `{topic}`.");
        writer.declare(&mut out, &name, schema.root(), about);
        while let Some((pointer, name)) = writer.definitions.next() {
            if let Some(value) = schema.root().pointer(&pointer) {
                let about = format!("`{pointer}` of `{topic}`.");
                writer.declare(&mut out, &name, value, about);
            }
        }
        let _ = writeln!(map, "  {}: {name};", quoted(topic));
    }
    let about = "The payloads of all topics, by their names.";
    let _ = write!(
        out,
        "\n/** {about} */\nexport interface Topics {{\n{map}}}\n"
    );
    out
}

impl Writer<'_> {
    fn declare(&mut self, out: &mut String, name: &str, value: &Value, about: String) {
        let about = description(value).unwrap_or(about);
        let kind = self.of(value, 0);
        let _ = write!(
            out,
            "\n/** {} */\nexport type {name} = {kind};\n",
            comment(&about)
        );
    }

    fn of(&mut self, value: &Value, depth: usize) -> String {
        let Value::Object(map) = value else {
            return if value == &Value::Bool(false) {
                "never"
            } else {
                "unknown"
            }
            .to_owned();
        };
        let mut parts = Vec::new();
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            parts.push(self.reference(reference));
        }
        if let Some(value) = map.get("const") {
            parts.push(literal(value));
        } else if let Some(Value::Array(values)) = map.get("enum") {
            parts.push(union(values.iter().map(literal).collect()));
        } else if let Some(own) = self.own(map, depth) {
            parts.push(own);
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = map.get(keyword) {
                parts.push(union(
                    branches
                        .iter()
                        .map(|branch| self.of(branch, depth))
                        .collect(),
                ));
            }
        }
        if let Some(Value::Array(branches)) = map.get("allOf") {
            parts.extend(branches.iter().map(|branch| self.of(branch, depth)));
        }
        parts.retain(|part| part != "unknown");
        match parts.len() {
            0 => "unknown".to_owned(),
            1 => parts.remove(0),
            _ => parts
                .iter()
                .map(|part| grouped(part))
                .collect::<Vec<_>>()
                .join(" & "),
        }
    }

    /// What `type`, `properties` and `items` say.
    fn own(&mut self, map: &Map<String, Value>, depth: usize) -> Option<String> {
        let kinds: Vec<&str> = match map.get("type") {
            Some(Value::String(kind)) => vec![kind],
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
            // Without a type these say something of objects and lists only, and anything else fits too.
            _ => return None,
        };
        let kinds = kinds.into_iter().map(|kind| match kind {
            "null" => "null".to_owned(),
            "boolean" => "boolean".to_owned(),
            "integer" | "number" => "number".to_owned(),
            "string" => "string".to_owned(),
            "array" => self.list(map, depth),
            "object" => self.object(map, depth),
            _ => "unknown".to_owned(),
        });
        Some(union(kinds.collect()))
    }

    fn list(&mut self, map: &Map<String, Value>, depth: usize) -> String {
        let rest = match map.get("items") {
            Some(Value::Bool(false)) => None,
            Some(items) => Some(self.of(items, depth)),
            None => Some("unknown".to_owned()),
        };
        let Some(Value::Array(prefix)) = map.get("prefixItems") else {
            return rest.map_or_else(|| "[]".to_owned(), |rest| format!("{}[]", grouped(&rest)));
        };
        let min_items = map.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        let mut elements = Vec::new();
        for (at, value) in prefix.iter().enumerate() {
            let optional = if (at as u64) < min_items { "" } else { "?" };
            elements.push(format!("{}{optional}", grouped(&self.of(value, depth))));
        }
        elements.extend(rest.map(|rest| format!("...{}[]", grouped(&rest))));
        format!("[{}]", elements.join(", "))
    }

    fn object(&mut self, map: &Map<String, Value>, depth: usize) -> String {
        let additional = map.get("additionalProperties");
        let has_patterns = map.contains_key("patternProperties");
        let properties = properties(map);
        // A mapped type, which may contain itself; `Record` may not.
        let record = |kind: &str| format!("{{ [name: string]: {kind} }}");
        if properties.is_empty() {
            return match additional.filter(|_| !has_patterns) {
                Some(values) => record(&self.of(values, depth)),
                None => record("unknown"),
            };
        }
        let indent = "  ".repeat(depth + 1);
        let mut text = "{\n".to_owned();
        for (name, value, is_required) in properties {
            if let Some(about) = description(value) {
                let _ = writeln!(text, "{indent}/** {} */", comment(&about));
            }
            let optional = if is_required { "" } else { "?" };
            let kind = self.of(value, depth + 1);
            let _ = writeln!(text, "{indent}{}{optional}: {kind};", quoted(name));
        }
        if has_patterns || additional != Some(&Value::Bool(false)) {
            let _ = writeln!(text, "{indent}[name: string]: unknown;");
        }
        text.push_str(&"  ".repeat(depth));
        text.push('}');
        text
    }

    fn reference(&mut self, reference: &str) -> String {
        match self.schema.resolve(reference) {
            Some((pointer, _)) => self.definitions.name(&pointer, self.names),
            None => "unknown".to_owned(),
        }
    }
}

/// A description that does not end its comment.
fn comment(text: &str) -> String {
    text.replace("*/", "* /")
}

fn literal(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => "unknown".to_owned(),
        value => value.to_string(),
    }
}

fn union(mut parts: Vec<String>) -> String {
    let mut seen = Vec::new();
    parts.retain(|part| {
        let is_new = !seen.contains(part);
        seen.push(part.clone());
        is_new
    });
    if parts.iter().any(|part| part == "unknown") {
        return "unknown".to_owned();
    }
    parts.join(" | ")
}

/// In parentheses, where it would otherwise fall apart.
fn grouped(part: &str) -> String {
    let mut depth = 0_usize;
    let mut is_text = false;
    let mut was_escape = false;
    let is_several = part.chars().any(|letter| {
        match letter {
            '"' if !was_escape => is_text = !is_text,
            '{' | '[' | '(' | '<' if !is_text => depth += 1,
            '}' | ']' | ')' | '>' if !is_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        was_escape = letter == '\\' && !was_escape;
        depth == 0 && !is_text && matches!(letter, '|' | '&')
    });
    if is_several {
        format!("({part})")
    } else {
        part.to_owned()
    }
}

fn quoted(name: &str) -> String {
    let mut letters = name.chars();
    let is_plain = letters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    if is_plain {
        name.to_owned()
    } else {
        Value::from(name).to_string()
    }
}
