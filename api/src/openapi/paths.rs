//! The routes.

use super::cloudevents_paths as cloudevents;
use super::dashboard_paths as dashboard;
use super::operation::{Operation, reference, yes};
use super::schema_paths as schemas;
use crate::http::{DiffQuery, GroupQuery, LatestQuery, SchedulesQuery};
use crate::options::PublishOptions;
use prombus_interface::schemas::{Flag, Group, Key, Topic};
use serde_json::{Value, json};

/// All paths with their operations.
pub(super) fn all() -> Value {
    json!({
        "/publish": {"post": publish_atomic()},
        "/publish/{topic}": {"post": publish()},
        "/cloudevents": {"post": cloudevents::publish()},
        "/import": {"post": import()},
        "/replay": {"get": replay()},
        "/export": {"get": export()},
        "/find": {"get": find()},
        "/latest-by-key": {"get": latest_by_key()},
        "/snap/{topic}/{key}": {"get": snap()},
        "/list/{topic}": {"get": list_states()},
        "/diff/{topic}": {"get": diff()},
        "/sse": {"get": sse()},
        "/topics": {"get": list_topics()},
        "/topics/{topic}": {"get": get_topic(), "put": put_topic(), "delete": delete_topic()},
        "/topics/{topic}/purge": {"post": purge_topic()},
        "/topics/{topic}/snapshot": {"post": snapshot_topic()},
        "/schemas": {"get": schemas::list()},
        "/schemas/{topic}": {"get": schemas::get(), "post": schemas::register(), "delete": schemas::remove()},
        "/schemas/{topic}/check": {"post": schemas::check()},
        "/schemas/{topic}/{version}": {"get": schemas::get_version(), "delete": schemas::remove_version()},
        "/groups": {"get": list_groups(), "patch": change_group(), "delete": remove_group()},
        "/groups/pause": {"post": pause_group()},
        "/groups/resume": {"post": resume_group()},
        "/groups/shadow": {"post": shadow_group()},
        "/cursors": {"get": list_cursors(), "post": seek()},
        "/cursors/undo": {"post": undo_seek()},
        "/lag": {"get": lag()},
        "/explain": {"get": explain()},
        "/dlq": {"get": dead_letters(), "delete": remove_dead_letters()},
        "/dlq/redrive": {"post": redrive()},
        "/schedules": {"get": list_schedules()},
        "/schedules/{id}": {"delete": remove_schedule()},
        "/pull": {"post": pull()},
        "/ack": {"post": settle("ack", "Acknowledge events, and publish in the same step", "Ack")},
        "/nack": {"post": settle("nack", "Give events back; they come again", "Nack")},
        "/modack": {"post": settle("modack", "Hold events longer", "Modack")},
        "/history": {"get": dashboard::history()},
        "/histogram": {"get": dashboard::histogram()},
        "/attention": {"get": dashboard::attention()},
        "/causes": {"get": dashboard::causes()},
        "/status": {"get": dashboard::status()},
        "/access": {"get": dashboard::access()},
        "/nodes": {"get": dashboard::nodes()},
        "/metrics": {"get": metrics()},
        "/healthz": {"get": health("healthz", "Whether the server is well")},
        "/livez": {"get": health("livez", "Whether the process is alive")},
        "/readyz": {"get": health("readyz", "Whether the store takes writes")},
        "/openapi.json": {"get": openapi()},
    })
}

fn publish() -> Value {
    let mut content = cloudevents::bodies();
    content["application/json"] =
        json!({"schema": {"description": "The payload, or with `envelope` an Envelope."}});
    content["application/x-ndjson"] = json!({"schema": {"type": "string", "description": "A payload on each line, or an Envelope."}});
    Operation::new("publish", "Publish one payload, many as lines, or CloudEvents")
        .topic_in_path()
        .fields_of::<PublishOptions>(&["key", "id", "ts", "sid"])
        .query::<String>("tags", "Free labels, with commas between.")
        .fields_of::<PublishOptions>(&["expect_seq", "expect_key_seq", "deliver_at", "delay_ms", "every"])
        .query::<Flag>("catch_up", "Publish also for each time that was missed while the server was down.")
        .query::<Flag>("envelope", "The body, with NDJSON each line, is an envelope around its payload.")
        .header("Idempotency-Key", "The same as `id`.")
        .header("If-Match", "The ETag of the key's `/snap`, or its seq in quotes: the same as `expect_key_seq`.")
        .header("traceparent", "Becomes a header of the event, like `tracestate` and everything that begins with `x-`.")
        .bodies(content)
        .replies("200", "Stored at the topic's durability.", json!({
            "application/json": {"schema": {"oneOf": [reference("PublishReply"), reference("ScheduleReply"), reference("BulkReply"), reference("BatchReply")]}},
        }))
        .build()
}

fn diff() -> Value {
    Operation::new("diff", "What changed between two times")
        .topic_in_path()
        .parameters::<DiffQuery>()
        .reply("The keys that were added, changed or deleted. Where compaction or retention took what would tell, it is `history_gone`.", "DiffPage")
        .build()
}

fn list_schedules() -> Value {
    Operation::new("listSchedules", "The events that wait to be published")
        .parameters::<SchedulesQuery>()
        .reply(
            "The schedules that the caller may read or administer, in the order of their ids.",
            "SchedulePage",
        )
        .build()
}

fn remove_schedule() -> Value {
    Operation::new(
        "removeSchedule",
        "Remove an event that waits to be published",
    )
    .id_in_path("The schedule's id.")
    .reply(
        "The schedule that was removed. One that was published meanwhile is `unknown_id`.",
        "PendingSchedule",
    )
    .build()
}

fn import() -> Value {
    Operation::new("import", "Store exported records, keeping their id and ts")
        .required::<Topic>("topic", "Where to.")
        .bodies(json!({"application/x-ndjson": {
            "schema": {"type": "string", "description": "An Envelope, or a whole Record, on each line."},
        }}))
        .reply("What became of the lines. Running it twice changes nothing.", "BulkReply")
        .build()
}

const UPCAST: &str = "Events of earlier versions of the topic's schema come as ones of the latest.";

fn replay() -> Value {
    Operation::new("replay", "Read stored events")
        .required::<Topic>("topic", "The topic.")
        .position(&["earliest", "ts", "afterId", "seq"])
        .limit(Some(1_000), "The most events of one page, which has up to 10,000.")
        .query::<Flag>("upcast", UPCAST)
        .replies(
            "200",
            "Events in the order of their positions. A list of CloudEvents has where to go on in the header `X-Next-Seq`.",
            cloudevents::with_list(json!({"application/json": {"schema": reference("EventPage")}})),
        )
        .build()
}

fn export() -> Value {
    Operation::new("export", "Stream stored events, ascending by ts and then seq")
        .required::<Topic>("topic", "The topic.")
        .query::<u64>("fromTs", "The earliest time.")
        .query::<u64>("toTs", "The latest time.")
        .query_of("ndjson", yes(), "A record on each line, or an array.")
        .query::<String>("afterId", "Only what comes after this event.")
        .query::<Key>("key", "Only events with this key.")
        .query::<Flag>("upcast", UPCAST)
        .query::<Flag>("gzip", "The same as `Accept-Encoding: gzip`.")
        .replies("200", "Every event of the range exactly once; gzip on request.", cloudevents::with_list(json!({
            "application/x-ndjson": {"schema": {"type": "string", "description": "A Record on each line, or with `Accept: application/cloudevents+json` a CloudEvent."}},
            "application/json": {"schema": {"type": "array", "items": reference("Record")}},
        })))
        .build()
}

fn find() -> Value {
    let header = json!({"type": "string", "pattern": "^[^:]+:"});
    Operation::new("find", "Events by header or by cause")
        .required::<Topic>("topic", "The topic; it must have `index_headers`.")
        .query_of(
            "header",
            header,
            "`name:value` of a header in `index_headers`.",
        )
        .query::<String>("caused_by", "Events that name this id in `caused_by`.")
        .query::<u64>("after_seq", "Only events behind this position.")
        .limit(
            Some(100),
            "The most events of one page, which has up to 1,000.",
        )
        .reply("Events in the order of their positions.", "FindPage")
        .build()
}

fn latest_by_key() -> Value {
    Operation::new("latestByKey", "The latest event of each key")
        .parameters::<LatestQuery>()
        .reply(
            "One event for each key that has one and was not deleted.",
            "LatestPage",
        )
        .build()
}

fn snap() -> Value {
    let header = |description: &str, kind: &str| json!({"description": description, "schema": {"type": kind}});
    let headers = json!({
        "ETag": header("Changes whenever the state does.", "string"),
        "Cache-Control": header("`private, no-cache`: it may be kept, and has to be asked about each time.", "string"),
        "X-Event-Seq": header("The position of the event that made the state.", "integer"),
        "X-Event-Ts": header("Its time in epoch milliseconds.", "integer"),
        "X-Event-Id": header("Its id; a state that is known from a snapshot only has none.", "string"),
    });
    Operation::new("snap", "The state of one key, now or as it was")
        .topic_in_path()
        .key_in_path()
        .query::<u64>("at", "The state as of this epoch millisecond.")
        .header("If-None-Match", "Answers 304 where the state still has this ETag.")
        .replies(
            "200",
            "The payload of the key's latest event, as it was published. 404 is `unknown_key` where there was none, \
             `deleted_key` where it was deleted; 410 `history_gone` where what was then is not known any more.",
            json!({"application/json": {"schema": {"description": "The payload."}}}),
        )
        .reply_headers("200", headers.clone())
        .replies_nothing("304", "It is what the client has.", headers)
        .build()
}

fn list_states() -> Value {
    let fields = json!({"type": "object", "additionalProperties": {"type": "string"}});
    Operation::new("listStates", "The states of a topic's keys that fit")
        .topic_in_path()
        .query::<u64>("offset", "How many of those that fit are passed over.")
        .limit(Some(100), "The most of one page.")
        .query::<String>("prefix", "Only keys that begin with this.")
        .query::<u64>("at", "The states as of this epoch millisecond.")
        .query_of(
            "fields",
            fields,
            "Each other parameter is a path into the payload, with dots between, and what has to be there: \
             `status=alive`, `owner.name=ann`. A field that is called like a parameter is `payload.limit`.",
        )
        .reply("In the order of keys, with how many fit in all.", "ListPage")
        .build()
}

fn sse() -> Value {
    Operation::new("sse", "Follow a topic as server-sent events")
        .required::<Topic>("topic", "The topic.")
        .position(&["latest", "earliest", "ts", "afterId", "seq"])
        .query::<Flag>("upcast", UPCAST)
        .header("Last-Event-ID", "Goes on behind this event.")
        .replies(
            "200",
            "`id:` is the event's id, `data:` its record, or with `Accept: application/cloudevents+json` the event as a CloudEvent.",
            json!({
                "text/event-stream": {"schema": {"type": "string"}},
            }),
        )
        .build()
}

fn list_topics() -> Value {
    let operation = Operation::new("listTopics", "All topics, or a page of them");
    let columns = ["topic", "events", "bytes", "rate"];
    dashboard::page(operation, &columns)
        .replies(
            "200",
            "In the order of their names, or as the page says.",
            json!({
                "application/json": {"schema": {"anyOf": [reference("TopicList"), reference("TopicPage")]}},
            }),
        )
        .build()
}

fn get_topic() -> Value {
    Operation::new("getTopic", "The current state of a topic")
        .topic_in_path()
        .reply("The topic.", "TopicInfo")
        .build()
}

fn put_topic() -> Value {
    Operation::new("putTopic", "Make a topic, or set how it is kept")
        .topic_in_path()
        .query::<Flag>("force", "Whether the number of partitions may change.")
        .optional_body("TopicConfig")
        .reply("The topic.", "TopicInfo")
        .build()
}

fn delete_topic() -> Value {
    Operation::new("deleteTopic", "Remove a topic, its events and its groups")
        .topic_in_path()
        .empty_reply("It is gone.")
        .build()
}

fn purge_topic() -> Value {
    Operation::new(
        "purgeTopic",
        "Forget all events of a topic; positions go on",
    )
    .topic_in_path()
    .reply("The topic.", "TopicInfo")
    .build()
}

fn snapshot_topic() -> Value {
    Operation::new(
        "snapshotTopic",
        "Bring the snapshot of a topic up to date now",
    )
    .topic_in_path()
    .reply("Up to where it is.", "SnapshotReply")
    .build()
}

fn publish_atomic() -> Value {
    let summary = "Publish events to one topic or several, all of them or none";
    Operation::new("publishAtomic", summary)
        .body("PublishAtomic")
        .reply(
            "All are stored at their topics' durability.",
            "PublishAtomicReply",
        )
        .build()
}

fn remove_group() -> Value {
    Operation::new("removeGroup", "Remove a group; its subscriptions end")
        .required::<Topic>("topic", "The topic.")
        .required::<Group>("group", "The group.")
        .empty_reply("It is gone.")
        .build()
}

fn change_group() -> Value {
    Operation::new(
        "changeGroup",
        "Change what belongs to a group and not to its members",
    )
    .body("GroupChange")
    .reply("The current state of the group.", "GroupInfo")
    .build()
}

fn pause_group() -> Value {
    let summary = "Stop deliveries to all members of a group, also over a restart; leases go on";
    Operation::new("pauseGroup", summary)
        .body("NamedGroup")
        .reply("The current state of the group.", "GroupInfo")
        .build()
}

fn resume_group() -> Value {
    Operation::new("resumeGroup", "Let a paused group go on")
        .body("NamedGroup")
        .reply("The current state of the group.", "GroupInfo")
        .build()
}

fn list_groups() -> Value {
    let operation = Operation::new(
        "listGroups",
        "The groups of a topic, or a page of all groups",
    )
    .query::<Topic>(
        "topic",
        "The topic; all topics where it is left out, which needs a limit.",
    )
    .query::<Group>("group", "Only this group.");
    let columns = [
        "topic",
        "group",
        "lag",
        "oldest",
        "in_flight",
        "redelivered",
        "dead_lettered",
    ];
    dashboard::page(operation, &columns)
        .replies(
            "200",
            "In the order of their names, or as the page says.",
            json!({
                "application/json": {"schema": {"anyOf": [reference("GroupList"), reference("GroupPage")]}},
            }),
        )
        .build()
}

fn list_cursors() -> Value {
    Operation::new("listCursors", "Where the groups of a topic are")
        .parameters::<GroupQuery>()
        .reply("One for each group.", "CursorList")
        .build()
}

fn seek() -> Value {
    Operation::new("seek", "Set a group's cursor, or see what that would do")
        .body("Seek")
        .reply(
            "What was or would be delivered again and passed over.",
            "SeekReply",
        )
        .build()
}

fn shadow_group() -> Value {
    let summary =
        "Make a throwaway group that is fed a part of the topic again, to try a consumer on it";
    Operation::new("shadowGroup", summary)
        .body("Shadow")
        .reply(
            "The group, which is gone when its last member leaves or after its time to live.",
            "ShadowReply",
        )
        .build()
}

fn undo_seek() -> Value {
    let summary = "Set a group's cursor back to where it was before the last seek";
    Operation::new("undoSeek", summary)
        .body("NamedGroup")
        .reply(
            "What is delivered again and passed over. 409 `group_mismatch` where there is no seek to undo, or too much \
             was settled since.",
            "SeekReply",
        )
        .build()
}

fn lag() -> Value {
    Operation::new("lag", "How far behind a group is")
        .required::<Topic>("topic", "The topic.")
        .required::<Group>("group", "The group.")
        .reply("The lag.", "Lag")
        .build()
}

fn explain() -> Value {
    Operation::new("explain", "Why nothing is flowing to a group")
        .required::<Topic>("topic", "The topic.")
        .required::<Group>("group", "The group.")
        .reply("In a sentence and as data.", "Explanation")
        .build()
}

fn dead_letters() -> Value {
    Operation::new("deadLetters", "The dead letters of a topic")
        .required::<Topic>("topic", "The topic that the events came from.")
        .position(&["earliest", "ts", "afterId", "seq"])
        .limit(Some(1_000), "The most events of one page, which has up to 10,000.")
        .reply(
            "Events of `dlq.<topic>`; their payload is a DeadLetter, and `redriven` says whether it was sent again.",
            "EventPage",
        )
        .build()
}

fn remove_dead_letters() -> Value {
    Operation::new("removeDeadLetters", "Remove dead letters of a topic")
        .required::<Topic>("topic", "The topic that the events came from.")
        .query::<String>("ids", "The letters, with commas between.")
        .query::<Flag>("redriven", "Those that were sent to their topic again.")
        .query::<Flag>("all", "All of them.")
        .reply("How many were removed.", "RemovedLetters")
        .build()
}

fn redrive() -> Value {
    Operation::new("redrive", "Send dead letters round again")
        .body("Redrive")
        .reply("What became of them.", "RedriveReply")
        .build()
}

fn pull() -> Value {
    Operation::new("pull", "Lease events without a socket")
        .body("Pull")
        .replies(
            "200",
            "The events with their leases. CloudEvents have them as the extensions `prombusid`, which is the id to \
             acknowledge, `prombusattempt`, `prombusmaxattempts` and `prombusackdeadlinems`.",
            cloudevents::with_list(json!({"application/json": {"schema": reference("Pulled")}})),
        )
        .build()
}

fn settle(id: &str, summary: &str, body: &str) -> Value {
    Operation::new(id, summary)
        .body(body)
        .reply("What became of the ids.", "SettleReply")
        .build()
}

fn metrics() -> Value {
    Operation::new("metrics", "Metrics for Prometheus")
        .replies(
            "200",
            "The metrics.",
            json!({"text/plain": {"schema": {"type": "string"}}}),
        )
        .build()
}

fn health(id: &str, summary: &str) -> Value {
    let content = json!({"application/json": {"schema": reference("Health")}});
    Operation::new(id, summary)
        .replies("200", "It is.", content.clone())
        .replies("503", "It is not, and why.", content)
        .build()
}

fn openapi() -> Value {
    Operation::new("openapi", "This document")
        .replies(
            "200",
            "The document.",
            json!({"application/json": {"schema": {"type": "object"}}}),
        )
        .build()
}
