//! The schemas of topics.

use crate::openapi::schema::{any, count, flag, list, object, reference, text, word};
use serde_json::Value;

/// What a new version may have to be.
pub(in crate::openapi) const MODES: &[&str] = &[
    "none",
    "backward",
    "forward",
    "full",
    "backward_transitive",
    "forward_transitive",
    "full_transitive",
];

pub(super) fn all() -> Vec<(&'static str, Value)> {
    vec![
        (
            "SchemaList",
            object(
                "The schemas of all topics that have any.",
                vec![(
                    "schemas",
                    list("In the order of their topics.", &reference("SchemaSummary")),
                )],
                vec![],
            ),
        ),
        ("SchemaSummary", summary(count("The number of a version."))),
        ("TopicSchemas", summary(reference("SchemaVersion"))),
        (
            "SchemaVersion",
            object(
                "One version of a topic's schema.",
                vec![
                    ("version", count("Its number, from 1; never used again.")),
                    (
                        "ts",
                        count("When it was registered, in epoch milliseconds."),
                    ),
                    ("schema", any("The JSON Schema, draft 2020-12.")),
                ],
                vec![],
            ),
        ),
        (
            "RegisteredSchema",
            object(
                "A schema that was registered.",
                vec![
                    ("topic", text("The topic.")),
                    ("version", count("The schema's version.")),
                    (
                        "unchanged",
                        flag("Whether the latest version was the same already."),
                    ),
                    ("compatibility", mode()),
                ],
                vec![],
            ),
        ),
        ("SchemaCheck", check()),
        ("SchemaFinding", finding()),
        ("RetainedEvents", retained()),
        ("FailingEvent", failing()),
        (
            "AffectedGroup",
            object(
                "A group that a schema would affect.",
                vec![
                    ("group", text("Its name.")),
                    ("members", count("How many members it has now.")),
                    (
                        "failing_ahead",
                        count("How many events that do not fit are behind its cursor."),
                    ),
                ],
                vec![],
            ),
        ),
    ]
}

fn mode() -> Value {
    word(
        "What a new version has to be beside the earlier ones.",
        MODES,
    )
}

fn summary(version: Value) -> Value {
    object(
        "The schemas of a topic.",
        vec![
            ("topic", text("The topic.")),
            ("compatibility", mode()),
            ("latest", count("The version that events are held against.")),
            ("versions", list("All versions, in their order.", &version)),
        ],
        vec![],
    )
}

fn check() -> Value {
    object(
        "What would come of registering a schema.",
        vec![
            ("topic", text("The topic.")),
            ("compatible", flag("Whether it may be registered.")),
            ("compatibility", mode()),
            (
                "findings",
                list(
                    "Why it may not be, place by place.",
                    &reference("SchemaFinding"),
                ),
            ),
        ],
        vec![
            ("latest", count("The version that it would follow.")),
            ("reason", text("Why it may not be registered, in words.")),
            ("retained", reference("RetainedEvents")),
        ],
    )
}

fn finding() -> Value {
    object(
        "A place of a schema that accepts less than before, or may.",
        vec![
            (
                "path",
                text("JSON Pointer into the schema that accepts less."),
            ),
            (
                "rule",
                text("The rule that it breaks, e.g. `required_added`."),
            ),
            ("detail", text("What is lost, in words.")),
            (
                "proven",
                flag(
                    "Whether something is lost for certain; else it cannot be proven that nothing is.",
                ),
            ),
        ],
        vec![],
    )
}

fn retained() -> Value {
    object(
        "How the retained events of a topic fit a schema.",
        vec![
            ("checked", count("How many there are.")),
            ("failing", count("How many do not fit.")),
            (
                "first_failing",
                list("The first 100 of those.", &reference("FailingEvent")),
            ),
            (
                "groups",
                list(
                    "Groups with members, or with such events ahead of them.",
                    &reference("AffectedGroup"),
                ),
            ),
        ],
        vec![],
    )
}

fn failing() -> Value {
    object(
        "A retained event that does not fit.",
        vec![
            ("id", text("Its id.")),
            ("seq", count("Its position.")),
            ("path", text("JSON Pointer to what does not fit.")),
            ("reason", text("What was expected there.")),
        ],
        vec![],
    )
}
