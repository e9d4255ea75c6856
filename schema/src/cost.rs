//! How much work a schema can make of a payload, bounded before it is registered. A schema whose parts are asked again
//! and again about the same place costs more with each level; one that refers to itself does so without end, and then
//! the depth of payloads is what bounds it.

use crate::document::{InvalidSchema, children, decoded, is_same_place};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// The most parts of a schema that one path through a payload may be held against.
pub const MAX_VALIDATION_COST: usize = 100_000;

/// What has been found out of a schema's places.
struct Costs<'a> {
    root: &'a Value,
    /// The cost of places that refer to nothing above them.
    known: HashMap<String, usize>,
    open: HashSet<String>,
    /// Whether a place refers to one that contains it.
    is_recursive: bool,
    /// The most often that one part of a payload is looked at from one place.
    fan_out: usize,
}

/// Refuses a schema that costs too much, and says how often it may look at the same part of a payload for each level of
/// nesting: 1 where it does not refer to itself, because then its cost is bounded whatever the payload.
pub(crate) fn check(root: &Value) -> Result<usize, InvalidSchema> {
    let mut costs = Costs {
        root,
        known: HashMap::new(),
        open: HashSet::new(),
        is_recursive: false,
        fan_out: 1,
    };
    if costs.of(String::new()) > MAX_VALIDATION_COST {
        return Err(InvalidSchema::TooComplex {
            path: String::new(),
            limit: "max_validation_cost",
            value: MAX_VALIDATION_COST,
        });
    }
    Ok(if costs.is_recursive { costs.fan_out } else { 1 })
}

/// How deep a payload may be nested where each level costs `fan_out` times as much as the one above it.
pub(crate) fn max_depth(fan_out: usize) -> Option<usize> {
    (fan_out > 1).then(|| MAX_VALIDATION_COST.ilog(fan_out) as usize)
}

impl Costs<'_> {
    fn of(&mut self, pointer: String) -> usize {
        if let Some(cost) = self.known.get(&pointer) {
            return *cost;
        }
        if !self.open.insert(pointer.clone()) {
            self.is_recursive = true;
            return 1;
        }
        let mut slots = HashMap::new();
        let mut cost = self.level(&pointer, &mut slots, 0);
        // Names that a pattern or `additionalProperties` covers may be any of those that are named.
        let open_names = slots.get("*").map_or(0, Vec::len);
        for (slot, places) in slots {
            let shared = if slot.starts_with("properties/") {
                open_names
            } else {
                0
            };
            self.fan_out = self.fan_out.max(places.len() + shared);
            for place in places {
                cost = cost.saturating_add(self.of(place));
            }
        }
        self.open.remove(&pointer);
        self.known.insert(pointer, cost);
        cost
    }

    /// The cost of everything that is asked about one place of a payload, and what it asks about the parts of that.
    fn level(
        &self,
        pointer: &str,
        slots: &mut HashMap<String, Vec<String>>,
        spent: usize,
    ) -> usize {
        // Circles at one place were refused before; what is left may still be exponential.
        if spent > MAX_VALIDATION_COST {
            return 0;
        }
        let mut cost = 1;
        let Some(value) = self.root.pointer(pointer) else {
            return cost;
        };
        for (name, keyword, _) in children(value) {
            let place = format!("{pointer}{name}");
            if is_same_place(keyword) {
                cost += self.level(&place, slots, spent + cost);
            } else if let Some(slot) = slot(keyword, &name) {
                slots.entry(slot).or_default().push(place);
            }
        }
        let reference = value.get("$ref").and_then(Value::as_str);
        if let Some(target) = reference.and_then(|target| decoded(target.strip_prefix('#')?)) {
            cost += self.level(&target, slots, spent + cost);
        }
        cost
    }
}

/// Which parts of a payload a keyword's schema is asked about; `None` where it is asked about none.
fn slot(keyword: &str, name: &str) -> Option<String> {
    match keyword {
        "properties" => Some(name.trim_start_matches('/').to_owned()),
        "patternProperties" | "additionalProperties" | "unevaluatedProperties" => {
            Some("*".to_owned())
        }
        "items" | "prefixItems" | "contains" | "unevaluatedItems" | "additionalItems" => {
            Some("[]".to_owned())
        }
        "propertyNames" => Some("names".to_owned()),
        _ => None,
    }
}
