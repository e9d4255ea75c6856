//! Groups, their cursors and what holds them up.

use super::position;
use crate::openapi::schema::{count, flag, list, object, reference, text, word};
use serde_json::{Value, json};

pub(super) fn all() -> Vec<(&'static str, Value)> {
    vec![
        (
            "GroupList",
            named_list("groups", "In the order of their names.", "GroupInfo"),
        ),
        ("GroupInfo", info()),
        ("MemberInfo", member()),
        ("GroupCounts", counts()),
        (
            "CursorList",
            named_list("cursors", "One for each group.", "Cursor"),
        ),
        ("Cursor", cursor()),
        ("Lag", lag()),
        ("Seek", seek()),
        ("SeekReply", seek_reply()),
        ("GroupChange", change()),
        ("NamedGroup", object("Which group.", names(), vec![])),
        ("Shadow", shadow()),
        ("ShadowReply", shadow_reply()),
        ("Explanation", explanation()),
        ("LaneInfo", lane()),
    ]
}

fn names() -> Vec<(&'static str, Value)> {
    vec![("topic", text("The topic.")), ("group", text("The group."))]
}

fn named_list(name: &'static str, description: &str, of: &str) -> Value {
    let items = list(description, &reference(of));
    object(
        "Of one topic.",
        vec![("topic", text("The topic.")), (name, items)],
        vec![],
    )
}

pub(super) fn info() -> Value {
    let mut fields = names();
    fields.extend([
        (
            "created_ms",
            count("When it was made, in epoch milliseconds."),
        ),
        (
            "cursor",
            count("The last position before which everything is settled."),
        ),
        ("tail", count("The topic's newest position.")),
        ("lag", count("Positions that are not settled.")),
        (
            "skipped",
            count("Events that were gone before the group saw them."),
        ),
        ("ack_timeout_ms", count("How long its leases are.")),
        (
            "max_attempts",
            count("After how many failed deliveries an event is dead."),
        ),
        (
            "ordering",
            word("In which order it gets events.", &["none", "key"]),
        ),
        (
            "paused",
            flag("Whether the whole group is paused: none of its members is given events."),
        ),
        (
            "members",
            list("Who is subscribed.", &reference("MemberInfo")),
        ),
        ("in_flight", count("Events that are leased.")),
        (
            "waiting",
            count("Events that wait for their next delivery."),
        ),
        (
            "oldest_in_flight_ms",
            count("How long the oldest open lease has been held."),
        ),
        ("counts", reference("GroupCounts")),
    ]);
    let since = count("Since when it is paused, in epoch milliseconds.");
    object(
        "The current state of a group.",
        fields,
        vec![
            ("paused_since_ms", since),
            (
                "partitions",
                count("How many partitions its members share, where it is partitioned."),
            ),
        ],
    )
}

fn member() -> Value {
    object(
        "A member of a group.",
        vec![
            ("name", text("Its name.")),
            ("paused", flag("Whether it asked for a pause.")),
            ("in_flight", count("Events of this group that it holds.")),
            ("max_in_flight", count("How many it may hold.")),
            ("room", count("How many of these are left.")),
            (
                "oldest_in_flight_ms",
                count("How long it has held the event that it holds longest."),
            ),
        ],
        vec![
            (
                "partitions",
                list(
                    "The partitions that it has.",
                    &count("A partition, from 0."),
                ),
            ),
            (
                "node",
                text("The node that it is on, where that is not the one that serves the group."),
            ),
        ],
    )
}

fn counts() -> Value {
    object(
        "What a group has done since the server was started.",
        vec![
            ("delivered", count("Leases given.")),
            (
                "redelivered",
                count("Of these, not the event's first delivery."),
            ),
            ("returned", count("Of these, returned unseen.")),
            ("acked", count("Events acknowledged.")),
            ("nacked", count("Deliveries that were refused.")),
            ("expired", count("Leases that ran out.")),
            (
                "dead_lettered",
                count("Events written to the dead letters."),
            ),
            (
                "given_up",
                count("Events of an ephemeral group dropped after their last attempt."),
            ),
            (
                "filtered",
                count("Events settled unseen because the filter does not want them."),
            ),
        ],
        vec![],
    )
}

fn cursor() -> Value {
    let mut fields = names();
    fields.push((
        "lastSeq",
        count("The last position before which everything is settled."),
    ));
    let at_cursor = vec![
        (
            "lastId",
            text("The id of the event at the cursor, where it is still there."),
        ),
        ("lastTs", count("Its time.")),
    ];
    object("A group's last settled position.", fields, at_cursor)
}

fn lag() -> Value {
    let mut fields = names();
    fields.extend([
        ("lag", count("Events that are not settled.")),
        ("lagMs", count("How old the oldest of them is.")),
        ("lastCursor", reference("Cursor")),
        ("tail", count("The topic's newest position.")),
    ]);
    object("How far behind a group is.", fields, vec![])
}

fn seek() -> Value {
    let mut optional = position();
    optional.push(("dry_run", flag("Only say what would happen.")));
    object("Where a group's cursor is set to.", names(), optional)
}

fn filter() -> Value {
    let strings = serde_json::json!({"type": "string"});
    let headers = serde_json::json!({
        "type": "object",
        "description": "Headers that an event has, with exactly these values.",
        "additionalProperties": {"type": "string"},
    });
    let fields = vec![
        ("key", text("A pattern that the key matches.")),
        ("headers", headers),
        ("tags", list("Tags that an event has.", &strings)),
    ];
    object("Which events it wants; empty for all.", vec![], fields)
}

fn change() -> Value {
    let optional = vec![
        (
            "maxAttempts",
            count("After how many failed deliveries an event is dead."),
        ),
        (
            "ordering",
            word("In which order it gets events.", &["none", "key"]),
        ),
        ("filter", filter()),
    ];
    object("What belongs to a group, changed.", names(), optional)
}

fn seek_reply() -> Value {
    let mut fields = names();
    fields.extend([
        ("dry_run", flag("Whether it only says what would happen.")),
        ("cursor", count("The last settled position after it.")),
        (
            "redelivered",
            count("Settled positions that are delivered again."),
        ),
        (
            "skipped",
            count("Unsettled positions that are passed over."),
        ),
        (
            "beyond_tail",
            flag("Whether the position was beyond the tail, so that the cursor is at the tail."),
        ),
    ]);
    object("What a seek does.", fields, vec![])
}

fn explanation() -> Value {
    const REASONS: &[&str] = &[
        "caught_up",
        "no_members",
        "paused",
        "in_flight_cap_reached",
        "window_full",
        "waiting_for_backoff",
        "key_lanes_blocked",
        "all_in_flight",
        "rate_limited",
        "flowing",
    ];
    object(
        "Why nothing is flowing.",
        vec![
            ("sentence", text("For people.")),
            (
                "reason",
                word("The first thing that holds events back.", REASONS),
            ),
            ("group", reference("GroupInfo")),
        ],
        vec![
            (
                "lanes",
                list("Key lanes in which events wait.", &reference("LaneInfo")),
            ),
            (
                "next_retry_ms",
                count("The earliest moment an event that failed comes back."),
            ),
            (
                "damage",
                list(
                    "Damage that took events of the topic.",
                    &text("Where, what, and which positions."),
                ),
            ),
            (
                "node",
                text("The node that serves the group, where several share the store and one does."),
            ),
        ],
    )
}

fn lane() -> Value {
    object(
        "A key lane in which events wait.",
        vec![
            (
                "blocked_by_seq",
                count("The position of the event they wait for."),
            ),
            ("waiting", count("How many wait.")),
        ],
        vec![
            ("blocked_by_id", text("Its id.")),
            ("key", text("The key.")),
            (
                "due_ms",
                count("When it is due, where it waits for its retry itself."),
            ),
        ],
    )
}

fn shadow() -> Value {
    let mut optional = position();
    let pace = json!({
        "oneOf": [{"type": "string", "enum": ["original", "max"]}, {"type": "number", "exclusiveMinimum": 0}],
        "description": "With the time between events that there was, as fast as members take them, or that much faster; \
                        `original` by default.",
    });
    optional.extend([
        (
            "to",
            count("The last position; without it the group follows the topic."),
        ),
        ("pace", pace),
        (
            "ttl",
            text("After how long it is gone, such as `30m`; `1h` by default."),
        ),
    ]);
    object(
        "The group whose settings a shadow has, and what it is fed: from the oldest event unless `from` says otherwise.",
        names(),
        optional,
    )
}

fn shadow_reply() -> Value {
    let mut required = names();
    required.extend([
        ("original", text("The group whose settings it has.")),
        ("from_seq", count("The first position that it is fed.")),
        ("ttl_ms", count("After how many milliseconds it is gone.")),
    ]);
    object(
        "A shadow group; `group` is the name by which members subscribe.",
        required,
        vec![("to_seq", count("The last position, where there is one."))],
    )
}
