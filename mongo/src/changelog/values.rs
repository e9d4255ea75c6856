//! What JSON becomes in a field, and how versions are compared.

use crate::json::parse;
use mongodb::bson::Bson;
use prombus_connect::{ColumnType, Compare};
use std::cmp::Ordering;

/// A field's JSON text as a value of this type. What does not fit the type is kept as it is.
pub(super) fn field_value(json: &str, kind: ColumnType) -> Bson {
    let text = || Bson::String(json.to_owned());
    if kind == ColumnType::Json && json != "null" {
        return text();
    }
    let Some(value) = parse(json) else {
        // Numbers beyond doubles and nesting beyond BSON are kept as they were written.
        return text();
    };
    match (kind, value) {
        (ColumnType::Text, Bson::String(value)) => Bson::String(value),
        (ColumnType::Text, Bson::Null) => Bson::Null,
        (ColumnType::Text, _) => text(),
        (ColumnType::Integer, Bson::Double(value)) if value == value.trunc() => {
            if value.abs() < 9e15 {
                Bson::Int64(value as i64)
            } else {
                Bson::Double(value)
            }
        }
        (ColumnType::Integer, Bson::Int32(value)) => Bson::Int64(value.into()),
        (ColumnType::Real, Bson::Int32(value)) => Bson::Double(value.into()),
        (ColumnType::Real, Bson::Int64(value)) => Bson::Double(value as f64),
        (_, value) => value,
    }
}

/// A field's JSON text as a version; `None` where it is none.
pub(super) fn version_value(json: Option<&str>, compare: Compare) -> Option<Bson> {
    let value = parse(json?)?;
    match (compare, &value) {
        (Compare::Text, Bson::String(_))
        | (Compare::Number, Bson::Int32(_) | Bson::Int64(_) | Bson::Double(_)) => Some(value),
        _ => None,
    }
}

/// Whether a document of version `new` may overwrite one of version `held`.
pub(super) fn may_overwrite(held: Option<&Bson>, new: Option<&Bson>) -> bool {
    match (held, new) {
        (None | Some(Bson::Null), _) => true,
        (Some(_), None) => false,
        (Some(held), Some(new)) => compare(new, held).is_some_and(Ordering::is_ge),
    }
}

/// Compares two numbers or two texts.
fn compare(one: &Bson, other: &Bson) -> Option<Ordering> {
    match (one, other) {
        (Bson::String(one), Bson::String(other)) => Some(one.as_bytes().cmp(other.as_bytes())),
        _ => match (integer(one), integer(other)) {
            (Some(one), Some(other)) => Some(one.cmp(&other)),
            _ => number(one)?.partial_cmp(&number(other)?),
        },
    }
}

fn integer(value: &Bson) -> Option<i64> {
    match value {
        Bson::Int32(value) => Some((*value).into()),
        Bson::Int64(value) => Some(*value),
        _ => None,
    }
}

fn number(value: &Bson) -> Option<f64> {
    match value {
        Bson::Double(value) => Some(*value),
        _ => integer(value).map(|value| value as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_becomes_what_bson_has() {
        use ColumnType::{Any, Boolean, Integer, Json, Real, Text};
        assert_eq!(field_value("12", Any), Bson::Int32(12));
        assert_eq!(field_value("12", Integer), Bson::Int64(12));
        assert_eq!(field_value("12.0", Integer), Bson::Int64(12));
        assert_eq!(field_value("12", Real), Bson::Double(12.0));
        assert_eq!(field_value("1.50", Text), Bson::String("1.50".into()));
        assert_eq!(field_value(r#""a\n""#, Text), Bson::String("a\n".into()));
        assert_eq!(field_value(r#""a""#, Json), Bson::String(r#""a""#.into()));
        assert_eq!(field_value("[1]", Any), Bson::Array(vec![Bson::Int32(1)]));
        assert_eq!(field_value("true", Boolean), Bson::Boolean(true));
        assert_eq!(field_value("1E400", Real), Bson::String("1E400".into()));
        for kind in [Any, Text, Json] {
            assert_eq!(field_value("null", kind), Bson::Null);
        }
    }

    #[test]
    fn what_is_older_does_not_overwrite() {
        let number = |json| version_value(Some(json), Compare::Number);
        let (one, two) = (number("1"), number("2.5"));
        assert!(may_overwrite(one.as_ref(), two.as_ref()));
        assert!(may_overwrite(one.as_ref(), one.as_ref()));
        assert!(!may_overwrite(two.as_ref(), one.as_ref()));
        assert!(may_overwrite(None, None));
        assert!(!may_overwrite(one.as_ref(), None));
        let large = (number("9007199254740993"), number("9007199254740992"));
        assert!(!may_overwrite(large.0.as_ref(), large.1.as_ref()));
        for (json, compare) in [("7", Compare::Text), (r#""7""#, Compare::Number)] {
            assert_eq!(version_value(Some(json), compare), None);
        }
    }
}
