//! Sets of JSON types. Integers and other numbers are kept apart, because `integer` is a part of `number`.

use serde_json::Value;

/// A set of types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Types(u8);

const NAMES: [(&str, u8); 7] = [
    ("null", 1),
    ("boolean", 2),
    ("integer", 4),
    ("number", 4 | 8),
    ("string", 16),
    ("array", 32),
    ("object", 64),
];

impl Types {
    pub(super) const ALL: Self = Self(127);
    pub(super) const FRACTION: Self = Self(8);
    pub(super) const NUMBER: Self = Self(12);
    pub(super) const STRING: Self = Self(16);
    pub(super) const ARRAY: Self = Self(32);
    pub(super) const OBJECT: Self = Self(64);
    const FINITE: Self = Self(3);

    /// What the keyword `type` allows.
    pub(super) fn of_keyword(value: &Value) -> Self {
        let bits = |name: &Value| {
            let name = name.as_str().unwrap_or_default();
            NAMES
                .iter()
                .find(|(known, _)| *known == name)
                .map_or(0, |(_, bits)| *bits)
        };
        match value {
            Value::Array(names) => Self(names.iter().map(bits).fold(0, |all, one| all | one)),
            name => Self(bits(name)),
        }
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn is_within(self, other: Self) -> bool {
        self.without(other).is_empty()
    }

    /// Each type on its own.
    pub(super) fn singles(self) -> impl Iterator<Item = Self> {
        (0..7)
            .map(move |bit| Self(self.0 & (1 << bit)))
            .filter(|one| !one.is_empty())
    }

    /// All values of these types, where there are only a few.
    pub(super) fn values(self) -> Option<Vec<Value>> {
        if !self.is_within(Self::FINITE) {
            return None;
        }
        let mut values = Vec::new();
        if self.has(Self(1)) {
            values.push(Value::Null);
        }
        if self.has(Self(2)) {
            values.extend([Value::Bool(false), Value::Bool(true)]);
        }
        Some(values)
    }

    /// Their names, for people.
    pub(super) fn names(self) -> String {
        let mut names = Vec::new();
        for (name, bits) in NAMES {
            let is_part = name == "integer" && self.has(Self::FRACTION);
            let is_whole = if name == "number" {
                self.has(Self::FRACTION)
            } else {
                self.0 & bits != 0
            };
            if is_whole && !is_part {
                names.push(name);
            }
        }
        names.join(", ")
    }
}
