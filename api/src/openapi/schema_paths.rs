//! The routes of schemas.

use super::operation::{Operation, reference};
use prombus_interface::schemas::{Compatibility, Flag};
use serde_json::{Value, json};

pub(super) fn list() -> Value {
    Operation::new("listSchemas", "The schemas of all topics, in short")
        .reply("Those of topics that the caller may read.", "SchemaList")
        .build()
}

pub(super) fn get() -> Value {
    Operation::new("getSchemas", "The schemas of a topic, all versions")
        .topic_in_path()
        .reply("The schemas.", "TopicSchemas")
        .build()
}

pub(super) fn get_version() -> Value {
    Operation::new("getSchema", "One version of a topic's schema")
        .topic_in_path()
        .version_in_path()
        .reply("The version.", "SchemaVersion")
        .build()
}

pub(super) fn register() -> Value {
    compared(Operation::new(
        "registerSchema",
        "Register a new version of a topic's schema",
    ))
    .query::<Flag>(
        "dry_run",
        "Check the schema and all retained events, and register nothing.",
    )
    .replies(
        "200",
        "It is registered; with `dry_run`, what would come of it. 409 is `schema_incompatible` with the reason.",
        json!({"application/json": {"schema": {"oneOf": [reference("RegisteredSchema"), reference("SchemaCheck")]}}}),
    )
    .build()
}

pub(super) fn check() -> Value {
    compared(Operation::new(
        "checkSchema",
        "Whether a schema may follow the versions that a topic has",
    ))
    .reply("Whether it may, and why not.", "SchemaCheck")
    .build()
}

pub(super) fn remove() -> Value {
    Operation::new("removeSchemas", "Remove all versions of a topic's schema")
        .topic_in_path()
        .empty_reply("They are gone.")
        .build()
}

pub(super) fn remove_version() -> Value {
    Operation::new("removeSchema", "Remove one version of a topic's schema")
        .topic_in_path()
        .version_in_path()
        .empty_reply("It is gone.")
        .build()
}

/// An operation that takes a schema.
fn compared(operation: Operation) -> Operation {
    operation
        .topic_in_path()
        .query::<Compatibility>("compatibility",
            "What it has to be beside the earlier versions; left out, what the topic says.",
        )
        .bodies(json!({"application/json": {"schema": {"description": "The JSON Schema, draft 2020-12."}}}))
}
