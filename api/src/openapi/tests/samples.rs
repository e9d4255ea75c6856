//! Every body with all its fields.

use crate::code::Code;
use crate::frames::{Ack, Ids, Modack, Nack, Publish};
use crate::http::*;
use crate::options::{AlsoPublish, Filter, Ordering, Position, PublishOptions};
use crate::record::Record;
use serde_json::Value;
use serde_json::value::RawValue;

/// By the name of their schema.
pub(super) fn samples() -> Vec<(&'static str, Value)> {
    let mut samples = event_samples();
    samples.extend(topic_samples());
    samples.extend(super::schema_samples::samples());
    samples.extend(super::shadow_samples::samples(positions()));
    samples.extend(group_samples());
    samples.extend(settling_samples());
    samples.extend(super::atomic_samples::samples(publish()));
    samples.extend(pull_samples());
    samples.extend(dead_letter_samples());
    samples.extend(super::dashboard_samples::samples(
        topic(),
        group(),
        &raw_record(),
    ));
    samples
}

fn body<'a>(body: &impl Body<'a>) -> Value {
    serde_json::from_slice(&body.to_json()).unwrap()
}

fn reply(reply: &impl serde::Serialize) -> Value {
    serde_json::to_value(reply).unwrap()
}

fn text() -> String {
    "x".to_owned()
}

fn publish_options() -> PublishOptions<'static> {
    PublishOptions {
        id: Some("x".into()),
        ts: Some(1),
        key: Some("x".into()),
        headers: vec![(text(), text())],
        tags: vec![text()],
        caused_by: vec![text()],
        sid: Some("x".into()),
        expect_seq: Some(1),
        expect_key_seq: Some(1),
        deliver_at: Some(1),
        delay_ms: Some(1),
        every: Some("x".into()),
        catch_up: true,
        also_publish: vec![AlsoPublish {
            topic: "x".into(),
            payload: "{}".into(),
        }],
    }
}

fn publish() -> Publish<'static> {
    Publish {
        topic: "x".into(),
        payload: "{}",
        options: publish_options(),
    }
}

fn record_json() -> Vec<u8> {
    let record = Record {
        id: "x".into(),
        sid: Some("x".into()),
        ts: 1,
        topic: "x".into(),
        seq: 1,
        key: Some("x".into()),
        partition: Some(1),
        headers: vec![(text(), text())],
        payload: "{}",
        caused_by: vec![text()],
        tags: vec![text()],
    };
    let mut out = Vec::new();
    record.write(&mut out);
    out
}

fn raw_record() -> Box<RawValue> {
    serde_json::from_slice(&record_json()).unwrap()
}

fn failed() -> FailedId {
    FailedId::new(text(), Code::UnknownId, text())
}

fn event_samples() -> Vec<(&'static str, Value)> {
    let mut bulk = BulkReply {
        topic: text(),
        stopped: Some(error()),
        ..Default::default()
    };
    bulk.fail(1, Code::BadJson, text(), 1);
    bulk.fail(2, Code::BadJson, text(), 1);
    let page = EventPage {
        topic: text(),
        count: 1,
        events: vec![raw_record()],
        next: None,
    };
    let published = |published: Vec<PublishReply>| PublishReply {
        id: text(),
        seq: 1,
        ts: 1,
        topic: text(),
        duplicate: true,
        durability: text(),
        published,
    };
    let published = published(vec![published(Vec::new())]);
    vec![
        ("Record", serde_json::from_slice(&record_json()).unwrap()),
        ("PublishOptions", body(&publish_options())),
        (
            "AlsoPublish",
            body(&publish_options().also_publish.remove(0)),
        ),
        ("Publish", body(&publish())),
        (
            "Envelope",
            body(&Envelope {
                payload: "1",
                options: publish_options(),
            }),
        ),
        ("PublishReply", reply(&published)),
        ("ScheduleReply", reply(&schedule_reply())),
        ("PendingSchedule", reply(&pending_schedule())),
        ("SchedulePage", reply(&schedule_page())),
        ("LineError", reply(&bulk.errors[0])),
        ("BulkReply", reply(&bulk)),
        (
            "BatchReply",
            reply(&BatchReply {
                events: vec![published],
            }),
        ),
        ("EventPage", reply(&page)),
        ("FindPage", reply(&find_page())),
        ("LatestPage", reply(&latest_page())),
        ("ListPage", list_page()),
        ("StateItem", list_page()["items"][0].clone()),
        ("DiffPage", reply(&diff_page())),
        ("ChangedKey", reply(&diff_page().changed[0])),
        (
            "EventPage",
            reply(&EventPage {
                next: Some(2),
                ..page
            }),
        ),
        ("ErrorBody", reply(&error())),
        ("Health", reply(&Health::failing(text()))),
        ("Health", reply(&Health::ok())),
        (
            "Health",
            reply(&Health {
                damage: vec![text()],
                ..Health::ok()
            }),
        ),
    ]
}

fn list_page() -> Value {
    let mut out = Vec::new();
    let item = StateText {
        key: "x",
        payload: "{}",
        ts: 1,
        seq: 1,
        id: Some("x"),
    };
    write_list_page(&mut out, "x", (3, 1), [item]);
    let page: ListPage = serde_json::from_slice(&out).unwrap();
    reply(&page)
}

fn find_page() -> FindPage {
    FindPage {
        topic: text(),
        from_seq: 1,
        count: 1,
        events: vec![raw_record()],
        next: Some(1),
    }
}

fn latest_page() -> LatestPage {
    LatestPage {
        topic: text(),
        count: 1,
        events: vec![raw_record()],
        next: Some(text()),
    }
}

fn diff_page() -> DiffPage {
    let item = || serde_json::from_value::<StateItem>(list_page()["items"][0].clone()).unwrap();
    DiffPage {
        topic: text(),
        from: 1,
        to: 2,
        added: vec![item()],
        changed: vec![ChangedKey {
            key: text(),
            from: item(),
            to: item(),
        }],
        deleted: vec![item()],
        next: Some(text()),
    }
}

fn schedule_reply() -> ScheduleReply {
    ScheduleReply {
        id: text(),
        scheduled: true,
        due: 1,
        topic: text(),
        duplicate: true,
    }
}

fn pending_schedule() -> PendingSchedule {
    PendingSchedule {
        id: text(),
        topic: text(),
        due: 1,
        every: Some(text()),
        catch_up: true,
        key: Some(text()),
        payload: RawValue::from_string("1".to_owned()).unwrap(),
    }
}

fn schedule_page() -> SchedulePage {
    SchedulePage {
        schedules: vec![pending_schedule()],
        next: Some(text()),
    }
}

fn error() -> ErrorBody {
    ErrorBody {
        retry_after_ms: Some(1),
        actual: Some(1),
        ..ErrorBody::new(Code::RateLimited, text())
    }
}

fn topic_config() -> TopicConfig {
    TopicConfig {
        durability: Durability::Os,
        retention: Some(Age { ms: 1 }),
        max_bytes: Some(1),
        max_events: Some(1),
        compaction: true,
        snapshot_topic: Some(text()),
        snapshot_interval: Some(Age { ms: 1 }),
        partitions: Some(1),
        schema: Some("backward".to_owned()),
    }
}

fn topic_samples() -> Vec<(&'static str, Value)> {
    let config = topic_config();
    let topics = vec![topic()];
    vec![
        ("TopicConfig", body(&config)),
        ("TopicConfig", reply(&config)),
        ("TopicInfo", reply(&topic())),
        ("TopicList", reply(&TopicList { topics })),
    ]
}

fn topic() -> TopicInfo {
    TopicInfo {
        topic: text(),
        first_seq: 1,
        tail_seq: 1,
        events: 1,
        bytes: 1,
        config: topic_config(),
    }
}

fn group() -> GroupInfo {
    let member = MemberInfo {
        name: text(),
        paused: true,
        in_flight: 1,
        max_in_flight: 1,
        room: 1,
        oldest_in_flight_ms: 1,
        partitions: vec![1],
        node: Some(text()),
    };
    GroupInfo {
        topic: text(),
        group: text(),
        created_ms: 1,
        cursor: 1,
        tail: 1,
        lag: 1,
        skipped: 1,
        ack_timeout_ms: 1,
        max_attempts: 1,
        ordering: Ordering::Key,
        paused: true,
        paused_since_ms: Some(1),
        partitions: Some(1),
        members: vec![member],
        in_flight: 1,
        waiting: 1,
        oldest_in_flight_ms: 1,
        counts: GroupCounts::default(),
    }
}

fn named_group() -> Value {
    body(&NamedGroup {
        topic: text(),
        group: text(),
    })
}

fn seek_reply() -> Value {
    reply(&SeekReply {
        topic: text(),
        group: text(),
        dry_run: true,
        cursor: 1,
        redelivered: 1,
        skipped: 1,
        beyond_tail: true,
    })
}

fn group_samples() -> Vec<(&'static str, Value)> {
    let cursor = Cursor {
        topic: text(),
        group: text(),
        last_id: Some(text()),
        last_ts: Some(1),
        last_seq: 1,
    };
    let lag = Lag {
        topic: text(),
        group: text(),
        lag: 1,
        lag_ms: 1,
        last_cursor: cursor.clone(),
        tail: 1,
    };
    let lane = LaneInfo {
        blocked_by_seq: 1,
        blocked_by_id: Some(text()),
        key: Some(text()),
        waiting: 1,
        due_ms: Some(1),
    };
    let mut samples = vec![
        (
            "GroupList",
            reply(&GroupList {
                topic: text(),
                groups: vec![group()],
            }),
        ),
        ("GroupInfo", reply(&group())),
        ("MemberInfo", reply(&group().members[0])),
        ("GroupCounts", reply(&group().counts)),
        ("Cursor", reply(&cursor)),
        (
            "CursorList",
            reply(&CursorList {
                topic: text(),
                cursors: vec![cursor],
            }),
        ),
        ("Lag", reply(&lag)),
        ("SeekReply", seek_reply()),
        ("GroupChange", group_change()),
        ("NamedGroup", named_group()),
        ("LaneInfo", reply(&lane)),
    ];
    for to in positions() {
        samples.push((
            "Seek",
            body(&Seek {
                topic: text(),
                group: text(),
                to,
                dry_run: true,
            }),
        ));
    }
    for reason in REASONS {
        samples.push((
            "Explanation",
            reply(&Explanation {
                sentence: text(),
                reason: *reason,
                lanes: vec![lane.clone()],
                next_retry_ms: Some(1),
                damage: vec![text()],
                node: Some(text()),
                group: group(),
            }),
        ));
    }
    samples
}

fn group_change() -> Value {
    body(&GroupChange {
        topic: text(),
        group: text(),
        max_attempts: Some(1),
        ordering: Some(Ordering::Key),
        filter: Some(Filter {
            key: Some(text()),
            headers: [(text(), text())].into(),
            tags: vec![text()],
        }),
    })
}

const REASONS: &[Reason] = &[
    Reason::CaughtUp,
    Reason::NoMembers,
    Reason::Paused,
    Reason::InFlightCapReached,
    Reason::WindowFull,
    Reason::WaitingForBackoff,
    Reason::KeyLanesBlocked,
    Reason::AllInFlight,
    Reason::RateLimited,
    Reason::Flowing,
];

fn positions() -> [Position; 5] {
    [
        Position::Latest,
        Position::Earliest,
        Position::Ts(1),
        Position::AfterId(text()),
        Position::Seq(1),
    ]
}

fn settling_samples() -> Vec<(&'static str, Value)> {
    let published = PublishedEvent {
        topic: text(),
        id: text(),
        seq: 1,
        duplicate: true,
    };
    let settled = SettleReply {
        settled: 1,
        failed: vec![failed()],
        published: vec![published.clone()],
    };
    let mut samples = vec![
        ("SettleReply", reply(&settled)),
        ("FailedId", reply(&failed())),
        ("PublishedEvent", reply(&published)),
    ];
    for ids in [Ids::One("x".into()), Ids::Many(vec!["x".into()])] {
        let (topic, group) = (|| "x".into(), || "x".into());
        let ack = Ack {
            topic: topic(),
            group: group(),
            ids: ids.clone(),
            publish: vec![publish()],
        };
        let reason = Some("x".into());
        let nack = Nack {
            topic: topic(),
            group: group(),
            ids: ids.clone(),
            reason,
            delay_ms: Some(1),
        };
        let modack = Modack {
            topic: topic(),
            group: group(),
            ids,
            extend_ms: Some(1),
        };
        samples.extend([
            ("Ack", body(&ack)),
            ("Nack", body(&nack)),
            ("Modack", body(&modack)),
        ]);
    }
    samples
}

fn pull_samples() -> Vec<(&'static str, Value)> {
    let context = Context {
        attempt: 1,
        max_attempts: 5,
        ack_deadline_ms: 1,
        shadow: true,
    };
    let delivery = Delivery {
        event: raw_record(),
        ctx: context,
    };
    let pulled = Pulled {
        topic: text(),
        group: text(),
        count: 1,
        events: vec![delivery.clone()],
    };
    let mut samples = vec![
        ("Pulled", reply(&pulled)),
        ("Delivery", reply(&delivery)),
        ("Context", reply(&context)),
    ];
    for start in positions() {
        let pull = Pull {
            topic: text(),
            group: text(),
            max: Some(1),
            wait_ms: Some(1),
            ack_timeout_ms: Some(1),
            start: Some(start),
            upcast: Some(true),
        };
        samples.push(("Pull", body(&pull)));
    }
    samples
}

fn dead_letter_samples() -> Vec<(&'static str, Value)> {
    let attempt = Attempt {
        member: text(),
        start: 1,
        end: 1,
        reason: text(),
    };
    let letter = DeadLetter {
        topic: text(),
        group: text(),
        original: raw_record(),
        err: text(),
        ts: 1,
        attempts: 1,
        history: vec![attempt.clone()],
    };
    let redrive = Redrive {
        topic: "x".into(),
        ids: Some(vec!["x".into()]),
        dry_run: true,
        rate: Some(1),
        payload: Some("{}"),
        force: true,
        to_all: true,
    };
    let all = Redrive {
        ids: None,
        payload: None,
        ..redrive.clone()
    };
    let removed = RemovedLetters {
        topic: text(),
        removed: 1,
        unknown: vec![text()],
    };
    let redriven = RedriveReply {
        topic: text(),
        failed: vec![failed()],
        failed_left_out: 1,
        ..Default::default()
    };
    vec![
        ("DeadLetter", reply(&letter)),
        ("Attempt", reply(&attempt)),
        ("Redrive", body(&redrive)),
        ("Redrive", body(&all)),
        ("RedriveReply", reply(&redriven)),
        ("RemovedLetters", reply(&removed)),
    ]
}
