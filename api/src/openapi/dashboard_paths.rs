//! The routes that show the whole at a glance.

use super::operation::{Operation, reference};
use crate::http::{CausesQuery, HistogramQuery, HistoryQuery};
use prombus_interface::schemas::{Group, Topic};
use serde_json::{Value, json};

pub(super) fn history() -> Value {
    Operation::new("history", "Rates and sizes of the last 15 minutes")
        .parameters::<HistoryQuery>()
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
    Operation::new("access", "What the caller may do")
        .query::<Topic>(
            "topic",
            "With this topic or pattern; all topics by default.",
        )
        .query::<Group>("group", "As this group.")
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
    Operation::new("histogram", "How many events a topic got over time")
        .parameters::<HistogramQuery>()
        .reply("Counts by time.", "Histogram")
        .build()
}

pub(super) fn causes() -> Value {
    Operation::new("causes", "What caused an event, and what it caused")
        .parameters::<CausesQuery>()
        .reply("The events around it.", "Causes")
        .build()
}

/// The parameters of a page.
pub(super) fn page(operation: Operation, columns: &[&str]) -> Operation {
    let sort = json!({"type": "string", "enum": columns, "default": columns[0]});
    let order = json!({"type": "string", "enum": ["asc", "desc"], "default": "asc"});
    operation
        .limit(
            None,
            "The most rows, up to 200; with it the reply is a page.",
        )
        .query::<u64>("offset", "With a limit: rows to skip.")
        .query_of(
            "sort",
            sort,
            "With a limit: the column that decides the order.",
        )
        .query_of("order", order, "With a limit: smallest or largest first.")
        .query::<String>("q", "With a limit: names have to contain this.")
        .query::<String>("prefix", "With a limit: topics have to begin with this.")
}
