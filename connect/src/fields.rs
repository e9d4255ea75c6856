//! Picks fields out of a payload's JSON without building what is not asked for.

use crate::column::FieldPath;
use serde::Deserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Which fields are wanted: a tree of names, with a place in the result where a path ends.
#[derive(Debug, Default)]
pub struct Fields {
    root: Node,
    count: usize,
}

#[derive(Debug, Default)]
struct Node {
    /// Where the value goes.
    slots: Vec<usize>,
    children: Vec<(String, Node)>,
}

impl Fields {
    /// Asks for one more field; the place of its value in the result.
    pub fn want(&mut self, path: &FieldPath) -> usize {
        let mut node = &mut self.root;
        for name in path.names() {
            let at = node.children.iter().position(|(known, _)| known == name);
            let at = at.unwrap_or_else(|| {
                node.children.push((name.clone(), Node::default()));
                node.children.len() - 1
            });
            node = &mut node.children[at].1;
        }
        node.slots.push(self.count);
        self.count += 1;
        self.count - 1
    }

    /// The JSON text of each wanted field, `None` where the payload has no such field.
    pub fn pick<'a>(&self, payload: &'a str, found: &mut Vec<Option<&'a str>>) {
        found.clear();
        found.resize(self.count, None);
        if self.count > 0 {
            self.root.pick(payload, found);
        }
    }
}

impl Node {
    fn pick<'a>(&self, object: &'a str, found: &mut [Option<&'a str>]) {
        if object.starts_with('{') {
            let mut reader = serde_json::Deserializer::from_str(object);
            // Stored payloads are JSON; if one were not, what was found before the fault counts.
            let _ = reader.deserialize_map(Picking { node: self, found });
        }
    }

    fn take<'a>(&self, value: &'a str, found: &mut [Option<&'a str>]) {
        // Where a name occurs twice the last one counts, with all that is in it.
        self.clear(found);
        for &slot in &self.slots {
            found[slot] = Some(value);
        }
        if !self.children.is_empty() {
            self.pick(value, found);
        }
    }

    fn clear(&self, found: &mut [Option<&str>]) {
        for &slot in &self.slots {
            found[slot] = None;
        }
        for (_, child) in &self.children {
            child.clear(found);
        }
    }
}

/// Goes through the fields of one object.
struct Picking<'n, 'f, 'a> {
    node: &'n Node,
    found: &'f mut [Option<&'a str>],
}

impl<'a> Visitor<'a> for Picking<'_, '_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(Name(name)) = map.next_key::<Name<'a>>()? {
            let child = self.node.children.iter().find(|(known, _)| *known == name);
            match child {
                Some((_, child)) => child.take(map.next_value::<&RawValue>()?.get(), self.found),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// A field's name, borrowed where it has no escapes.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    fn pick<'a>(paths: &[&str], payload: &'a str) -> Vec<Option<&'a str>> {
        let mut fields = Fields::default();
        for path in paths {
            fields.want(&path.parse().expect("a path"));
        }
        let mut found = Vec::new();
        fields.pick(payload, &mut found);
        found
    }

    #[test]
    fn fields_are_found_at_any_depth() {
        let payload = r#"{"a":1.50,"b":{"c":{"d":"x"},"e":[1, 2]},"z":null,"\u0061a":true}"#;
        let found = pick(
            &["b.c.d", "a", "b.e", "b", "z", "aa", "nope", "a.b", "b.c.x"],
            payload,
        );
        let b = r#"{"c":{"d":"x"},"e":[1, 2]}"#;
        let expected = [
            Some(r#""x""#),
            Some("1.50"),
            Some("[1, 2]"),
            Some(b),
            Some("null"),
            Some("true"),
            None,
            None,
            None,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn payloads_that_are_no_objects_have_no_fields() {
        for payload in ["null", "1", "[{\"a\":1}]", "\"a\"", "{}"] {
            assert_eq!(pick(&["a"], payload), [None]);
        }
    }

    #[test]
    fn the_last_of_two_fields_of_a_name_counts() {
        assert_eq!(
            pick(&["a.b", "a.c"], r#"{"a":{"b":1,"c":2},"a":{"c":3}}"#),
            [None, Some("3")]
        );
        assert_eq!(
            pick(&["a", "a"], r#"{"a":1,"a":2}"#),
            [Some("2"), Some("2")]
        );
    }
}
