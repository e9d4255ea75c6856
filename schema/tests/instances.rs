//! Random schemas and instances: wherever a schema is said to contain another, no instance says otherwise.
#![cfg(test)]

use prombus_schema::{Schema, Validator, findings};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Small values, drawn from the same few names, numbers and texts that the schemas are.
fn instance() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..6i64).prop_map(Value::from),
        (-6..12i64).prop_map(|half| Value::from(half as f64 / 2.0)),
        "[ab]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[abc]", inner, 0..3).prop_map(|map| json!(map)),
        ]
    })
}

fn object(parts: Vec<(&'static str, Value)>) -> Value {
    Value::Object(
        parts
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    )
}

/// One or a few keywords, of every kind that the comparison knows.
fn keywords(inner: BoxedStrategy<Value>) -> impl Strategy<Value = Value> {
    let kinds = [
        "null", "boolean", "integer", "number", "string", "array", "object",
    ];
    let kind = move || prop::sample::select(kinds.to_vec());
    let names = || prop::collection::btree_set("[abc]", 0..3);
    let several = inner.clone();
    let part = prop_oneof![
        4 => kind().prop_map(|kind| ("type", json!(kind))),
        2 => prop::collection::btree_set(kind(), 1..4).prop_map(|kinds| ("type", json!(kinds))),
        1 => prop::collection::vec(instance(), 1..4).prop_map(|values| ("enum", json!(values))),
        1 => instance().prop_map(|value| ("const", value)),
        2 => (-2..5i64, prop::sample::select(vec!["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"])).prop_map(|(n, name)| (name, json!(n))),
        1 => (1..4i64).prop_map(|n| ("multipleOf", json!(n as f64 / 2.0))),
        2 => (0..4u64, prop::sample::select(vec!["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"])).prop_map(|(n, name)| (name, json!(n))),
        1 => prop::sample::select(vec!["^a", "b$", "a"]).prop_map(|pattern| ("pattern", json!(pattern))),
        1 => any::<bool>().prop_map(|unique| ("uniqueItems", json!(unique))),
        2 => names().prop_map(|names| ("required", json!(names))),
        3 => prop::collection::btree_map("[abc]", several.clone(), 0..3).prop_map(|map| ("properties", json!(map))),
        1 => (prop::sample::select(vec!["^a", "b$"]), several.clone()).prop_map(|(pattern, value)| ("patternProperties", json!({ pattern: value }))),
        2 => prop_oneof![any::<bool>().prop_map(Value::from), several.clone()].prop_map(|value| ("additionalProperties", value)),
        1 => several.clone().prop_map(|value| ("propertyNames", value)),
        1 => (names(), "[abc]").prop_map(|(names, name)| ("dependentRequired", json!({ name: names }))),
        1 => (several.clone(), "[abc]").prop_map(|(value, name)| ("dependentSchemas", json!({ name: value }))),
        2 => prop_oneof![any::<bool>().prop_map(Value::from), several.clone()].prop_map(|value| ("items", value)),
        1 => prop::collection::vec(several.clone(), 1..3).prop_map(|list| ("prefixItems", json!(list))),
        1 => several.clone().prop_map(|value| ("contains", value)),
        2 => (prop::sample::select(vec!["anyOf", "oneOf", "allOf"]), prop::collection::vec(several.clone(), 1..3)).prop_map(|(name, list)| (name, json!(list))),
        1 => several.clone().prop_map(|value| ("not", value)),
        1 => (prop::sample::select(vec!["if", "then", "else"]), several).prop_map(|(name, value)| (name, value)),
        1 => Just(("$ref", json!("#/$defs/d"))),
    ];
    prop::collection::vec(part, 0..4).prop_map(object)
}

fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![8 => Just(json!({})), 1 => any::<bool>().prop_map(Value::from)];
    let schema = leaf.prop_recursive(3, 24, 3, |inner| keywords(inner.boxed()));
    (schema.clone(), schema).prop_map(|(mut root, definition)| {
        if let Value::Object(map) = &mut root {
            map.insert("$defs".into(), json!({ "d": definition }));
        }
        root
    })
}

/// A schema that is often, but not always, wider or narrower than another: one of its keywords is gone or changed.
fn changed(schema: &Value, at: usize, other: &Value) -> Value {
    let Value::Object(map) = schema else {
        return other.clone();
    };
    let names: Vec<&String> = map.keys().filter(|name| *name != "$defs").collect();
    let Some(name) = (!names.is_empty()).then(|| names[at % names.len()]) else {
        return other.clone();
    };
    let mut changed = map.clone();
    match (at / 7 % 3, other.get(name)) {
        (0, _) => {
            changed.remove(name);
        }
        (1, Some(value)) => {
            changed.insert(name.clone(), value.clone());
        }
        _ => {
            let inner = changed[name.as_str()].clone();
            if let Value::Object(inner) = &inner
                && name == "properties"
            {
                let inner = inner
                    .iter()
                    .map(|(name, value)| (name.clone(), self::changed(value, at / 3, other)));
                changed.insert(name.clone(), Value::Object(inner.collect()));
            } else {
                changed.insert("title".into(), json!("changed"));
            }
        }
    }
    Value::Object(changed)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 1_500 } else { 10_000 }))]

    #[test]
    fn what_fits_the_contained_schema_fits_the_other(
        one in any_schema(),
        other in any_schema(),
        at in any::<prop::sample::Index>(),
        instances in prop::collection::vec(instance(), 60),
    ) {
        let near = changed(&one, at.index(1_000), &other);
        let parsed = |value: &Value| Schema::new(value.clone()).ok();
        for (sub, sup) in [(&one, &near), (&near, &one), (&one, &other), (&one, &one)] {
            let (Some(sub_schema), Some(sup_schema)) = (parsed(sub), parsed(sup)) else {
                continue;
            };
            let found = findings(&sub_schema, &sup_schema);
            prop_assert!(sub != sup || found.is_empty(), "{} does not contain itself: {:?}", sub, found);
            if !found.is_empty() {
                continue;
            }
            let (sub_valid, sup_valid) = (Validator::new(&sub_schema).unwrap(), Validator::new(&sup_schema).unwrap());
            for value in &instances {
                if sub_valid.check_value(value).is_ok() {
                    prop_assert!(sup_valid.check_value(value).is_ok(), "{value} fits {sub} and not {sup}");
                }
            }
        }
    }
}
