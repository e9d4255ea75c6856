//! Events, and the replies to publishing and reading them.

use crate::openapi::schema::{any, count, flag, list, object, reference, text, text_map, texts};
use serde_json::{Value, json};

pub(super) fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("Record", record()),
        (
            "PublishOptions",
            object(
                "What a publisher may say about an event.",
                vec![],
                options(),
            ),
        ),
        ("AlsoPublish", also_publish()),
        ("Publish", publish()),
        ("Envelope", envelope()),
        ("PublishReply", publish_reply()),
        ("ScheduleReply", schedule_reply()),
        ("PendingSchedule", pending_schedule()),
        ("SchedulePage", schedule_page()),
        ("BatchReply", batch_reply()),
        ("BulkReply", bulk_reply()),
        ("LineError", line_error()),
        ("EventPage", event_page()),
        ("FindPage", find_page()),
        ("LatestPage", latest_page()),
        ("ListPage", list_page()),
        ("StateItem", state_item()),
        ("DiffPage", diff_page()),
        ("ChangedKey", changed_key()),
    ]
}

fn options() -> Vec<(&'static str, Value)> {
    vec![
        (
            "id",
            text("The publisher's own id, 1 to 64 printable ASCII characters."),
        ),
        (
            "ts",
            count("The publisher's own time in epoch milliseconds."),
        ),
        (
            "key",
            text("For compaction, ordering and partitioning, up to 512 bytes."),
        ),
        ("headers", text_map("Up to 64 entries and 16 KiB.")),
        ("tags", texts("Free labels.")),
        (
            "caused_by",
            texts("Ids of the events that caused this one."),
        ),
        ("sid", text("Boot or session id of the publisher.")),
        (
            "expect_seq",
            count("Publish only if this is the topic's last position, 0 where it never had one."),
        ),
        (
            "expect_key_seq",
            count(
                "Publish only if the last event of the key is at this position, 0 where there is none.",
            ),
        ),
        (
            "deliver_at",
            count("Publish at this time, in epoch milliseconds."),
        ),
        ("delay_ms", count("Publish after so many milliseconds.")),
        (
            "every",
            text(
                "Publish again and again: an interval (`30s`) or a cron line with an optional time zone (`0 9 * * 1-5 Europe/Berlin`).",
            ),
        ),
        (
            "catch_up",
            flag("Publish also for each time that was missed while the server was down."),
        ),
        (
            "also_publish",
            list(
                "Publish the event in other versions to other topics too, all or none.",
                &reference("AlsoPublish"),
            ),
        ),
    ]
}

fn record() -> Value {
    object(
        "A stored event.",
        vec![
            (
                "id",
                text("UUIDv7 made by the bus, or the publisher's own."),
            ),
            ("ts", count("Epoch milliseconds.")),
            ("topic", text("The topic.")),
            ("seq", count("The position in the topic, from 1.")),
            ("payload", any("As its publisher wrote it.")),
        ],
        vec![
            ("sid", text("Boot or session id of the publisher.")),
            ("key", text("For compaction, ordering and partitioning.")),
            ("partition", count("Only where the topic is partitioned.")),
            ("headers", text_map("Names and values.")),
            (
                "caused_by",
                texts("Ids of the events that caused this one."),
            ),
            ("tags", texts("Free labels.")),
        ],
    )
}

fn publish() -> Value {
    object(
        "An event to be published.",
        vec![
            ("topic", text("Where to.")),
            ("payload", any("The payload.")),
        ],
        vec![("opts", reference("PublishOptions"))],
    )
}

fn also_publish() -> Value {
    object(
        "An event in another version, for another topic. All else it shares with the one it is published with.",
        vec![
            ("topic", text("Where to.")),
            ("payload", any("The payload.")),
        ],
        Vec::new(),
    )
}

fn envelope() -> Value {
    let payload = vec![("payload", any("The payload."))];
    object(
        "A payload with what its publisher says about it.",
        payload,
        options(),
    )
}

fn publish_reply() -> Value {
    object(
        "The position of an event.",
        vec![
            ("id", text("Its id.")),
            ("seq", count("Its position.")),
            ("ts", count("Its time in epoch milliseconds.")),
            ("topic", text("Its topic.")),
            (
                "durability",
                text("What the reply promises: `fsync`, `os`, or what the store really does."),
            ),
        ],
        vec![
            (
                "duplicate",
                flag("The topic held this id already; this is the first event."),
            ),
            (
                "published",
                list(
                    "What `also_publish` published with it.",
                    &reference("PublishReply"),
                ),
            ),
        ],
    )
}

fn batch_reply() -> Value {
    let events = list("In the order of the batch.", &reference("PublishReply"));
    object(
        "What became of a batch of CloudEvents.",
        vec![("events", events)],
        vec![],
    )
}

fn diff_page() -> Value {
    object(
        "What changed between two times.",
        vec![
            ("topic", text("The topic.")),
            ("from", count("The earlier time.")),
            ("to", count("The later time.")),
            (
                "added",
                list(
                    "Keys that came, as they were at the later time.",
                    &reference("StateItem"),
                ),
            ),
            (
                "changed",
                list("Keys that have another payload.", &reference("ChangedKey")),
            ),
            (
                "deleted",
                list(
                    "Keys that went, as they were at the earlier time.",
                    &reference("StateItem"),
                ),
            ),
            (
                "next",
                json!({"type": ["string", "null"], "description": "The key to go on from, with `after`. A page may be empty and have a next one."}),
            ),
        ],
        vec![],
    )
}

fn changed_key() -> Value {
    object(
        "A key that has another payload.",
        vec![
            ("key", text("The key.")),
            ("from", reference("StateItem")),
            ("to", reference("StateItem")),
        ],
        vec![],
    )
}

fn schedule_reply() -> Value {
    object(
        "An event that is to be published later.",
        vec![
            (
                "id",
                text(
                    "The id that it will have, or that its ids will begin with where it is repeated.",
                ),
            ),
            ("scheduled", flag("Always true: it has no position yet.")),
            ("due", count("When it is due, in epoch milliseconds.")),
            ("topic", text("Where it goes.")),
        ],
        vec![(
            "duplicate",
            flag("It was scheduled before under this id; this is the first one."),
        )],
    )
}

fn pending_schedule() -> Value {
    object(
        "An event that waits to be published.",
        vec![
            ("id", text("Its id.")),
            ("topic", text("Where it goes.")),
            ("due", count("When it is due next, in epoch milliseconds.")),
            ("payload", any("As its publisher wrote it.")),
        ],
        vec![
            ("every", text("How it is repeated.")),
            ("catch_up", flag("Missed times are published too.")),
            ("key", text("The event's key.")),
        ],
    )
}

fn schedule_page() -> Value {
    object(
        "Some of the schedules, in the order of their ids.",
        vec![
            (
                "schedules",
                list(
                    "There may be none although there are more pages.",
                    &reference("PendingSchedule"),
                ),
            ),
            (
                "next",
                json!({"type": ["string", "null"], "description": "The id to go on from, with `after`."}),
            ),
        ],
        vec![],
    )
}

fn bulk_reply() -> Value {
    object(
        "What became of the lines of a body.",
        vec![
            ("topic", text("Where they went.")),
            ("lines", count("Lines that had something on them.")),
            ("published", count("Stored now.")),
            ("duplicates", count("Stored before.")),
            ("failed", count("Bad lines.")),
            ("errors", list("The bad lines.", &reference("LineError"))),
        ],
        vec![
            (
                "errors_left_out",
                count("How many more bad lines there were than are listed."),
            ),
            ("stopped", reference("ErrorBody")),
        ],
    )
}

fn line_error() -> Value {
    object(
        "A line that was not stored.",
        vec![
            ("line", count("Its number, from 1.")),
            ("code", reference("Code")),
            ("error", text("What is wrong with it.")),
        ],
        vec![],
    )
}

fn event_page() -> Value {
    let next = json!({
        "type": ["integer", "null"],
        "description": "The position to go on from, with `from=seq`; null where there is no more.",
    });
    object(
        "Some events of a topic.",
        vec![
            ("topic", text("The topic.")),
            ("count", count("How many are here.")),
            ("events", list("The records.", &reference("Record"))),
            ("next", next),
        ],
        vec![],
    )
}

fn find_page() -> Value {
    let next = json!({
        "type": ["integer", "null"],
        "description": "The `after_seq` of the next page; null where there is none.",
    });
    object(
        "Events with a header or a cause.",
        vec![
            ("topic", text("The topic.")),
            (
                "from_seq",
                count("The first position that the index covers."),
            ),
            ("count", count("How many are here.")),
            ("events", list("The records.", &reference("Record"))),
            ("next", next),
        ],
        vec![],
    )
}

fn latest_page() -> Value {
    let next = json!({
        "type": ["string", "null"],
        "description": "The key to go on from, with `after`; null where there is no more.",
    });
    object(
        "The latest events of some keys.",
        vec![
            ("topic", text("The topic.")),
            ("count", count("How many are here.")),
            ("events", list("The records.", &reference("Record"))),
            ("next", next),
        ],
        vec![],
    )
}

fn list_page() -> Value {
    object(
        "States of keys.",
        vec![
            ("topic", text("The topic.")),
            ("total", count("How many keys fit, on all pages together.")),
            ("offset", count("How many of them come before this page.")),
            ("count", count("How many are here.")),
            (
                "items",
                list("In the order of keys.", &reference("StateItem")),
            ),
            (
                "next",
                json!({"type": ["integer", "null"], "description": "The `offset` of the next page."}),
            ),
        ],
        vec![],
    )
}

fn state_item() -> Value {
    object(
        "The state of a key: what its latest event said.",
        vec![
            ("key", text("The key.")),
            ("payload", any("As its publisher wrote it.")),
            ("ts", count("The event's time in epoch milliseconds.")),
            ("seq", count("The event's position.")),
        ],
        vec![(
            "id",
            text("The event's id; a state that is known from a snapshot only has none."),
        )],
    )
}
