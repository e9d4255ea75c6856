//! Consuming without a socket, and dead letters.

use super::position;
use crate::openapi::schema::{any, count, flag, list, object, reference, text, texts};
use serde_json::{Value, json};

pub(super) fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("Pull", pull()),
        ("Pulled", pulled()),
        ("Delivery", delivery()),
        ("Context", context()),
        ("Ack", ack()),
        ("Nack", nack()),
        ("Modack", modack()),
        ("SettleReply", settle_reply()),
        ("FailedId", failed_id()),
        ("PublishedEvent", published_event()),
        ("PublishAtomic", publish_atomic()),
        ("PublishAtomicReply", publish_atomic_reply()),
        ("DeadLetter", dead_letter()),
        ("Attempt", attempt()),
        ("Redrive", redrive()),
        ("RedriveReply", redrive_reply()),
        ("RemovedLetters", removed_letters()),
    ]
}

fn names() -> Vec<(&'static str, Value)> {
    vec![("topic", text("The topic.")), ("group", text("The group."))]
}

/// `id` or `ids`: one of them has to be there.
fn ids() -> Vec<(&'static str, Value)> {
    vec![
        ("id", text("The event.")),
        ("ids", texts("The events, where they are several.")),
    ]
}

fn pull() -> Value {
    let mut optional = position();
    optional.extend([
        ("max", count("The most events.")),
        ("wait_ms", count("How long to wait for the first.")),
        ("ackTimeoutMs", count("How long the leases are.")),
        (
            "upcast",
            flag("Events of earlier versions of the topic's schema come as ones of the latest."),
        ),
    ]);
    object(
        "What is wanted; `from` and its fields place a new group.",
        names(),
        optional,
    )
}

fn pulled() -> Value {
    let mut fields = names();
    fields.extend([
        ("count", count("How many are here.")),
        (
            "events",
            list("The events with their leases.", &reference("Delivery")),
        ),
    ]);
    object("Leased events.", fields, vec![])
}

fn delivery() -> Value {
    let fields = vec![
        ("event", reference("Record")),
        ("ctx", reference("Context")),
    ];
    object("An event with its lease.", fields, vec![])
}

fn context() -> Value {
    object(
        "The circumstances of a delivery.",
        vec![
            (
                "attempt",
                count("The number of this delivery of the event, from 1."),
            ),
            (
                "maxAttempts",
                count("After how many failed deliveries it is a dead letter."),
            ),
            ("ack_deadline_ms", count("How long the lease is.")),
        ],
        vec![(
            "shadow",
            flag("The group is a shadow, which is fed what another group gets."),
        )],
    )
}

fn ack() -> Value {
    let mut optional = ids();
    let publish = list(
        "What is published in the same step: both happen or neither.",
        &reference("Publish"),
    );
    optional.push(("publish", publish));
    object("Events that are done, as id or ids.", names(), optional)
}

fn publish_atomic() -> Value {
    let mut events = list("The events, in their order.", &reference("Publish"));
    events["minItems"] = json!(1);
    events["maxItems"] = json!(10_000);
    object(
        "Events that are stored as a whole or not at all.",
        vec![("publish", events)],
        vec![],
    )
}

fn publish_atomic_reply() -> Value {
    let events = list("In the order of the request.", &reference("PublishedEvent"));
    object("Where they are.", vec![("published", events)], vec![])
}

fn nack() -> Value {
    let mut optional = ids();
    optional.extend([
        ("reason", text("Why, for the history of a dead letter.")),
        (
            "delay_ms",
            count("When they come again; after a backoff where it does not say."),
        ),
    ]);
    object("Events that failed, as id or ids.", names(), optional)
}

fn modack() -> Value {
    let mut optional = ids();
    optional.push((
        "extend_ms",
        count("The deadline from now, at least a second; else as long as leases are."),
    ));
    object("Events that take longer, as id or ids.", names(), optional)
}

fn settle_reply() -> Value {
    object(
        "What became of the ids.",
        vec![("settled", count("For how many it was done."))],
        vec![
            (
                "failed",
                list("For which it was not.", &reference("FailedId")),
            ),
            (
                "published",
                list(
                    "What was published in the same step.",
                    &reference("PublishedEvent"),
                ),
            ),
        ],
    )
}

fn failed_id() -> Value {
    object(
        "An event for which something could not be done.",
        vec![
            ("id", text("Its id.")),
            ("code", reference("Code")),
            ("error", text("Why.")),
        ],
        vec![],
    )
}

fn published_event() -> Value {
    object(
        "An event that was published.",
        vec![
            ("topic", text("Its topic.")),
            ("id", text("Its id.")),
            ("seq", count("Its position.")),
        ],
        vec![("duplicate", flag("The topic held this id already."))],
    )
}

fn dead_letter() -> Value {
    let mut fields = names();
    fields.extend([
        ("original", reference("Record")),
        ("err", text("Why the last delivery failed.")),
        ("ts", count("When it was given up, in epoch milliseconds.")),
        ("attempts", count("How often it was delivered.")),
        (
            "history",
            list(
                "The last of these deliveries, oldest first.",
                &reference("Attempt"),
            ),
        ),
    ]);
    object("The payload of a dead letter.", fields, vec![])
}

fn attempt() -> Value {
    object(
        "A delivery that failed.",
        vec![
            ("member", text("Who had it.")),
            (
                "start",
                count("When it was delivered, in epoch milliseconds."),
            ),
            ("end", count("When it failed.")),
            ("reason", text("Why.")),
        ],
        vec![],
    )
}

fn redrive() -> Value {
    object(
        "Which dead letters are sent round again.",
        vec![("topic", text("The topic that the events came from."))],
        vec![
            ("ids", texts("The letters; all where none are named.")),
            (
                "all",
                json!({"const": true, "description": "All letters, said aloud."}),
            ),
            ("dry_run", flag("Only say what would happen.")),
            (
                "rate",
                json!({"type": "integer", "minimum": 1, "description": "Events per second at most."}),
            ),
            (
                "payload",
                any("Goes out instead of the original's payload; only for a single id."),
            ),
            ("force", flag("Also what has been sent round before.")),
            (
                "to",
                json!({"enum": ["group", "all"], "default": "group", "description": "Whether only the group it died in gets it."}),
            ),
        ],
    )
}

fn removed_letters() -> Value {
    object(
        "What became of dead letters that were to be removed.",
        vec![
            ("topic", text("The topic.")),
            ("removed", count("How many were removed.")),
            ("unknown", texts("Ids that no letter has.")),
        ],
        vec![],
    )
}

fn redrive_reply() -> Value {
    object(
        "What became of dead letters.",
        vec![
            ("topic", text("The topic.")),
            ("dry_run", flag("Whether it only says what would happen.")),
            ("matched", count("How many letters were meant.")),
            ("redriven", count("How many were sent round again.")),
            (
                "failed",
                list("The letters that were not.", &reference("FailedId")),
            ),
        ],
        vec![(
            "failed_left_out",
            count("How many more there were than are listed."),
        )],
    )
}
