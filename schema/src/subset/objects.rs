//! Objects: named properties, those that a pattern covers, all others, and which must be there.

use super::Proof;
use super::facts::{Conj, Facts, Node};
use super::finding::{Finding, Rule};
use super::keywords::{counted, fail};
use super::types::Types;
use serde_json::{Value, json};
use std::collections::BTreeSet;

impl Proof {
    pub(super) fn object_keyword(
        &mut self,
        left: &Conj<'_>,
        facts: &Facts<'_>,
        right: &Node<'_>,
        keyword: &str,
        value: &Value,
        out: &mut Vec<Finding>,
    ) -> bool {
        let size = (Types::OBJECT, Rule::SizeNarrowed);
        match keyword {
            "properties" => self.properties(facts, right, out),
            "patternProperties" => self.pattern_properties(facts, right, out),
            "additionalProperties" => self.additional_properties(facts, right, out),
            "required" => required(facts, right, out),
            "minProperties" => {
                let names = required_names(facts).len() as u64;
                counted(facts, right, keyword, value, size, Some(names), out)
            }
            "maxProperties" => {
                let names = closed_names(facts).map(|names| names.len() as u64);
                counted(facts, right, keyword, value, size, names, out)
            }
            "propertyNames" => self.property_names(facts, right, out),
            "dependentRequired" => self.dependent_required(facts, right, out),
            _ => self.dependent_schemas(left, facts, right, out),
        }
    }

    fn properties(&mut self, facts: &Facts<'_>, right: &Node<'_>, out: &mut Vec<Finding>) -> bool {
        let mut holds = true;
        for name in right.names("properties") {
            let Some(wanted) = right.named("properties", name) else {
                continue;
            };
            let known = property(facts, name);
            let is_open = known.nodes.is_empty();
            let mark = out.len();
            if self.holds(&known, &wanted, out) {
                continue;
            }
            holds = false;
            if is_open {
                out.truncate(mark);
                let detail = format!(
                    "{name:?} could have any value before, because additional properties were allowed"
                );
                fail(out, &wanted, "", Rule::PropertyAddedToOpenModel, detail);
            }
        }
        holds
    }

    fn pattern_properties(
        &mut self,
        facts: &Facts<'_>,
        right: &Node<'_>,
        out: &mut Vec<Finding>,
    ) -> bool {
        let names = named_properties(facts);
        let mut holds = true;
        for pattern in right.names("patternProperties") {
            let Some(wanted) = right.named("patternProperties", pattern) else {
                continue;
            };
            for name in &names {
                if right.schema.is_match(pattern, name) != Some(false) {
                    holds &= self.holds(&property(facts, name), &wanted, out);
                }
            }
            // Of a name that matches the same pattern on the left, the schema there is known.
            let same: Vec<_> = facts
                .nodes
                .iter()
                .filter_map(|node| node.named("patternProperties", pattern))
                .collect();
            let is_known = !same.is_empty() && self.holds_quietly(&Conj::all(same), &wanted);
            holds &= is_known || self.others(facts, &wanted, &[], right, out);
        }
        holds
    }

    fn additional_properties(
        &mut self,
        facts: &Facts<'_>,
        right: &Node<'_>,
        out: &mut Vec<Finding>,
    ) -> bool {
        let Some(wanted) = right.child("additionalProperties") else {
            return true;
        };
        let patterns = right.names("patternProperties");
        let own = right.names("properties");
        let mut holds = true;
        for name in named_properties(facts) {
            let is_covered = own.contains(&name.as_str())
                || patterns
                    .iter()
                    .any(|pattern| right.schema.is_match(pattern, &name) == Some(true));
            if is_covered {
                continue;
            }
            let mark = out.len();
            if !self.holds(&property(facts, &name), &wanted, out) {
                holds = false;
                if wanted.value == &Value::Bool(false) {
                    out.truncate(mark);
                    let detail =
                        format!("the property {name:?} was allowed and is not accepted any more");
                    fail(
                        out,
                        right,
                        "additionalProperties",
                        Rule::AdditionalNarrowed,
                        detail,
                    );
                }
            }
        }
        holds & self.others(facts, &wanted, &patterns, right, out)
    }

    /// Whether properties without a name of their own, which may match any pattern of the left side but those that are
    /// skipped, fit a schema.
    fn others(
        &mut self,
        facts: &Facts<'_>,
        wanted: &Node<'_>,
        skipped: &[&str],
        right: &Node<'_>,
        out: &mut Vec<Finding>,
    ) -> bool {
        let is_fine = |proof: &mut Self, node: &Node<'_>| {
            let patterns = node.names("patternProperties").into_iter();
            let mut covered = patterns.filter(|pattern| !skipped.contains(pattern));
            let in_patterns = covered.all(|pattern| {
                let known = node.named("patternProperties", pattern);
                known.is_some_and(|known| proof.holds_quietly(&Conj::of(known), wanted))
            });
            let additional = node
                .child("additionalProperties")
                .map_or_else(Conj::any, Conj::of);
            in_patterns && proof.holds_quietly(&additional, wanted)
        };
        if facts.nodes.iter().any(|node| is_fine(self, node))
            || self.holds_quietly(&Conj::any(), wanted)
        {
            return true;
        }
        let detail =
            "properties that are not named could have values that are not accepted any more";
        let keyword = wanted
            .pointer
            .strip_prefix(&*right.pointer)
            .unwrap_or_default()
            .trim_start_matches('/');
        fail(out, right, keyword, Rule::AdditionalNarrowed, detail)
    }

    fn property_names(
        &mut self,
        facts: &Facts<'_>,
        right: &Node<'_>,
        out: &mut Vec<Finding>,
    ) -> bool {
        let Some(wanted) = right.child("propertyNames") else {
            return true;
        };
        if let Some(names) = closed_names(facts)
            && names
                .iter()
                .all(|name| wanted.accepts(&json!(name)) == Some(true))
        {
            return true;
        }
        let known: Vec<_> = facts
            .nodes
            .iter()
            .filter_map(|node| node.child("propertyNames"))
            .collect();
        let known = Conj {
            types: Types::STRING,
            ..Conj::all(known)
        };
        let detail = "names of properties may have been allowed that are not accepted any more";
        self.holds_quietly(&known, &wanted)
            || fail(out, right, "propertyNames", Rule::NamesRestricted, detail)
    }

    fn dependent_required(
        &mut self,
        facts: &Facts<'_>,
        right: &Node<'_>,
        out: &mut Vec<Finding>,
    ) -> bool {
        let required = required_names(facts);
        for name in right.names("dependentRequired") {
            let wanted = strings_under(right.value, name);
            let is_implied = |wanted: &&str| {
                let mut nodes = facts.nodes.iter();
                required.contains(*wanted)
                    || nodes.any(|node| strings_under(node.value, name).contains(wanted))
            };
            if !wanted.iter().all(is_implied) && !self.is_forbidden(facts, name) {
                let detail = format!("{name:?} was allowed without {wanted:?}");
                return fail(
                    out,
                    right,
                    "dependentRequired",
                    Rule::DependencyAdded,
                    detail,
                );
            }
        }
        true
    }

    fn dependent_schemas(
        &mut self,
        left: &Conj<'_>,
        facts: &Facts<'_>,
        right: &Node<'_>,
        out: &mut Vec<Finding>,
    ) -> bool {
        for name in right.names("dependentSchemas") {
            let Some(wanted) = right.named("dependentSchemas", name) else {
                continue;
            };
            let own: Vec<_> = facts
                .nodes
                .iter()
                .filter_map(|node| node.named("dependentSchemas", name))
                .collect();
            let mut known = left.clone();
            known.nodes.extend(own);
            if !self.holds_quietly(&known, &wanted) && !self.is_forbidden(facts, name) {
                let detail = format!(
                    "with {name:?}, values may have been allowed that are not accepted any more"
                );
                return fail(
                    out,
                    right,
                    "dependentSchemas",
                    Rule::DependencyAdded,
                    detail,
                );
            }
        }
        true
    }

    /// Whether no object has a property.
    fn is_forbidden(&mut self, facts: &Facts<'_>, name: &str) -> bool {
        self.is_empty(&Facts::of(&property(facts, name)))
    }
}

/// What is known of a property, where an object has it.
pub(super) fn property<'a>(facts: &Facts<'a>, name: &str) -> Conj<'a> {
    let mut known = Vec::new();
    for node in &facts.nodes {
        let own = node.named("properties", name);
        let mut is_covered = own.is_some();
        known.extend(own);
        for pattern in node.names("patternProperties") {
            let matches = node.schema.is_match(pattern, name);
            if matches == Some(true) {
                known.extend(node.named("patternProperties", pattern));
            }
            is_covered |= matches != Some(false);
        }
        if !is_covered {
            known.extend(node.child("additionalProperties"));
        }
    }
    Conj::all(known)
}

/// The properties that every object has.
pub(super) fn required_names(facts: &Facts<'_>) -> BTreeSet<String> {
    let names = facts.nodes.iter().flat_map(|node| node.strings("required"));
    names.map(str::to_owned).collect()
}

fn named_properties(facts: &Facts<'_>) -> BTreeSet<String> {
    let names = facts.nodes.iter().flat_map(|node| node.names("properties"));
    names.map(str::to_owned).collect()
}

/// All properties that an object may have, where no others are allowed.
fn closed_names(facts: &Facts<'_>) -> Option<Vec<String>> {
    let closed = facts.nodes.iter().find(|node| {
        node.value.get("additionalProperties") == Some(&Value::Bool(false))
            && node.names("patternProperties").is_empty()
    });
    Some(
        closed?
            .names("properties")
            .into_iter()
            .map(str::to_owned)
            .collect(),
    )
}

fn required(facts: &Facts<'_>, right: &Node<'_>, out: &mut Vec<Finding>) -> bool {
    let known = required_names(facts);
    let mut holds = true;
    for name in right.strings("required") {
        if known.contains(name) {
            continue;
        }
        let default = right
            .named("properties", name)
            .and_then(|node| node.child("default"));
        let hint = match default {
            Some(_) => "; a default is only an annotation and fills in nothing, an upcaster does",
            None => "",
        };
        let detail = format!("{name:?} was optional and is required now{hint}");
        holds = fail(out, right, "required", Rule::RequiredAdded, detail);
    }
    holds
}

fn strings_under<'a>(value: &'a Value, name: &str) -> Vec<&'a str> {
    let list = value
        .get("dependentRequired")
        .and_then(|map| map.get(name)?.as_array());
    list.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}
