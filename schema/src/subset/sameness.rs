//! Whether two places of schemas say the same, word for word, with everything they refer to.

use super::facts::Node;
use crate::document::{Schema, has_reference};
use serde_json::Value;
use std::collections::HashSet;

/// Whether two schemas are written the same and what they refer to is too.
pub(super) fn is_same(one: &Node<'_>, other: &Node<'_>) -> bool {
    if std::ptr::eq(one.schema, other.schema) && one.pointer == other.pointer {
        return true;
    }
    is_same_part(one.schema, one.value, other.schema, other.value)
}

/// The same for the value of a keyword.
pub(super) fn is_same_part(one: &Schema, part: &Value, other: &Schema, other_part: &Value) -> bool {
    if part != other_part {
        return false;
    }
    if std::ptr::eq(one, other) || !has_reference(part) {
        return true;
    }
    let mut targets = HashSet::new();
    collect_targets(one, part, &mut targets);
    targets.iter().all(
        |target| match (one.resolve(target), other.resolve(target)) {
            (Some((_, here)), Some((_, there))) => here == there,
            _ => false,
        },
    )
}

/// Whether two values are equal as JSON Schema counts it: `1` is `1.0`, and the order of properties does not matter.
pub(super) fn equal_values(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || one.as_f64() == other.as_f64()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|(one, other)| equal_values(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, value)| {
                    other
                        .get(name)
                        .is_some_and(|other| equal_values(value, other))
                })
        }
        (one, other) => one == other,
    }
}

/// Everything that a part of a schema refers to, directly or through what it refers to.
fn collect_targets(schema: &Schema, part: &Value, targets: &mut HashSet<String>) {
    match part {
        Value::Object(map) => {
            if let Some(target) = map.get("$ref").and_then(Value::as_str)
                && targets.insert(target.to_owned())
                && let Some((_, found)) = schema.resolve(target)
            {
                collect_targets(schema, found, targets);
            }
            map.values()
                .for_each(|part| collect_targets(schema, part, targets));
        }
        Value::Array(items) => items
            .iter()
            .for_each(|part| collect_targets(schema, part, targets)),
        _ => {}
    }
}
