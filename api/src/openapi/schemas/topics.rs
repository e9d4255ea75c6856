//! Topics and how they are kept.

use crate::openapi::schema::{count, flag, list, object, reference, text, word};
use serde_json::Value;

pub(super) fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("TopicConfig", config()),
        ("TopicInfo", info()),
        ("SnapshotReply", snapshot_reply()),
        (
            "TopicList",
            object(
                "All topics.",
                vec![(
                    "topics",
                    list("In the order of their names.", &reference("TopicInfo")),
                )],
                vec![],
            ),
        ),
    ]
}

fn config() -> Value {
    object(
        "How a topic is kept. What is left out gets its default; an unknown setting is rejected.",
        vec![],
        vec![
            (
                "durability",
                word(
                    "When a publish is acknowledged: after fsync, or after the write.",
                    &["fsync", "os"],
                ),
            ),
            (
                "retention",
                text("Events older than this are forgotten: `30s`, `12h`, `3d`."),
            ),
            (
                "max_bytes",
                count("The oldest events are forgotten while there are more bytes than this."),
            ),
            (
                "max_events",
                count("The oldest events are forgotten while there are more than this."),
            ),
            (
                "compaction",
                flag("Only the latest event of each key has to be kept."),
            ),
            (
                "snapshot_topic",
                text("Where the latest state of each key is published from time to time."),
            ),
            ("snapshot_interval", text("How often that happens: `30s`.")),
            (
                "partitions",
                count("How many partitions its keys are spread over."),
            ),
            (
                "schema",
                word(
                    "What a new version of its schema has to be beside the earlier ones; `backward` where it is not \
                     said. Left out in a request, it stays as it is. The schemas themselves are at `/schemas`.",
                    super::registry::MODES,
                ),
            ),
        ],
    )
}

fn snapshot_reply() -> Value {
    object(
        "Up to where a topic's snapshot is.",
        vec![
            ("topic", text("The topic.")),
            ("seq", count("The position.")),
        ],
        vec![],
    )
}

pub(super) fn info() -> Value {
    object(
        "The current state of a topic.",
        vec![
            ("topic", text("Its name.")),
            (
                "first_seq",
                count("The oldest position that may still be read."),
            ),
            (
                "tail_seq",
                count("The newest position; 0 before the first event."),
            ),
            ("events", count("How many are kept.")),
            ("bytes", count("About how many bytes they take.")),
            ("config", reference("TopicConfig")),
        ],
        vec![],
    )
}
