//! Whether nothing fits a conjunction. It is never wrong about a yes.

use super::Proof;
use super::arrays::{closed_at, element};
use super::facts::Facts;
use super::numbers::is_range_empty;
use super::objects::{property, required_names};
use super::sameness::is_same;
use super::types::Types;

/// How deep required properties and elements are looked into.
const MAX_DEPTH: usize = 6;

impl Proof {
    /// Whether nothing fits.
    pub(super) fn is_empty(&mut self, facts: &Facts<'_>) -> bool {
        self.is_empty_within(facts, MAX_DEPTH)
    }

    fn is_empty_within(&mut self, facts: &Facts<'_>, depth: usize) -> bool {
        if facts.is_false
            || facts.types.is_empty()
            || facts.values.as_ref().is_some_and(Vec::is_empty)
        {
            return true;
        }
        let is_excluded = |not: &super::Node<'_>| facts.nodes.iter().any(|node| is_same(node, not));
        if facts.nots.iter().any(is_excluded) {
            return true;
        }
        if depth == 0 || self.steps == 0 {
            return false;
        }
        self.steps -= 1;
        // Each type that is left has to be impossible by itself.
        facts
            .types
            .singles()
            .all(|kind| self.is_type_empty(facts, kind, depth))
    }

    fn is_type_empty(&mut self, facts: &Facts<'_>, kind: Types, depth: usize) -> bool {
        if kind.is_within(Types::NUMBER) {
            return is_range_empty(facts);
        }
        let exceeds = |low: &str, high: &str| {
            let limits = facts.largest(low).zip(facts.smallest(high));
            limits.is_some_and(|(low, high)| low > high)
        };
        if kind == Types::STRING {
            return exceeds("minLength", "maxLength");
        }
        if kind == Types::ARRAY {
            let min_items = facts.largest("minItems").unwrap_or(0);
            return exceeds("minItems", "maxItems")
                || closed_at(facts).is_some_and(|limit| min_items > limit)
                || (min_items > 0
                    && self.is_empty_within(&Facts::of(&element(facts, 0)), depth - 1));
        }
        if kind == Types::OBJECT {
            return exceeds("minProperties", "maxProperties")
                || required_names(facts).iter().any(|name| {
                    self.is_empty_within(&Facts::of(&property(facts, name)), depth - 1)
                });
        }
        false
    }
}
