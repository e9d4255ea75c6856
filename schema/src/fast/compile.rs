//! From a schema to rules, where every keyword is one that is known here.

use super::cursor::MAX_EXACT;
use super::pattern::{MAX_TABLE_BYTES, Pattern};
use super::{Bound, FastSchema, Kinds, MAX_NAMES, Name, Node, ObjectRules, Rules, Scalar};
use serde_json::{Map, Value};
use std::sync::atomic::AtomicU8;

/// Keywords that decide nothing; formats are not validated.
const ANNOTATIONS: [&str; 12] = [
    "$schema",
    "$comment",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "deprecated",
    "examples",
    "format",
    "readOnly",
    "writeOnly",
];

impl FastSchema {
    /// Compiles a schema; `None` where it has anything that is not known here.
    pub(crate) fn compile(root: &Value) -> Option<Self> {
        let mut table_room = MAX_TABLE_BYTES;
        node(root, &mut table_room).map(|root| Self { root })
    }
}

fn node(schema: &Value, table_room: &mut usize) -> Option<Node> {
    match schema {
        Value::Bool(true) => Some(Node::Any),
        Value::Bool(false) => Some(Node::Never),
        Value::Object(keywords) => {
            let is_rule = |(name, _): &(&String, &Value)| !is_annotation(name);
            if !keywords.iter().any(|keyword| is_rule(&keyword)) {
                return Some(Node::Any);
            }
            let mut rules = Rules::default();
            for (name, value) in keywords.iter().filter(is_rule) {
                add(&mut rules, name, value, keywords, table_room)?;
            }
            Some(Node::Of(Box::new(rules)))
        }
        _ => None,
    }
}

fn is_annotation(name: &str) -> bool {
    ANNOTATIONS.contains(&name) || name.starts_with("x-")
}

fn add(
    rules: &mut Rules,
    name: &str,
    value: &Value,
    beside: &Map<String, Value>,
    table_room: &mut usize,
) -> Option<()> {
    match name {
        "type" => rules.kinds = kinds(value)?,
        "enum" => restrict(rules, value.as_array()?)?,
        "const" => restrict(rules, std::slice::from_ref(value))?,
        "minimum" | "exclusiveMinimum" => {
            let bound = bound(value, name == "exclusiveMinimum")?;
            rules.numbers.lower.push(bound);
        }
        "maximum" | "exclusiveMaximum" => {
            let bound = bound(value, name == "exclusiveMaximum")?;
            rules.numbers.upper.push(bound);
        }
        "minLength" => rules.texts.min_chars = count(value)?,
        "maxLength" => rules.texts.max_chars = Some(count(value)?),
        "pattern" => rules.texts.pattern = Some(Pattern::compile(value.as_str()?, table_room)?),
        "items" => rules.lists.items = node(value, table_room)?,
        "minItems" => rules.lists.min = count(value)?,
        "maxItems" => rules.lists.max = Some(count(value)?),
        "uniqueItems" => (*value == Value::Bool(false)).then_some(())?,
        // All three decide about names.
        "properties" | "required" | "additionalProperties" => {
            let (min, max) = (rules.objects.min, rules.objects.max);
            rules.objects = ObjectRules {
                min,
                max,
                ..names(beside, table_room)?
            };
        }
        "minProperties" => rules.objects.min = count(value)?,
        "maxProperties" => rules.objects.max = Some(count(value)?),
        _ => return None,
    }
    Some(())
}

fn kinds(value: &Value) -> Option<Kinds> {
    let kind = |name: &Value| {
        Some(match name.as_str()? {
            "null" => Kinds::NULL,
            "boolean" => Kinds::BOOL,
            "number" => Kinds::NUMBER,
            "integer" => Kinds::INTEGER,
            "string" => Kinds::TEXT,
            "array" => Kinds::LIST,
            "object" => Kinds::OBJECT,
            _ => return None,
        })
    };
    match value {
        Value::Array(names) => names
            .iter()
            .try_fold(Kinds(0), |all, name| Some(Kinds(all.0 | kind(name)?.0))),
        one => kind(one),
    }
}

/// Leaves only these values; a second list of them is not worth knowing.
fn restrict(rules: &mut Rules, values: &[Value]) -> Option<()> {
    rules.allowed.is_none().then_some(())?;
    let scalar = |value: &Value| {
        Some(match value {
            Value::Null => Scalar::Null,
            Value::Bool(value) => Scalar::Bool(*value),
            Value::Number(number) => Scalar::Whole(number.as_i64()?),
            Value::String(text) => Scalar::Text(text.clone()),
            Value::Array(_) | Value::Object(_) => return None,
        })
    };
    rules.allowed = Some(values.iter().map(scalar).collect::<Option<_>>()?);
    Some(())
}

fn bound(value: &Value, is_exclusive: bool) -> Option<Bound> {
    let number = value.as_f64()?;
    // A fraction of zero, as in 2.0, is a whole number too; beyond this not every one has a float of its own.
    let is_whole = number.fract() == 0.0 && number.abs() < MAX_EXACT as f64;
    Some(Bound {
        value: number,
        whole: value.as_i64().or(is_whole.then_some(number as i64)),
        is_exclusive,
    })
}

fn count(value: &Value) -> Option<usize> {
    usize::try_from(value.as_u64()?).ok()
}

/// Names that are described or required; others are what `additionalProperties` says.
fn names(keywords: &Map<String, Value>, table_room: &mut usize) -> Option<ObjectRules> {
    let others = |table_room: &mut usize| match keywords.get("additionalProperties") {
        None => Some(Node::Any),
        Some(schema) => node(schema, table_room),
    };
    let mut rules = ObjectRules {
        others: others(table_room)?,
        ..ObjectRules::default()
    };
    if let Some(properties) = keywords.get("properties") {
        for (name, schema) in properties.as_object()? {
            rules
                .names
                .push((Name::new(name), node(schema, table_room)?));
        }
    }
    for name in keywords
        .get("required")
        .into_iter()
        .flat_map(Value::as_array)
        .flatten()
    {
        let name = name.as_str()?;
        let known = rules
            .names
            .iter()
            .position(|(known, _)| *known.text == *name);
        let at = match known {
            Some(at) => at,
            None => {
                rules.names.push((Name::new(name), others(table_room)?));
                rules.names.len() - 1
            }
        };
        if at < MAX_NAMES {
            rules.required |= 1 << at;
        }
    }
    rules
        .followers
        .resize_with(rules.names.len() + 1, AtomicU8::default);
    (rules.names.len() <= MAX_NAMES).then_some(rules)
}
