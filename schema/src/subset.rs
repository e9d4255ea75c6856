//! Whether everything that fits one schema fits another. It is decided from what the schemas say, keyword by keyword,
//! and is never wrong about a yes; where it finds no proof it says what it could not prove.
//!
//! The left side is a conjunction of schemas ([`Conj`]) because `allOf`, references and the cases of a union all add to
//! what is known of an instance. The right side is one schema, of which each keyword has to follow. A pair of places that
//! is met again below itself holds by induction: it is then asked about a smaller part of the instance.

mod arrays;
mod emptiness;
mod facts;
mod finding;
mod keywords;
mod numbers;
mod objects;
mod sameness;
mod types;
mod unions;

pub use finding::{Finding, MAX_FINDINGS, Rule};

use crate::document::Schema;
use facts::{Conj, Facts, Node};
use serde_json::Value;
use std::collections::HashSet;

/// How many steps a proof may take.
const MAX_STEPS: usize = 20_000;
/// How deep a proof may go.
const MAX_PROOF_DEPTH: usize = 96;

/// What keeps an instance of `sub` from being one of `sup`; nothing where every instance of `sub` is proven to be one.
pub fn findings(sub: &Schema, sup: &Schema) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut proof = Proof {
        steps: MAX_STEPS,
        depth: 0,
        assumed: HashSet::new(),
    };
    let left = Conj::of(Node::root(sub));
    if !proof.holds(&left, &Node::root(sup), &mut found) && found.is_empty() {
        found.push(Finding::new(
            &Node::root(sup),
            "",
            Rule::Unproven,
            "no proof was found",
        ));
    }
    found.truncate(MAX_FINDINGS);
    found
}

/// A proof under way.
struct Proof {
    /// How many steps are left.
    steps: usize,
    depth: usize,
    /// What is being proven further up, for a part of the instance that contains this one.
    assumed: HashSet<(String, String)>,
}

impl Proof {
    /// Whether everything that fits `left` fits `right`. Where not, at least one finding is added.
    fn holds(&mut self, left: &Conj<'_>, right: &Node<'_>, out: &mut Vec<Finding>) -> bool {
        if self.steps == 0 || self.depth >= MAX_PROOF_DEPTH {
            out.push(Finding::new(
                right,
                "",
                Rule::TooComplex,
                "the schemas are too complex to compare",
            ));
            return false;
        }
        self.steps -= 1;
        let map = match right.value {
            Value::Bool(true) => return true,
            Value::Object(map) => Some(map),
            _ => None,
        };
        let facts = Facts::of(left);
        if self.is_empty(&facts)
            || facts
                .nodes
                .iter()
                .any(|node| sameness::is_same(node, right))
        {
            return true;
        }
        let Some(map) = map else {
            out.push(Finding::new(
                right,
                "",
                Rule::Forbidden,
                "no value is accepted here any more",
            ));
            return false;
        };
        if let Some(values) = &facts.values {
            return all_accepted(values, right, out);
        }
        let pair = (left.name(), right.name());
        if !self.assumed.insert(pair.clone()) {
            return true;
        }
        self.depth += 1;
        let mark = out.len();
        let mut holds = true;
        for (keyword, value) in map {
            holds &= self.keyword(left, &facts, right, keyword, value, out);
        }
        if !holds {
            let mut in_cases = Vec::new();
            if let Some(in_all) = self.holds_in_all_cases(left, &facts, right, &mut in_cases) {
                holds = in_all;
                out.truncate(mark);
                out.append(&mut in_cases);
            }
        }
        self.depth -= 1;
        self.assumed.remove(&pair);
        holds
    }

    /// The same where only the answer counts.
    fn holds_quietly(&mut self, left: &Conj<'_>, right: &Node<'_>) -> bool {
        self.holds(left, right, &mut Vec::new())
    }
}

/// Where only a few values are possible, each of them is tried.
fn all_accepted(values: &[Value], right: &Node<'_>, out: &mut Vec<Finding>) -> bool {
    for value in values {
        match right.accepts(value) {
            Some(true) => {}
            Some(false) => {
                let detail = format!("{value} was allowed and is not accepted any more");
                out.push(Finding::new(right, "", Rule::ValueRemoved, detail));
                return false;
            }
            None => {
                let detail = format!("whether {value} is accepted cannot be told");
                out.push(Finding::new(right, "", Rule::Unproven, detail));
                return false;
            }
        }
    }
    true
}
