//! JSON text as a value, in which no object has a name twice: which of the two counts is left to each reader, so what
//! was held against the schema need not be what a consumer sees.

use serde_json::de::Deserializer;
use serde_json::{Map, Value};

/// Parses a text.
pub(crate) fn parse(text: &str) -> serde_json::Result<Value> {
    let mut deserializer = Deserializer::from_str(text);
    let value = serde::de::DeserializeSeed::deserialize(Unique, &mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// Makes a value.
struct Unique;

impl<'de> serde::de::DeserializeSeed<'de> for Unique {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> serde::de::Visitor<'de> for Unique {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Self)? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if object.contains_key(&name) {
                let why = format!("an object has the name {name:?} twice");
                return Err(serde::de::Error::custom(why));
            }
            let value = members.next_value_seed(Self)?;
            object.insert(name, value);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_that_serde_json_reads() {
        for text in [
            "null",
            "-1",
            "18446744073709551615",
            "1.5e300",
            "\"a\\u0062\"",
            " [1, [true, false], {}] ",
            r#"{"a":{"a":{"b":[]}},"b":{"a":1}}"#,
        ] {
            let expected: Value = serde_json::from_str(text).unwrap();
            assert_eq!(parse(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn names_that_come_twice_are_refused_wherever_they_are() {
        for text in [
            r#"{"a":1,"a":2}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"[{"x":{"b":1,"a":2,"b":1}}]"#,
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.to_string().contains("twice"), "{error}");
        }
        assert!(parse("{} {}").is_err());
        assert!(parse(&"[".repeat(200)).is_err());
    }
}
