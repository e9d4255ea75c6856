//! Ranges and multiples. Numbers are compared exactly where both are integers; where that is not possible and precision
//! could be lost, nothing is claimed.

use super::facts::{Facts, Node};
use super::finding::{Finding, Rule};
use super::types::Types;
use serde_json::Number;
use std::cmp::Ordering;

/// The largest integer up to which doubles are exact.
const MAX_EXACT: i128 = 1 << 53;
/// Decimals are compared after multiplying by this, where that makes them whole.
const DECIMAL_SCALE: f64 = 1e6;

/// One end of a range.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound<'a> {
    value: &'a Number,
    is_exclusive: bool,
}

/// Which end of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Lower,
    Upper,
}

/// Whether what is known implies the bound of a keyword.
pub(super) fn range(
    facts: &Facts<'_>,
    right: &Node<'_>,
    keyword: &str,
    value: &Number,
    out: &mut Vec<Finding>,
) -> bool {
    if !facts.types.has(Types::NUMBER) {
        return true;
    }
    let end = if keyword.ends_with("inimum") {
        End::Lower
    } else {
        End::Upper
    };
    let wanted = Bound {
        value,
        is_exclusive: keyword.starts_with("exclusive"),
    };
    let is_integer = !facts.types.has(Types::FRACTION);
    if bounds(facts, end)
        .iter()
        .any(|bound| implies(bound, &wanted, end, is_integer))
    {
        return true;
    }
    let detail = format!("{keyword} {value} excludes numbers that were allowed");
    out.push(Finding::new(right, keyword, Rule::RangeNarrowed, detail));
    false
}

/// Whether what is known implies `multipleOf`.
pub(super) fn multiple(
    facts: &Facts<'_>,
    right: &Node<'_>,
    value: &Number,
    out: &mut Vec<Finding>,
) -> bool {
    if !facts.types.has(Types::NUMBER) {
        return true;
    }
    let one = Number::from(1);
    let known = facts.numbers("multipleOf");
    let whole = (!facts.types.has(Types::FRACTION)).then_some(&one);
    let mut factors = known.chain(whole);
    if factors.any(|known| is_multiple(known, value)) {
        return true;
    }
    let detail = format!("multipleOf {value} excludes numbers that were allowed");
    out.push(Finding::new(
        right,
        "multipleOf",
        Rule::MultipleNarrowed,
        detail,
    ));
    false
}

/// Whether the bounds leave no number.
pub(super) fn is_range_empty(facts: &Facts<'_>) -> bool {
    let (lower, upper) = (bounds(facts, End::Lower), bounds(facts, End::Upper));
    lower.iter().any(|low| {
        upper
            .iter()
            .any(|high| match compare(low.value, high.value) {
                Some(Ordering::Greater) => true,
                Some(Ordering::Equal) => low.is_exclusive || high.is_exclusive,
                _ => false,
            })
    })
}

fn bounds<'a>(facts: &Facts<'a>, end: End) -> Vec<Bound<'a>> {
    let (plain, exclusive) = match end {
        End::Lower => ("minimum", "exclusiveMinimum"),
        End::Upper => ("maximum", "exclusiveMaximum"),
    };
    let bound = |is_exclusive| {
        move |value| Bound {
            value,
            is_exclusive,
        }
    };
    facts
        .numbers(plain)
        .map(bound(false))
        .chain(facts.numbers(exclusive).map(bound(true)))
        .collect()
}

/// Whether a known bound is at least as strict as the wanted one.
fn implies(known: &Bound<'_>, wanted: &Bound<'_>, end: End, is_integer: bool) -> bool {
    if is_integer && let (Some(known), Some(wanted)) = (tightest(known, end), tightest(wanted, end))
    {
        return match end {
            End::Lower => known >= wanted,
            End::Upper => known <= wanted,
        };
    }
    match (compare(known.value, wanted.value), end) {
        (Some(Ordering::Equal), _) => known.is_exclusive || !wanted.is_exclusive,
        (Some(Ordering::Greater), End::Lower) | (Some(Ordering::Less), End::Upper) => true,
        _ => false,
    }
}

/// The outermost integer within a bound.
fn tightest(bound: &Bound<'_>, end: End) -> Option<i128> {
    if let Some(whole) = integer(bound.value) {
        return Some(match (bound.is_exclusive, end) {
            (false, _) => whole,
            (true, End::Lower) => whole + 1,
            (true, End::Upper) => whole - 1,
        });
    }
    let float = bound
        .value
        .as_f64()
        .filter(|float| float.abs() < MAX_EXACT as f64)?;
    Some(match end {
        End::Lower => float.ceil() as i128,
        End::Upper => float.floor() as i128,
    })
}

fn compare(one: &Number, other: &Number) -> Option<Ordering> {
    match (integer(one), integer(other)) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        (one_whole, other_whole) => {
            let is_exact = |whole: Option<i128>| whole.is_none_or(|whole| whole.abs() <= MAX_EXACT);
            if !is_exact(one_whole) || !is_exact(other_whole) {
                return None;
            }
            one.as_f64()?.partial_cmp(&other.as_f64()?)
        }
    }
}

/// A number that is whole, however it is written.
fn integer(number: &Number) -> Option<i128> {
    if let Some(whole) = number.as_i64() {
        return Some(whole.into());
    }
    if let Some(whole) = number.as_u64() {
        return Some(whole.into());
    }
    let float = number.as_f64()?;
    (float.fract() == 0.0 && float.abs() <= MAX_EXACT as f64).then_some(float as i128)
}

/// Whether every multiple of `known` is one of `wanted`.
fn is_multiple(known: &Number, wanted: &Number) -> bool {
    match (scaled(known), scaled(wanted)) {
        (Some(known), Some(wanted)) if wanted != 0 => known % wanted == 0,
        _ => known == wanted,
    }
}

/// A decimal as a whole number of millionths, where it is one.
fn scaled(number: &Number) -> Option<i128> {
    if let Some(whole) = integer(number) {
        return whole.checked_mul(DECIMAL_SCALE as i128);
    }
    let float = number.as_f64()? * DECIMAL_SCALE;
    let rounded = float.round();
    ((float - rounded).abs() < 1e-6 && rounded.abs() < MAX_EXACT as f64).then_some(rounded as i128)
}
