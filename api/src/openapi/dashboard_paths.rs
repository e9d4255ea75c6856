//! The routes that show the whole at a glance.

use super::operation::{Operation, flag};
use super::schema::reference;
use serde_json::{Value, json};

pub(super) fn history() -> Value {
    Operation::new("history", "Rates and sizes of the last 15 minutes")
        .query(
            "after",
            count(),
            "Only samples taken after this epoch millisecond.",
        )
        .query(
            "follow",
            flag("0"),
            "Go on with server-sent events, a History each.",
        )
        .replies(
            "200",
            "The samples. It needs a token that may read or administer all topics.",
            json!({
                "application/json": {"schema": reference("History")},
                "text/event-stream": {},
            }),
        )
        .build()
}

pub(super) fn status() -> Value {
    Operation::new("status", "The server in short, and what the caller may do")
        .reply("The server.", "ServerStatus")
        .build()
}

pub(super) fn access() -> Value {
    let text = || json!({"type": "string"});
    Operation::new("access", "What the caller may do")
        .query(
            "topic",
            text(),
            "With this topic or pattern; all topics by default.",
        )
        .query("group", text(), "As this group.")
        .reply("What is allowed.", "Access")
        .build()
}

pub(super) fn nodes() -> Value {
    Operation::new("nodes", "The servers that share the store")
        .reply(
            "What is known of them; none where the server has its store for itself.",
            "NodeList",
        )
        .build()
}

pub(super) fn attention() -> Value {
    Operation::new(
        "attention",
        "What an operator should look at: stuck groups, growing lag, dead letters, damage",
    )
    .reply("The findings that the caller may know of.", "Attention")
    .build()
}

pub(super) fn histogram() -> Value {
    let buckets = json!({"type": "integer", "minimum": 1, "maximum": 240, "default": 60});
    Operation::new("histogram", "How many events a topic got over time")
        .required_query("topic", "The topic.")
        .query(
            "fromTs",
            count(),
            "The beginning; that of the oldest event by default.",
        )
        .query(
            "toTs",
            count(),
            "The end; that of the newest event by default.",
        )
        .query(
            "buckets",
            buckets,
            "How many parts the time is divided into.",
        )
        .reply("Counts by time.", "Histogram")
        .build()
}

pub(super) fn causes() -> Value {
    Operation::new("causes", "What caused an event, and what it caused")
        .required_query("topic", "The topic.")
        .required_query("id", "The event.")
        .reply("The events around it.", "Causes")
        .build()
}

/// The parameters of a page.
pub(super) fn page(operation: Operation, columns: &[&str]) -> Operation {
    let limit = json!({"type": "integer", "minimum": 1});
    let sort = json!({"type": "string", "enum": columns, "default": columns[0]});
    let order = json!({"type": "string", "enum": ["asc", "desc"], "default": "asc"});
    let text = || json!({"type": "string"});
    operation
        .query(
            "limit",
            limit,
            "The most rows, up to 200; with it the reply is a page.",
        )
        .query("offset", count(), "With a limit: rows to skip.")
        .query(
            "sort",
            sort,
            "With a limit: the column that decides the order.",
        )
        .query("order", order, "With a limit: smallest or largest first.")
        .query("q", text(), "With a limit: names have to contain this.")
        .query(
            "prefix",
            text(),
            "With a limit: topics have to begin with this.",
        )
}

fn count() -> Value {
    json!({"type": "integer", "minimum": 0})
}
