//! Payloads as BSON and back. JSON becomes plain BSON, whatever its field names are; BSON becomes relaxed Extended JSON,
//! in which what JSON has no type for is an object such as `{"$oid":"…"}`.

use mongodb::bson::{Bson, Document};
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use std::fmt::{self, Write as _};

/// The deepest nesting that is kept as BSON; the server ends at 100, and what surrounds a payload counts too.
const MAX_BSON_DEPTH: usize = 90;

/// A payload as it is kept in a document.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Payload {
    /// As BSON, for queries; none where BSON cannot hold it.
    pub(crate) bson: Option<Bson>,
    /// The publisher's text, where writing the BSON as JSON would not give it back.
    pub(crate) raw: Option<String>,
}

impl Payload {
    /// A payload of the bus, which is JSON without whitespace.
    pub(crate) fn of(json: &str) -> Self {
        let bson = parse(json);
        let is_exact = bson.as_ref().is_some_and(|bson| {
            let mut text = String::with_capacity(json.len());
            write(bson, Doubles::Shortest, &mut text);
            text == json
        });
        Self {
            bson,
            raw: (!is_exact).then(|| json.to_owned()),
        }
    }

    /// Puts it into a document as `payload` and `raw`.
    pub(crate) fn insert_into(self, document: &mut Document) {
        if let Some(bson) = self.bson {
            document.insert("payload", bson);
        }
        if let Some(raw) = self.raw {
            document.insert("raw", raw);
        }
    }
}

/// JSON text as BSON; `None` where BSON cannot hold it: numbers beyond doubles, names with NUL, deep nesting.
pub(crate) fn parse(json: &str) -> Option<Bson> {
    let mut reader = serde_json::Deserializer::from_str(json);
    Level(0).deserialize(&mut reader).ok()
}

/// A value as relaxed Extended JSON.
pub(crate) fn relaxed(value: &Bson) -> String {
    let mut text = String::new();
    write(value, Doubles::WithPoint, &mut text);
    text
}

/// How doubles without a fraction are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doubles {
    /// `1.0`, which tells them from integers.
    WithPoint,
    /// `1`, as JavaScript does.
    Shortest,
}

fn write(value: &Bson, doubles: Doubles, text: &mut String) {
    match value {
        Bson::Null => text.push_str("null"),
        Bson::Boolean(value) => text.push_str(if *value { "true" } else { "false" }),
        // Writing to a string does not fail.
        Bson::Int32(value) => drop(write!(text, "{value}")),
        Bson::Int64(value) => drop(write!(text, "{value}")),
        // As JavaScript does, which knows no negative zero in JSON.
        Bson::Double(0.0) if doubles == Doubles::Shortest => text.push('0'),
        Bson::Double(value) if value.is_finite() => {
            let number = serde_json::Value::from(*value).to_string();
            text.push_str(match doubles {
                Doubles::Shortest => number.trim_end_matches(".0"),
                Doubles::WithPoint => &number,
            });
        }
        Bson::String(value) => write_string(value, text),
        Bson::Array(values) => {
            text.push('[');
            for (at, value) in values.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                write(value, doubles, text);
            }
            text.push(']');
        }
        Bson::Document(document) => {
            text.push('{');
            for (at, (name, value)) in document.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                write_string(name, text);
                text.push(':');
                write(value, doubles, text);
            }
            text.push('}');
        }
        other => text.push_str(&other.clone().into_relaxed_extjson().to_string()),
    }
}

fn write_string(value: &str, text: &mut String) {
    text.push_str(&serde_json::Value::from(value).to_string());
}

/// Reads a value that is nested so deep.
#[derive(Clone, Copy)]
struct Level(usize);

impl Level {
    fn below<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.0 < MAX_BSON_DEPTH {
            Ok(Self(self.0 + 1))
        } else {
            Err(E::custom("nested too deep for BSON"))
        }
    }
}

impl<'de> DeserializeSeed<'de> for Level {
    type Value = Bson;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Bson, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level {
    type Value = Bson;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Bson, E> {
        Ok(Bson::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Bson, E> {
        Ok(Bson::Boolean(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Bson, E> {
        Ok(match i32::try_from(value) {
            Ok(small) => Bson::Int32(small),
            Err(_) => Bson::Int64(value),
        })
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Bson, E> {
        match i64::try_from(value) {
            Ok(value) => self.visit_i64(value),
            Err(_) => Ok(Bson::Double(value as f64)),
        }
    }

    fn visit_f64<E>(self, value: f64) -> Result<Bson, E> {
        Ok(Bson::Double(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Bson, E> {
        Ok(Bson::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Bson, A::Error> {
        let below = self.below()?;
        let mut values = Vec::new();
        while let Some(value) = items.next_element_seed(below)? {
            values.push(value);
        }
        Ok(Bson::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Bson, A::Error> {
        let below = self.below()?;
        let mut document = Document::new();
        while let Some(name) = fields.next_key::<String>()? {
            if name.contains('\0') {
                return Err(A::Error::custom("a name in BSON has no NUL"));
            }
            document.insert(name, fields.next_value_seed(below)?);
        }
        Ok(Bson::Document(document))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mongodb::bson::{DateTime, doc, oid::ObjectId};
    use proptest::prelude::*;

    #[test]
    fn text_that_bson_gives_back_is_not_kept_twice() {
        for json in [
            "null",
            "true",
            "-17",
            "9223372036854775807",
            "1.5",
            "-0.25",
            r#""a\n\"é""#,
            r#"{"z":1,"a":{"$oid":"x","b.c":[]},"":{}}"#,
            "[1,[2.5],{}]",
        ] {
            let payload = Payload::of(json);
            assert!(payload.bson.is_some() && payload.raw.is_none(), "{json}");
        }
    }

    #[test]
    fn text_that_bson_does_not_give_back_is_kept() {
        let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
        for (json, has_bson) in [
            ("1.0", true),
            ("1e3", true),
            ("-0", true),
            ("18446744073709551615", true),
            ("12345678901234567890123", true),
            (r#""\u00e9""#, true),
            (r#"{"a":1,"a":2}"#, true),
            ("1E400", false),
            (r#"{"a\u0000":1}"#, false),
            (deep.as_str(), false),
        ] {
            let payload = Payload::of(json);
            assert_eq!(payload.bson.is_some(), has_bson, "{json}");
            assert_eq!(payload.raw.as_deref(), Some(json));
        }
    }

    #[test]
    fn what_json_has_no_type_for_is_extended_json() {
        let id = ObjectId::parse_str("65f0000000000000000000aa").expect("an id");
        let document = doc! { "_id": id, "n": 1.0, "at": DateTime::from_millis(0), "x": f64::NAN };
        assert_eq!(
            relaxed(&document.into()),
            r#"{"_id":{"$oid":"65f0000000000000000000aa"},"n":1.0,"at":{"$date":"1970-01-01T00:00:00Z"},"x":{"$numberDouble":"NaN"}}"#
        );
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<f64>().prop_map(Into::into),
            ".*".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                proptest::collection::btree_map("[^\0]*", inner, 0..6)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_payload_is_given_back(value in json()) {
            let text = value.to_string();
            let payload = Payload::of(&text);
            let back = match payload.raw {
                Some(raw) => raw,
                None => relaxed(&payload.bson.expect("one of them")),
            };
            prop_assert_eq!(back, text);
        }
    }
}
