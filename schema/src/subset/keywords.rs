//! Which keyword of the right side is proven how.

use super::Proof;
use super::facts::{Conj, Facts, Node, count};
use super::finding::{Finding, Rule};
use super::numbers;
use super::sameness::is_same_part;
use super::types::Types;
use serde_json::Value;

/// Keywords that restrict nothing, or whose meaning is a part of another's.
const SILENT: [&str; 19] = [
    "$schema",
    "$id",
    "$comment",
    "$defs",
    "definitions",
    "$anchor",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "format",
    "then",
    "else",
    "minContains",
    "maxContains",
    "x-upcast",
];
/// Keywords whose meaning depends on others beside them, so that the same words may mean something else.
const DEPENDENT: [&str; 8] = [
    "additionalProperties",
    "items",
    "unevaluatedProperties",
    "unevaluatedItems",
    "if",
    "contains",
    "additionalItems",
    "$ref",
];

impl Proof {
    /// Whether what is known implies what one keyword of the right side says.
    pub(super) fn keyword(
        &mut self,
        left: &Conj<'_>,
        facts: &Facts<'_>,
        right: &Node<'_>,
        keyword: &str,
        value: &Value,
        out: &mut Vec<Finding>,
    ) -> bool {
        if SILENT.contains(&keyword) || is_said(facts, right, keyword, value) {
            return true;
        }
        match keyword {
            "$ref" => match right.target() {
                Some(target) => self.holds(left, &target, out),
                None => fail(
                    out,
                    right,
                    keyword,
                    Rule::Unproven,
                    "the reference leads nowhere",
                ),
            },
            "allOf" => {
                let mut holds = true;
                for branch in right.list(keyword) {
                    holds &= self.holds(left, &branch, out);
                }
                holds
            }
            "anyOf" => self.any_of(left, right, out),
            "oneOf" => self.one_of(left, right, out),
            "not" => self.not(left, right, out),
            "if" => self.if_then_else(left, facts, right, out),
            "type" => types(facts, right, value, out),
            "enum" | "const" => {
                let detail = format!("only {value} is accepted, and other values were allowed");
                fail(out, right, keyword, Rule::ValuesRestricted, detail)
            }
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => match value {
                Value::Number(value) => numbers::range(facts, right, keyword, value, out),
                _ => true,
            },
            "multipleOf" => match value {
                Value::Number(value) => numbers::multiple(facts, right, value, out),
                _ => true,
            },
            "minLength" | "maxLength" => counted(
                facts,
                right,
                keyword,
                value,
                (Types::STRING, Rule::LengthNarrowed),
                None,
                out,
            ),
            "pattern" => {
                let detail = format!("texts that do not match {value} may have been allowed");
                !facts.types.has(Types::STRING)
                    || fail(out, right, keyword, Rule::PatternChanged, detail)
            }
            _ if facts.types.has(Types::ARRAY) && is_of_arrays(keyword) => {
                self.array_keyword(facts, right, keyword, value, out)
            }
            _ if facts.types.has(Types::OBJECT) && is_of_objects(keyword) => {
                self.object_keyword(left, facts, right, keyword, value, out)
            }
            _ if is_of_arrays(keyword) || is_of_objects(keyword) => true,
            _ => {
                let detail = format!("{keyword} is not a keyword that can be compared");
                fail(out, right, keyword, Rule::UnknownKeyword, detail)
            }
        }
    }
}

pub(super) fn fail(
    out: &mut Vec<Finding>,
    right: &Node<'_>,
    keyword: &str,
    rule: Rule,
    detail: impl Into<String>,
) -> bool {
    out.push(Finding::new(right, keyword, rule, detail));
    false
}

/// Whether the left side says the same with the same keyword.
fn is_said(facts: &Facts<'_>, right: &Node<'_>, keyword: &str, value: &Value) -> bool {
    !DEPENDENT.contains(&keyword)
        && facts.nodes.iter().any(|node| {
            let own = node.value.get(keyword);
            own.is_some_and(|own| is_same_part(node.schema, own, right.schema, value))
        })
}

fn types(facts: &Facts<'_>, right: &Node<'_>, value: &Value, out: &mut Vec<Finding>) -> bool {
    let lost = facts.types.without(Types::of_keyword(value));
    if lost.is_empty() {
        return true;
    }
    // Of numbers that are all multiples of a whole number, none is a fraction.
    let is_whole = lost == Types::FRACTION
        && facts
            .numbers("multipleOf")
            .any(|step| step.as_f64().is_some_and(|step| step.fract() == 0.0));
    let detail = format!("{} was allowed and is not accepted any more", lost.names());
    is_whole || fail(out, right, "type", Rule::TypeNarrowed, detail)
}

/// Whether a lower or upper limit of something that is counted is implied. `effective` is a limit that follows from
/// something else than the keyword.
pub(super) fn counted(
    facts: &Facts<'_>,
    right: &Node<'_>,
    keyword: &str,
    value: &Value,
    (types, rule): (Types, Rule),
    effective: Option<u64>,
    out: &mut Vec<Finding>,
) -> bool {
    let Some(wanted) = value.as_number().and_then(count) else {
        return fail(
            out,
            right,
            keyword,
            Rule::Unproven,
            "the limit is not a count",
        );
    };
    let is_implied = if keyword.starts_with("min") {
        facts.largest(keyword).max(effective).unwrap_or(0) >= wanted
    } else {
        let known = facts.smallest(keyword).into_iter().chain(effective).min();
        known.is_some_and(|known| known <= wanted)
    };
    let detail = format!("{keyword} {wanted} is stricter than before");
    !facts.types.has(types) || is_implied || fail(out, right, keyword, rule, detail)
}

fn is_of_arrays(keyword: &str) -> bool {
    matches!(
        keyword,
        "items" | "prefixItems" | "minItems" | "maxItems" | "uniqueItems" | "contains"
    )
}

fn is_of_objects(keyword: &str) -> bool {
    matches!(
        keyword,
        "properties"
            | "patternProperties"
            | "additionalProperties"
            | "required"
            | "minProperties"
            | "maxProperties"
            | "propertyNames"
            | "dependentRequired"
            | "dependentSchemas"
    )
}
