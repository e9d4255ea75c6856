//! Upcasting: the payload of the version before becomes one of this version by a few declared steps in the schema's own
//! `x-upcast`, so that a schema and the way to it are one document.
//!
//! ```json
//! {"x-upcast": [
//!   {"rename": {"from": "/name", "to": "full_name"}},
//!   {"move": {"from": "/zip", "to": "/address/zip"}},
//!   {"default": {"path": "/currency", "value": "EUR"}},
//!   {"remove": {"path": "/legacy"}}
//! ]}
//! ```

use crate::document::InvalidSchema;
use serde_json::{Map, Value};

/// The keyword that holds the steps.
pub(crate) const KEYWORD: &str = "x-upcast";
/// The most steps of one version.
pub const MAX_UPCAST_STEPS: usize = 100;

/// The steps from the version before to this one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Upcast {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    /// Gives what is at a place another name in the same object.
    Rename { from: Vec<String>, to: String },
    /// Puts what is at a place at another one, and makes the objects on the way.
    Move { from: Vec<String>, to: Vec<String> },
    /// Puts a value where there is none.
    Default { path: Vec<String>, value: Value },
    /// Takes away what is at a place.
    Remove { path: Vec<String> },
}

impl Upcast {
    /// The steps that a schema declares; none where it declares none.
    pub fn of(schema: &Value) -> Result<Self, InvalidSchema> {
        let Some(declared) = schema.get(KEYWORD) else {
            return Ok(Self::default());
        };
        let Value::Array(items) = declared else {
            return Err(bad(None, "expected a list of steps"));
        };
        if items.len() > MAX_UPCAST_STEPS {
            let reason = format!("more than {MAX_UPCAST_STEPS} steps (max_upcast_steps)");
            return Err(bad(None, reason));
        }
        let steps = items.iter().enumerate();
        let steps = steps.map(|(at, item)| step(item).map_err(|reason| bad(Some(at), reason)));
        Ok(Self {
            steps: steps.collect::<Result<_, _>>()?,
        })
    }

    /// Applies the steps in their order. A step whose source is absent does nothing, and nothing that is present is
    /// overwritten.
    pub fn apply(&self, payload: &mut Value) {
        for step in &self.steps {
            match step {
                Step::Rename { from, to } => {
                    let Some((_, parents)) = from.split_last() else {
                        continue;
                    };
                    let mut target = parents.to_vec();
                    target.push(to.clone());
                    relocate(payload, from, &target);
                }
                Step::Move { from, to } => relocate(payload, from, to),
                Step::Default { path, value } => put(payload, path, value.clone()),
                Step::Remove { path } => drop(take(payload, path)),
            }
        }
    }
}

fn bad(at: Option<usize>, reason: impl Into<String>) -> InvalidSchema {
    let path = match at {
        Some(at) => format!("/{KEYWORD}/{at}"),
        None => format!("/{KEYWORD}"),
    };
    let reason = reason.into();
    InvalidSchema::BadKeyword { path, reason }
}

fn step(item: &Value) -> Result<Step, String> {
    let expected = "expected an object with one of rename, move, default, remove";
    let map = item
        .as_object()
        .filter(|map| map.len() == 1)
        .ok_or(expected)?;
    let (name, fields) = map.iter().next().ok_or(expected)?;
    let fields = fields
        .as_object()
        .ok_or("expected an object with its fields")?;
    let known: &[&str] = match name.as_str() {
        "rename" | "move" => &["from", "to"],
        "default" => &["path", "value"],
        "remove" => &["path"],
        _ => return Err(expected.to_owned()),
    };
    if let Some(other) = fields.keys().find(|field| !known.contains(&field.as_str())) {
        return Err(format!(
            "unknown field {other:?}; expected {}",
            known.join(", ")
        ));
    }
    let text = |field: &str| {
        let value = fields.get(field).and_then(Value::as_str);
        value.ok_or_else(|| format!("{field}: expected a string"))
    };
    let path = |field: &str| {
        let path = pointer(text(field)?);
        path.ok_or_else(|| format!("{field}: expected a JSON Pointer to a property"))
    };
    Ok(match name.as_str() {
        "rename" => Step::Rename {
            from: path("from")?,
            to: text("to")?.to_owned(),
        },
        "move" => Step::Move {
            from: path("from")?,
            to: path("to")?,
        },
        "default" => Step::Default {
            path: path("path")?,
            value: fields.get("value").cloned().ok_or("value: missing")?,
        },
        _ => Step::Remove {
            path: path("path")?,
        },
    })
}

/// The names of a JSON Pointer; `None` where it is none, or points to the whole.
fn pointer(text: &str) -> Option<Vec<String>> {
    let names = text.strip_prefix('/')?.split('/');
    Some(
        names
            .map(|name| name.replace("~1", "/").replace("~0", "~"))
            .collect(),
    )
}

/// Puts what is at one place at another, unless something is there already or it cannot be there.
fn relocate(payload: &mut Value, from: &[String], to: &[String]) {
    if !is_free(payload, to) || to.starts_with(from) {
        return;
    }
    if let Some(value) = take(payload, from) {
        put(payload, to, value);
    }
}

/// Whether [`put`] would put a value there.
fn is_free(payload: &Value, path: &[String]) -> bool {
    let mut place = payload;
    for name in path {
        let Value::Object(map) = place else {
            return false;
        };
        match map.get(name) {
            Some(inner) => place = inner,
            None => return true,
        }
    }
    false
}

fn take(payload: &mut Value, path: &[String]) -> Option<Value> {
    let (last, parents) = path.split_last()?;
    let parent = parents
        .iter()
        .try_fold(payload, |value, name| value.get_mut(name))?;
    parent.as_object_mut()?.remove(last)
}

/// Puts a value where there is none, and makes the objects on the way. Where something on the way is no object, nothing
/// happens.
fn put(payload: &mut Value, path: &[String], value: Value) {
    let Some((last, parents)) = path.split_last() else {
        return;
    };
    let mut place = payload;
    for name in parents {
        let Value::Object(map) = place else {
            return;
        };
        place = map
            .entry(name.as_str())
            .or_insert_with(|| Value::Object(Map::new()));
    }
    if let Value::Object(map) = place {
        map.entry(last.as_str()).or_insert(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn upcast(steps: Value, mut payload: Value) -> Value {
        let steps = Upcast::of(&json!({ KEYWORD: steps })).expect("steps");
        steps.apply(&mut payload);
        payload
    }

    #[test]
    fn steps_are_done_in_their_order() {
        let steps = json!([
            {"rename": {"from": "/name", "to": "full_name"}},
            {"move": {"from": "/zip", "to": "/address/zip"}},
            {"default": {"path": "/address/country", "value": "DE"}},
            {"remove": {"path": "/legacy"}},
        ]);
        assert_eq!(
            upcast(steps, json!({"name": "a", "zip": 1, "legacy": true})),
            json!({"full_name": "a", "address": {"zip": 1, "country": "DE"}})
        );
    }

    #[test]
    fn what_is_there_is_not_overwritten_and_what_is_missing_does_nothing() {
        let steps = json!([
            {"rename": {"from": "/a", "to": "b"}},
            {"default": {"path": "/b", "value": 0}},
            {"move": {"from": "/x/y", "to": "/z"}},
            {"default": {"path": "/n/m", "value": 1}},
        ]);
        assert_eq!(
            upcast(steps.clone(), json!({"a": 1, "b": 2, "n": 3})),
            json!({"a": 1, "b": 2, "n": 3})
        );
        assert_eq!(upcast(steps.clone(), json!([1])), json!([1]));
        assert_eq!(
            upcast(steps, json!({"a": 1})),
            json!({"b": 1, "n": {"m": 1}})
        );
        let blocked = json!([{"move": {"from": "/a", "to": "/n/m"}}]);
        let kept = json!({"a": 1, "n": 3});
        assert_eq!(upcast(blocked, kept.clone()), kept, "nothing is lost");
        let slash = json!([{"rename": {"from": "/a~1b", "to": "c"}}]);
        assert_eq!(upcast(slash, json!({"a/b": 1})), json!({"c": 1}));
    }

    #[test]
    fn steps_that_make_no_sense_are_named_by_their_place() {
        for steps in [
            json!({}),
            json!([1]),
            json!([{}]),
            json!([{"copy": {}}]),
            json!([{"rename": {"from": "a", "to": "b"}}]),
            json!([{"move": {"from": "/a"}}]),
            json!([{"default": {"path": "/a"}}]),
            json!([{"remove": {"path": "/a", "why": 1}}]),
        ] {
            let error = Upcast::of(&json!({ KEYWORD: steps.clone() })).expect_err("no steps");
            assert!(
                error.to_string().starts_with("/x-upcast"),
                "{steps}: {error}"
            );
        }
    }
}
