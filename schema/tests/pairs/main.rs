//! Pairs of schemas with the verdict that is expected of them, in both directions.
#![cfg(test)]

mod choices;
mod parts;
mod values;

use crate::choices::{choices, references, undecided};
use crate::parts::{arrays, objects};
use crate::values::{numbers, texts, types, values};
use prombus_schema::{Compatibility, Schema, check, findings};
use serde_json::{Value, json};

/// What is expected: compatible, or the rule that is broken first.
const FINE: &str = "";

#[derive(Clone)]
struct Pair {
    name: &'static str,
    old: Value,
    new: Value,
    backward: &'static str,
    forward: &'static str,
}

fn pair(
    name: &'static str,
    old: Value,
    new: Value,
    backward: &'static str,
    forward: &'static str,
) -> Pair {
    Pair {
        name,
        old,
        new,
        backward,
        forward,
    }
}

fn schema(value: &Value) -> Schema {
    Schema::new(value.clone()).unwrap_or_else(|error| panic!("{value}: {error}"))
}

fn verdict(sub: &Value, sup: &Value) -> String {
    let findings = findings(&schema(sub), &schema(sup));
    findings
        .first()
        .map(|finding| finding.rule.as_str().to_owned())
        .unwrap_or_default()
}

fn check_pairs(pairs: Vec<Pair>) -> usize {
    let mut wrong = Vec::new();
    for pair in &pairs {
        for (direction, expected, found) in [
            ("backward", pair.backward, verdict(&pair.old, &pair.new)),
            ("forward", pair.forward, verdict(&pair.new, &pair.old)),
        ] {
            if found != expected {
                wrong.push(format!(
                    "{} {direction}: expected {expected:?}, found {found:?}",
                    pair.name
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    pairs.len()
}

/// An object that takes no other properties.
fn closed(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

#[test]
fn types_and_values() {
    assert!(check_pairs(types()) + check_pairs(values()) >= 20);
}

#[test]
fn numbers_and_texts() {
    assert!(check_pairs(numbers()) + check_pairs(texts()) >= 18);
}

#[test]
fn properties_of_objects() {
    assert!(check_pairs(objects()) >= 20);
}

#[test]
fn elements_of_arrays() {
    assert!(check_pairs(arrays()) >= 10);
}

#[test]
fn unions_and_conditions() {
    assert!(check_pairs(choices()) >= 12);
}

#[test]
fn local_and_recursive_references() {
    assert!(check_pairs(references()) >= 6);
}

#[test]
fn what_cannot_be_decided_is_refused() {
    assert!(check_pairs(undecided()) >= 6);
    let error = check(
        Compatibility::Backward,
        &[(3, &schema(&json!({"type": "string"})))],
        &schema(&json!({"type": "string", "pattern": "^a"})),
    );
    let error = error.unwrap_err().to_string();
    assert!(
        error.starts_with("cannot be proven backward compatible with version 3: /pattern: "),
        "{error}"
    );
}

/// The independent judgement of the validator's own algebra: wherever it has an opinion, no yes of ours contradicts it.
#[test]
fn no_pair_is_fine_that_the_validators_algebra_calls_lossy() {
    use jsonschema::{canonical::Containment, canonicalize};
    let all = [
        types(),
        values(),
        numbers(),
        texts(),
        objects(),
        arrays(),
        choices(),
        references(),
        undecided(),
    ];
    let mut judged = 0;
    for pair in all.into_iter().flatten() {
        for (sub, sup) in [(&pair.old, &pair.new), (&pair.new, &pair.old)] {
            let (Ok(canonical_sub), Ok(canonical_sup)) = (canonicalize(sub), canonicalize(sup))
            else {
                continue;
            };
            let contained = canonical_sup.covers(&canonical_sub);
            judged += 1;
            if verdict(sub, sup).is_empty() {
                assert!(
                    !matches!(contained, Ok(Containment::No)),
                    "{}: {sub} in {sup}",
                    pair.name
                );
            }
        }
    }
    assert!(judged > 60, "{judged}");
}

#[test]
fn modes_look_in_their_direction_and_as_far_back_as_they_say() {
    let wide = schema(&json!({"type": "number"}));
    let narrow = schema(&json!({"type": "integer"}));
    let narrower = schema(&json!({"type": "integer", "minimum": 0}));
    let earlier = [(1, &wide), (2, &narrower)];
    let allows = |mode: &str| check(mode.parse().unwrap(), &earlier, &narrow).is_ok();
    assert!(allows("none") && allows("backward"));
    assert!(!allows("forward") && !allows("full"));
    assert!(!allows("backward_transitive") && !allows("full_transitive"));
    let error = check(Compatibility::BackwardTransitive, &earlier, &narrow).unwrap_err();
    assert_eq!(
        (error.version, error.direction),
        (1, Compatibility::Backward)
    );
    assert!(check(Compatibility::FullTransitive, &[(1, &wide)], &wide).is_ok());
    assert!(check(Compatibility::FullTransitive, &[], &wide).is_ok());
    assert!("sideways".parse::<Compatibility>().is_err());
    for mode in Compatibility::ALL {
        assert_eq!(mode.as_str().parse::<Compatibility>().unwrap(), mode);
    }
}
