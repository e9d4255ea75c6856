//! The whole at a glance: history, status, findings, pages of topics and groups.

use crate::openapi::schema::{count, flag, list, object, reference, text, texts, word};
use serde_json::{Value, json};

pub(super) fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("History", history()),
        ("ServerStatus", status()),
        ("StoreSummary", store()),
        ("SharedLogSummary", shared_log()),
        ("ProjectorSummary", projector()),
        ("Access", access()),
        ("NodeList", nodes()),
        ("Node", node()),
        ("Attention", attention()),
        ("Finding", finding()),
        ("Histogram", histogram()),
        ("TopicPage", page("topics", "TopicRow")),
        ("TopicRow", topic_row()),
        ("GroupPage", page("groups", "GroupRow")),
        ("GroupRow", group_row()),
        ("Causes", causes()),
    ]
}

fn counts(description: &str) -> Value {
    list(description, &json!({"type": "integer", "minimum": 0}))
}

fn records(description: &str) -> Value {
    list(description, &reference("Record"))
}

fn history() -> Value {
    object(
        "Samples of the last 15 minutes, oldest first; all lists have the same length. Counts are those since the sample before.",
        vec![
            ("now_ms", count("The server's clock.")),
            ("interval_ms", count("How far samples are apart.")),
            ("ts", counts("When each sample was taken.")),
            ("published", counts("Events stored.")),
            ("delivered", counts("Leases given.")),
            ("acked", counts("Events acknowledged.")),
            ("nacked", counts("Negative acknowledgements.")),
            (
                "redelivered",
                counts("Deliveries that were not the event's first."),
            ),
            (
                "dead_lettered",
                counts("Events written to dead letter topics."),
            ),
            (
                "rate_limited",
                counts("Publishes rejected and deliveries throttled by rate limits."),
            ),
            ("fsyncs", counts("Fsyncs.")),
            (
                "fsync_p50_us",
                counts("Their median in microseconds; 0 where there was none."),
            ),
            (
                "fsync_p99_us",
                counts("Their 99th percentile in microseconds."),
            ),
            ("connections", counts("Open sockets.")),
            ("store_bytes", counts("Bytes of the store.")),
            ("lag", counts("Unsettled positions of all durable groups.")),
        ],
        vec![],
    )
}

fn status() -> Value {
    object(
        "The server in short.",
        vec![
            ("version", text("Its version.")),
            ("now_ms", count("Its clock.")),
            ("started_ms", count("When it was started.")),
            (
                "requires_token",
                flag("Whether callers have to show a token."),
            ),
            ("max_payload_bytes", count("The largest payload.")),
            ("access", reference("Access")),
        ],
        vec![
            ("store", reference("StoreSummary")),
            (
                "projectors",
                list(
                    "The projectors that run in it, for callers that may read or administer all topics.",
                    &reference("ProjectorSummary"),
                ),
            ),
        ],
    )
}

fn projector() -> Value {
    object(
        "A projector in short.",
        vec![
            ("name", text("Its name.")),
            ("input", text("The topic that it reads.")),
            ("output", text("The topic that it emits to.")),
            (
                "position",
                count("The last position of the input whose results are committed."),
            ),
            ("lag", count("How many events of the input are behind it.")),
            ("emitted", count("Events emitted since it first ran.")),
            ("rejected", count("Events that nothing could be made of.")),
            (
                "standby",
                flag("Whether another server runs it, so that this one waits."),
            ),
        ],
        vec![
            (
                "last_rejection",
                text("Why, for the last of those since the server was started."),
            ),
            ("error", text("What keeps it from going on.")),
        ],
    )
}

fn nodes() -> Value {
    object(
        "The servers that share the store.",
        vec![
            ("now_ms", count("The server's clock.")),
            (
                "nodes",
                list(
                    "The nodes; none where the server has its store for itself.",
                    &reference("Node"),
                ),
            ),
        ],
        vec![],
    )
}

fn node() -> Value {
    object(
        "A server that shares its store with others.",
        vec![
            ("node", text("Its number, in hexadecimal digits.")),
            ("is_this", flag("Whether it is the one that replies.")),
            (
                "beat_ms",
                count("When it sent its last beat that is known, by its own clock."),
            ),
            ("groups", count("How many groups it served then.")),
            (
                "relayed_groups",
                count("How many groups it relayed its members of to other nodes then."),
            ),
            (
                "applied",
                count("The last commit of the shared log that was in its copy then."),
            ),
            (
                "lag",
                count("How many commits that it had heard of were not in it yet."),
            ),
        ],
        vec![("url", text("Where its clients reach it."))],
    )
}

fn store() -> Value {
    object(
        "The store in short, for callers that may read or administer all topics.",
        vec![
            ("url", text("Where it is.")),
            ("durability", text("What its durability means, in words.")),
            ("bytes", count("Bytes that it holds.")),
            ("topics", count("Topics in it.")),
            ("damage", count("Findings of damage.")),
        ],
        vec![
            ("failed", text("Why it takes no writes, if it does not.")),
            ("shared_log", reference("SharedLogSummary")),
        ],
    )
}

fn shared_log() -> Value {
    object(
        "The log of commits that several servers share, as this one sees it.",
        vec![
            ("first", count("The first position that it holds.")),
            ("last", count("The last position.")),
            ("applied", count("The last position in this server's copy.")),
            (
                "snapshot",
                count("The position of the newest snapshot; 0 where there is none."),
            ),
            (
                "snapshot_ms",
                count("When that snapshot was stored; 0 where there is none."),
            ),
            (
                "bytes_since_snapshot",
                count("Bytes of commits since the last snapshot was begun."),
            ),
        ],
        vec![("bytes", count("Bytes that it takes, where that is known."))],
    )
}

fn access() -> Value {
    let allowed = |description: &str| word(description, &["all", "part", "nothing"]);
    object(
        "What the caller may do: with all topics, or with those that were asked about.",
        vec![
            ("publish", allowed("Publishing.")),
            ("subscribe", allowed("Reading.")),
            ("admin", allowed("Changing topics and groups.")),
        ],
        vec![
            ("subject", text("Whose token it is.")),
            ("expires_ms", count("When it expires.")),
        ],
    )
}

fn attention() -> Value {
    object(
        "What an operator should look at.",
        vec![
            ("now_ms", count("The server's clock.")),
            (
                "findings",
                list("The worst first; a limited number.", &reference("Finding")),
            ),
        ],
        vec![],
    )
}

fn finding() -> Value {
    let kinds = [
        "store_failing",
        "damage",
        "stuck_group",
        "growing_lag",
        "dead_letters",
        "rate_limited",
        "projector",
    ];
    object(
        "Something an operator should look at.",
        vec![
            ("kind", word("What it is about.", &kinds)),
            (
                "level",
                word("How bad it is.", &["error", "warning", "notice"]),
            ),
            ("sentence", text("For people.")),
        ],
        vec![
            ("topic", text("The topic it is about.")),
            ("group", text("The group it is about.")),
            (
                "reason",
                text("Why a group does not flow, as in Explanation."),
            ),
        ],
    )
}

fn histogram() -> Value {
    object(
        "How many positions a topic got over time, those that retention or compaction took included.",
        vec![
            ("topic", text("The topic.")),
            ("from_ts", count("The beginning of the first bucket.")),
            ("to_ts", count("The end, inclusive.")),
            ("bucket_ms", count("The length of a bucket.")),
            ("counts", counts("Positions in each bucket.")),
        ],
        vec![],
    )
}

fn page(name: &'static str, row: &str) -> Value {
    object(
        "A page of a list.",
        vec![
            ("total", count("How many rows fit, on all pages together.")),
            ("offset", count("Rows that were skipped.")),
            (name, list("The rows.", &reference(row))),
        ],
        vec![],
    )
}

/// The fields of another schema, with more behind them.
fn extended(
    description: &str,
    base: &Value,
    required: Vec<(&'static str, Value)>,
    optional: Vec<(&'static str, Value)>,
) -> Value {
    let mut schema = object(description, required, optional);
    if let (Some(fields), Some(more)) = (
        base["properties"].as_object(),
        schema["properties"].as_object_mut(),
    ) {
        more.extend(fields.clone());
    }
    if let (Some(names), Some(more)) = (
        base["required"].as_array(),
        schema["required"].as_array_mut(),
    ) {
        more.extend(names.iter().cloned());
    }
    schema
}

fn topic_row() -> Value {
    extended(
        "A topic with what it did in the last minutes.",
        &super::topics::info(),
        vec![
            ("per_minute", count("Events of the last minute.")),
            (
                "recent",
                counts(
                    "Events of the last 15 minutes in slots of 10 s, oldest first; empty where there were none.",
                ),
            ),
        ],
        vec![(
            "last_ts",
            count("The time of its newest event that is kept."),
        )],
    )
}

fn group_row() -> Value {
    extended(
        "A group with how it is doing.",
        &super::groups::info(),
        vec![
            ("reason", text("What holds events back, as in Explanation.")),
            ("sentence", text("The same for people.")),
            (
                "oldest_unacked_ms",
                count("The age of the oldest unsettled event."),
            ),
            (
                "recent_lag",
                counts(
                    "Its lag over the last 15 minutes in slots of 10 s, oldest first; empty where it had none.",
                ),
            ),
        ],
        vec![],
    )
}

fn causes() -> Value {
    object(
        "An event, what caused it, and what it caused.",
        vec![
            ("event", reference("Record")),
            (
                "causes",
                records(
                    "The events that its `caused_by` names, as far as they are kept and the caller may read them.",
                ),
            ),
            ("unknown", texts("Ids in `caused_by` that were not found.")),
            (
                "effects",
                records("Events whose `caused_by` names it, among those that were searched."),
            ),
            (
                "complete",
                flag("Whether everything that came after it was searched."),
            ),
        ],
        vec![],
    )
}
