//! What JSON becomes in a column.

use crate::database::signed;
use prombus_connect::{ColumnType, Compare};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};

/// A field's JSON text as a value of a column.
pub(super) fn column_value(json: Option<&str>, kind: ColumnType) -> ToSqlOutput<'_> {
    let Some(json) = json.filter(|json| *json != "null") else {
        return NULL;
    };
    match (kind, json.as_bytes()[0]) {
        (ColumnType::Json, _) => text(json),
        (_, b'"') => string(json),
        (_, b'{' | b'[') => text(json),
        (_, b't') => ToSqlOutput::Borrowed(ValueRef::Integer(1)),
        (_, b'f') => ToSqlOutput::Borrowed(ValueRef::Integer(0)),
        (ColumnType::Text, _) => text(json),
        _ => number(json),
    }
}

/// A field's JSON text as a version; `NULL` where it is none.
pub(super) fn version_value(json: Option<&str>, compare: Compare) -> ToSqlOutput<'_> {
    match (compare, json.and_then(|json| json.bytes().next())) {
        (Compare::Text, Some(b'"')) => string(json.unwrap_or_default()),
        (Compare::Number, Some(b'-' | b'0'..=b'9')) => number(json.unwrap_or_default()),
        _ => NULL,
    }
}

/// Text as a value.
pub(super) fn text(text: &str) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes()))
}

/// A number of the log as a value; none of them is beyond 63 bits.
pub(super) fn integer(number: u64) -> ToSqlOutput<'static> {
    ToSqlOutput::Borrowed(ValueRef::Integer(signed(number)))
}

const NULL: ToSqlOutput<'static> = ToSqlOutput::Borrowed(ValueRef::Null);

/// A JSON string without its quotes and escapes.
fn string(json: &str) -> ToSqlOutput<'_> {
    if json.contains('\\') {
        let plain: String = serde_json::from_str(json).unwrap_or_else(|_| json.to_owned());
        return ToSqlOutput::Owned(Value::Text(plain));
    }
    text(json.get(1..json.len() - 1).unwrap_or_default())
}

/// A JSON number: whole where it is spelt so and fits, else rounded to what SQLite keeps.
fn number(json: &str) -> ToSqlOutput<'_> {
    if let Ok(whole) = json.parse::<i64>() {
        return ToSqlOutput::Borrowed(ValueRef::Integer(whole));
    }
    match json.parse::<f64>() {
        Ok(real) => ToSqlOutput::Borrowed(ValueRef::Real(real)),
        Err(_) => text(json),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(json: &str, kind: ColumnType) -> Value {
        match column_value(Some(json), kind) {
            ToSqlOutput::Borrowed(value) => value.try_into().expect("UTF-8"),
            ToSqlOutput::Owned(value) => value,
            _ => Value::Null,
        }
    }

    fn words(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    #[test]
    fn json_becomes_what_sqlite_has() {
        use ColumnType::{Any, Json, Text};
        assert_eq!(column("12", Any), Value::Integer(12));
        assert_eq!(column("-1.5e3", Any), Value::Real(-1500.0));
        assert_eq!(
            column("18446744073709551615", Any),
            Value::Real(1.8446744073709552e19)
        );
        assert_eq!(column("true", Any), Value::Integer(1));
        assert_eq!(column("false", ColumnType::Boolean), Value::Integer(0));
        assert_eq!(column(r#""a\n\u00e9""#, Any), words("a\né"));
        assert_eq!(column(r#""""#, Any), words(""));
        assert_eq!(column("[1, 2]", Any), words("[1, 2]"));
        assert_eq!(column("1.50", Text), words("1.50"));
        assert_eq!(column(r#""a""#, Json), words(r#""a""#));
        for kind in [Any, Text, Json] {
            assert_eq!(column("null", kind), Value::Null);
        }
    }

    #[test]
    fn only_values_of_the_compared_kind_are_versions() {
        let version = |json, compare| version_value(Some(json), compare);
        assert_eq!(version("7", Compare::Number), integer(7));
        assert_eq!(version(r#""b""#, Compare::Text), text("b"));
        for (json, compare) in [
            ("7", Compare::Text),
            (r#""7""#, Compare::Number),
            ("null", Compare::Number),
            ("true", Compare::Number),
            ("{}", Compare::Text),
        ] {
            assert_eq!(version(json, compare), NULL, "{json}");
        }
        assert_eq!(version_value(None, Compare::Number), NULL);
    }
}
