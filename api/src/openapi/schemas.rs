//! The schemas of all bodies.

mod dashboard;
mod events;
mod groups;
pub(super) mod registry;
mod settling;
mod topics;

use super::schema::{count, list, object, text, word};
use crate::code::Code;
use serde_json::{Map, Value};

/// All schemas by name.
pub(super) fn all() -> Value {
    let mut schemas = Map::new();
    let parts = [
        events::all(),
        topics::all(),
        registry::all(),
        groups::all(),
        settling::all(),
        dashboard::all(),
        shared(),
    ];
    for (name, schema) in parts.into_iter().flatten() {
        schemas.insert(name.to_owned(), schema);
    }
    Value::Object(schemas)
}

/// The fields that name a place in a body.
fn position() -> Vec<(&'static str, Value)> {
    let from = word(
        "Where to; a ts, afterId or seq alone says enough.",
        &["latest", "earliest", "ts", "afterId", "seq"],
    );
    vec![
        ("from", from),
        (
            "ts",
            count("The first event at or after this epoch millisecond."),
        ),
        ("afterId", text("The event after this one.")),
        ("seq", count("This position.")),
    ]
}

fn shared() -> Vec<(&'static str, Value)> {
    let words: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    vec![
        (
            "Code",
            word(
                "What went wrong, for programs. Newer servers may know more of them.",
                &words,
            ),
        ),
        (
            "ErrorBody",
            object(
                "What went wrong.",
                vec![
                    ("code", super::schema::reference("Code")),
                    ("error", text("For people.")),
                ],
                vec![
                    ("retry_after_ms", count("When to come again.")),
                    (
                        "actual",
                        count("With `seq_mismatch`: the position that was found."),
                    ),
                ],
            ),
        ),
        (
            "Health",
            object(
                "How the server is.",
                vec![("status", word("In a word.", &["ok", "failing"]))],
                vec![
                    ("reason", text("What is wrong.")),
                    (
                        "damage",
                        list("What is damaged in the store.", &text("Where and what.")),
                    ),
                ],
            ),
        ),
    ]
}
