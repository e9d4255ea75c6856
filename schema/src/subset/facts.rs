//! What is known of an instance: a conjunction of schemas, with its references and `allOf` taken apart.

use super::sameness::equal_values;
use super::types::Types;
use crate::document::{Schema, escaped};
use serde_json::Value;
use std::sync::Arc;

/// A place in a schema.
#[derive(Debug, Clone)]
pub(super) struct Node<'a> {
    pub(super) schema: &'a Schema,
    pub(super) pointer: Arc<str>,
    pub(super) value: &'a Value,
}

/// Schemas that an instance fits all of, and those that it fits none of.
#[derive(Debug, Clone)]
pub(super) struct Conj<'a> {
    pub(super) nodes: Vec<Node<'a>>,
    pub(super) nots: Vec<Node<'a>>,
    pub(super) types: Types,
    /// Unions of which one branch is among the nodes already.
    pub(super) split: Vec<String>,
}

/// A conjunction taken apart.
pub(super) struct Facts<'a> {
    /// Every schema that holds, those behind references and in `allOf` too.
    pub(super) nodes: Vec<Node<'a>>,
    pub(super) nots: Vec<Node<'a>>,
    pub(super) types: Types,
    /// Whether one of the schemas is `false`.
    pub(super) is_false: bool,
    /// All values that are possible, where there are only a few.
    pub(super) values: Option<Vec<Value>>,
}

impl<'a> Node<'a> {
    pub(super) fn root(schema: &'a Schema) -> Self {
        Self {
            schema,
            pointer: "".into(),
            value: schema.root(),
        }
    }

    /// The schema under a keyword.
    pub(super) fn child(&self, keyword: &str) -> Option<Self> {
        Some(self.at(keyword, self.value.get(keyword)?))
    }

    /// The schemas in the list under a keyword.
    pub(super) fn list(&self, keyword: &str) -> Vec<Self> {
        let items = self.value.get(keyword).and_then(Value::as_array);
        let items = items.into_iter().flatten().enumerate();
        items
            .map(|(at, value)| self.at(&format!("{keyword}/{at}"), value))
            .collect()
    }

    /// The schema with a name in the object under a keyword.
    pub(super) fn named(&self, keyword: &str, name: &str) -> Option<Self> {
        let value = self.value.get(keyword)?.as_object()?.get(name)?;
        Some(self.at(&format!("{keyword}/{}", escaped(name)), value))
    }

    /// The names in the object under a keyword.
    pub(super) fn names(&self, keyword: &str) -> Vec<&'a str> {
        let map = self.value.get(keyword).and_then(Value::as_object);
        map.into_iter()
            .flatten()
            .map(|(name, _)| name.as_str())
            .collect()
    }

    /// The strings in the list under a keyword.
    pub(super) fn strings(&self, keyword: &str) -> Vec<&'a str> {
        let items = self.value.get(keyword).and_then(Value::as_array);
        items
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }

    /// The schema that `$ref` leads to.
    pub(super) fn target(&self) -> Option<Self> {
        let reference = self.value.get("$ref")?.as_str()?;
        let (pointer, value) = self.schema.resolve(reference)?;
        Some(Self {
            schema: self.schema,
            pointer: pointer.into(),
            value,
        })
    }

    pub(super) fn accepts(&self, value: &Value) -> Option<bool> {
        self.schema.accepts(&self.pointer, value)
    }

    /// What tells it from every other place.
    pub(super) fn name(&self) -> String {
        format!("{:p}{}", self.schema, self.pointer)
    }

    fn at(&self, path: &str, value: &'a Value) -> Self {
        Self {
            schema: self.schema,
            pointer: format!("{}/{path}", self.pointer).into(),
            value,
        }
    }
}

impl<'a> Conj<'a> {
    /// Of one schema.
    pub(super) fn of(node: Node<'a>) -> Self {
        Self {
            nodes: vec![node],
            ..Self::any()
        }
    }

    /// Of all of them; of anything where there are none.
    pub(super) fn all(nodes: Vec<Node<'a>>) -> Self {
        Self {
            nodes,
            ..Self::any()
        }
    }

    pub(super) fn any() -> Self {
        Self {
            nodes: Vec::new(),
            nots: Vec::new(),
            types: Types::ALL,
            split: Vec::new(),
        }
    }

    /// With one more schema.
    pub(super) fn with(&self, node: Node<'a>) -> Self {
        let mut more = self.clone();
        more.nodes.push(node);
        more
    }

    /// What tells it from every other one.
    pub(super) fn name(&self) -> String {
        let mut names: Vec<String> = self.nodes.iter().map(Node::name).collect();
        names.sort_unstable();
        names.dedup();
        let nots: Vec<String> = self.nots.iter().map(Node::name).collect();
        format!("{names:?}{nots:?}{:?}{:?}", self.types, self.split)
    }
}

impl<'a> Facts<'a> {
    pub(super) fn of(conj: &Conj<'a>) -> Self {
        let mut facts = Self {
            nodes: Vec::new(),
            nots: conj.nots.clone(),
            types: conj.types,
            is_false: false,
            values: None,
        };
        let mut open = conj.nodes.clone();
        open.reverse();
        while let Some(node) = open.pop() {
            facts.add(node, &mut open);
        }
        facts.values = facts.possible_values();
        facts
    }

    fn add(&mut self, node: Node<'a>, open: &mut Vec<Node<'a>>) {
        let is_there = |known: &Node<'_>| {
            known.pointer == node.pointer && std::ptr::eq(known.schema, node.schema)
        };
        if self.nodes.iter().any(is_there) {
            return;
        }
        self.is_false |= node.value == &Value::Bool(false);
        if let Some(types) = node.value.get("type") {
            self.types = self.types.and(Types::of_keyword(types));
        }
        open.extend(node.target());
        open.extend(node.list("allOf"));
        self.nots.extend(node.child("not"));
        self.nodes.push(node);
    }

    fn possible_values(&self) -> Option<Vec<Value>> {
        let mut values: Option<Vec<Value>> = self.types.values();
        for node in &self.nodes {
            let own = match (node.value.get("enum"), node.value.get("const")) {
                (Some(Value::Array(own)), _) => own.clone(),
                (_, Some(own)) => vec![own.clone()],
                _ => continue,
            };
            values = Some(match values {
                Some(mut values) => {
                    values.retain(|value| own.iter().any(|own| equal_values(own, value)));
                    values
                }
                None => own,
            });
        }
        let mut values = values?;
        values.retain(|value| {
            self.nodes
                .iter()
                .all(|node| node.accepts(value) != Some(false))
                && self
                    .nots
                    .iter()
                    .all(|node| node.accepts(value) != Some(true))
                && self.is_of_types(value)
        });
        Some(values)
    }

    fn is_of_types(&self, value: &Value) -> bool {
        let types = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            // A whole number may be written as a fraction; neither is told from the other here.
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        self.types.has(Types::of_keyword(&types.into()))
    }

    /// The numbers that the schemas have under a keyword.
    pub(super) fn numbers(&self, keyword: &str) -> impl Iterator<Item = &'a serde_json::Number> {
        let found = self
            .nodes
            .iter()
            .filter_map(move |node| node.value.get(keyword)?.as_number());
        found.collect::<Vec<_>>().into_iter()
    }

    /// The largest of the counts under a keyword.
    pub(super) fn largest(&self, keyword: &str) -> Option<u64> {
        self.numbers(keyword).filter_map(count).max()
    }

    /// The smallest of them.
    pub(super) fn smallest(&self, keyword: &str) -> Option<u64> {
        self.numbers(keyword).filter_map(count).min()
    }
}

/// A count, which may be written as `2.0`.
pub(super) fn count(number: &serde_json::Number) -> Option<u64> {
    let is_count = |float: &f64| *float >= 0.0 && float.fract() == 0.0 && *float < 9e15;
    number
        .as_u64()
        .or_else(|| number.as_f64().filter(is_count).map(|float| float as u64))
}
