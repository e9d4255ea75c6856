//! Arrays: the element at each position, how many there are, and what they must contain.

use super::Proof;
use super::facts::{Conj, Facts, Node};
use super::finding::{Finding, Rule};
use super::keywords::{counted, fail};
use super::sameness::is_same_part;
use super::types::Types;
use serde_json::Value;

/// The most positions of `prefixItems` that are compared one by one.
const MAX_POSITIONS: usize = 1_000;

impl Proof {
    pub(super) fn array_keyword(
        &mut self,
        facts: &Facts<'_>,
        right: &Node<'_>,
        keyword: &str,
        value: &Value,
        out: &mut Vec<Finding>,
    ) -> bool {
        let size = (Types::ARRAY, Rule::SizeNarrowed);
        match keyword {
            "prefixItems" => {
                let mut holds = true;
                for (at, wanted) in right.list(keyword).into_iter().enumerate() {
                    holds &=
                        is_beyond_end(facts, at) || self.holds(&element(facts, at), &wanted, out);
                }
                holds
            }
            "items" => self.items(facts, right, out),
            "minItems" => counted(facts, right, keyword, value, size, None, out),
            "maxItems" => counted(facts, right, keyword, value, size, closed_at(facts), out),
            "uniqueItems" => {
                let is_short = |limit: u64| limit <= 1;
                let max_items = facts
                    .smallest("maxItems")
                    .into_iter()
                    .chain(closed_at(facts))
                    .min();
                let detail = "lists with equal elements were allowed";
                value != &Value::Bool(true)
                    || max_items.is_some_and(is_short)
                    || fail(out, right, keyword, Rule::UniqueAdded, detail)
            }
            _ => contains(facts, right, out),
        }
    }

    fn items(&mut self, facts: &Facts<'_>, right: &Node<'_>, out: &mut Vec<Finding>) -> bool {
        let Some(wanted) = right.child("items") else {
            return true;
        };
        let first = right.list("prefixItems").len();
        let prefixes = facts
            .nodes
            .iter()
            .map(|node| node.list("prefixItems").len());
        let last = prefixes.max().unwrap_or(0).max(first);
        if last - first > MAX_POSITIONS {
            return fail(
                out,
                right,
                "items",
                Rule::TooComplex,
                "prefixItems is too long to compare",
            );
        }
        // One position more than any prefix stands for all that follow.
        for at in first..=last {
            if !is_beyond_end(facts, at) && !self.holds(&element(facts, at), &wanted, out) {
                return false;
            }
        }
        true
    }
}

/// What is known of the element at a position.
pub(super) fn element<'a>(facts: &Facts<'a>, at: usize) -> Conj<'a> {
    let nodes = facts
        .nodes
        .iter()
        .filter_map(|node| match node.list("prefixItems").get(at) {
            Some(own) => Some(own.clone()),
            None => node.child("items"),
        });
    Conj::all(nodes.collect())
}

/// Whether no array that is known to be possible has an element at a position.
fn is_beyond_end(facts: &Facts<'_>, at: usize) -> bool {
    let limit = facts
        .smallest("maxItems")
        .into_iter()
        .chain(closed_at(facts))
        .min();
    limit.is_some_and(|limit| limit <= at as u64)
}

/// How many elements there may be where nothing may follow the prefix.
pub(super) fn closed_at(facts: &Facts<'_>) -> Option<u64> {
    let closed = facts
        .nodes
        .iter()
        .filter(|node| node.value.get("items") == Some(&Value::Bool(false)));
    closed
        .map(|node| node.list("prefixItems").len() as u64)
        .min()
}

fn contains(facts: &Facts<'_>, right: &Node<'_>, out: &mut Vec<Finding>) -> bool {
    let parts = ["contains", "minContains", "maxContains"];
    let is_said = facts.nodes.iter().any(|node| {
        parts.iter().all(
            |part| match (node.value.get(*part), right.value.get(*part)) {
                (None, None) => true,
                (Some(own), Some(wanted)) => is_same_part(node.schema, own, right.schema, wanted),
                _ => false,
            },
        )
    });
    let is_void = right.value.get("minContains").and_then(Value::as_u64) == Some(0)
        && right.value.get("maxContains").is_none();
    let detail = "lists without such an element may have been allowed";
    is_said || is_void || fail(out, right, "contains", Rule::ContainsChanged, detail)
}
