//! The schemas of all bodies, derived from their types. What is left to do here is to make them as strict as the server
//! is: which numbers it takes, where it takes null, and that it rejects fields that it does not know.

use crate::frames::{Ack, Modack, Nack};
use crate::http::*;
use prombus_interface::{Explanation, Lag};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// The largest integer that every JSON reader keeps exactly.
const MAX_INTEGER: u64 = 9_007_199_254_740_991;

type Body = fn(&mut SchemaGenerator) -> Schema;

macro_rules! bodies {
    ($($type:ty),+ $(,)?) => { &[$(SchemaGenerator::subschema_for::<$type>),+] };
}

/// The bodies of requests; those inside them come along.
const REQUESTS: &[Body] = bodies![
    Ack,
    Envelope,
    GroupChange,
    Modack,
    Nack,
    NamedGroup,
    PublishAtomic,
    Pull,
    Redrive,
    Seek,
    Shadow,
    TopicConfig,
];
/// The bodies of replies.
const REPLIES: &[Body] = bodies![
    Attention,
    BatchReply,
    BulkReply,
    Causes,
    CursorList,
    DeadLetter,
    DiffPage,
    ErrorBody,
    EventPage,
    Explanation,
    FindPage,
    GroupList,
    GroupPage,
    Health,
    Histogram,
    History,
    Lag,
    LatestPage,
    ListPage,
    NodeList,
    PublishAtomicReply,
    Pulled,
    RedriveReply,
    RegisteredSchema,
    RemovedLetters,
    SchedulePage,
    ScheduleReply,
    SchemaCheck,
    SchemaList,
    SeekReply,
    ServerStatus,
    SettleReply,
    ShadowReply,
    SnapshotReply,
    TopicList,
    TopicPage,
    TopicSchemas,
];

/// All schemas by name. What is in requests and in replies is described as in requests.
pub(super) fn all() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut all = definitions(settings.clone().for_serialize(), REPLIES, never_null);
    all.extend(definitions(settings.for_deserialize(), REQUESTS, strict));
    all
}

/// The schema of a value that has no name of its own.
pub(super) fn inline<T: JsonSchema>() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = SchemaGenerator::new(settings)
        .subschema_for::<T>()
        .to_value();
    tidy(&mut schema);
    schema
}

fn definitions(
    settings: SchemaSettings,
    bodies: &[Body],
    finish: fn(&mut Value),
) -> Map<String, Value> {
    let mut generator = SchemaGenerator::new(settings);
    for body in bodies {
        body(&mut generator);
    }
    let mut definitions = generator.take_definitions(false);
    for schema in definitions.values_mut() {
        tidy(schema);
        finish(schema);
    }
    definitions
}

/// What schemars has in other words: the bounds of numbers instead of their formats (a `usize` is read as 32 bits), words
/// in a list, and descriptions and defaults without what says nothing.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(schema) => {
            schema.values_mut().for_each(tidy);
            if let Some(Value::String(text)) = schema.get_mut("description") {
                *text = text.replace('\n', " ");
            }
            if let Some(format) = schema.get("format").and_then(Value::as_str) {
                let is_wide = format == "uint64";
                let maximum = if is_wide {
                    MAX_INTEGER
                } else {
                    u32::MAX.into()
                };
                schema.remove("format");
                schema.entry("maximum").or_insert(json!(maximum));
            }
            if let Some(Value::Array(choices)) = schema.get("oneOf")
                && let Some(words) = choices
                    .iter()
                    .map(|choice| choice.get("const").cloned())
                    .collect::<Option<Vec<_>>>()
            {
                schema.remove("oneOf");
                schema.insert("type".to_owned(), json!("string"));
                schema.insert("enum".to_owned(), json!(words));
            }
            let default = schema.get("default");
            if default.is_some_and(|default| [json!(null), json!([]), json!({})].contains(default))
            {
                schema.remove("default");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// A request may have no other fields, unless its type says so, and null where a field may be left out.
fn strict(schema: &mut Value) {
    optional(schema, |property| match property.get("type") {
        Some(Value::String(kind)) => property["type"] = json!([kind, "null"]),
        _ => {
            if let Some(reference) = property
                .as_object_mut()
                .and_then(|property| property.remove("$ref"))
            {
                property["anyOf"] = json!([{"$ref": reference}, {"type": "null"}]);
            }
        }
    });
    if let Value::Object(schema) = schema
        && schema.contains_key("properties")
    {
        schema.entry("additionalProperties").or_insert(json!(false));
    }
}

/// A reply leaves a field out instead of saying null, and has a value for all others.
fn never_null(schema: &mut Value) {
    optional(schema, without_null);
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(Map::values_mut) {
        property
            .as_object_mut()
            .map(|property| property.remove("default"));
    }
}

/// The same without null among its values.
pub(super) fn without_null(schema: &mut Value) {
    let Value::Object(schema) = schema else {
        return;
    };
    for list in ["type", "enum", "anyOf"] {
        if let Some(Value::Array(items)) = schema.get_mut(list) {
            items.retain(|item| {
                ![json!(null), json!("null"), json!({"type": "null"})].contains(item)
            });
        }
    }
    if let Some(kind) = schema.get_mut("type").filter(|kind| kind.is_array()) {
        *kind = kind[0].take();
    }
    let rest = schema.get("anyOf").and_then(Value::as_array);
    if let Some([Value::Object(only)]) = rest.map(Vec::as_slice) {
        let only = only.clone();
        schema.remove("anyOf");
        schema.extend(only);
    }
}

/// Calls `change` with each property that may be left out.
fn optional(schema: &mut Value, change: fn(&mut Value)) {
    let required = schema
        .get("required")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        let optional = properties
            .iter_mut()
            .filter(|(name, _)| !required.contains(&json!(name)));
        optional.for_each(|(_, property)| change(property));
    }
}
