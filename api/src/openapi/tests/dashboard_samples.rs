//! Every body of the dashboard's routes with all its fields.

use crate::http::*;
use serde_json::Value;
use serde_json::value::RawValue;

fn text() -> String {
    "x".to_owned()
}

fn reply(reply: &impl serde::Serialize) -> Value {
    serde_json::to_value(reply).unwrap()
}

/// By the name of their schema; a topic and a group as they are elsewhere.
pub(super) fn samples(
    topic: TopicInfo,
    group: GroupInfo,
    record: &RawValue,
) -> Vec<(&'static str, Value)> {
    let finding = Finding {
        kind: FindingKind::StuckGroup,
        level: Level::Warning,
        sentence: text(),
        topic: Some(text()),
        group: Some(text()),
        reason: Some(Reason::NoMembers),
    };
    let topic_row = TopicRow {
        info: topic,
        last_ts: Some(1),
        per_minute: 1,
        recent: vec![1],
    };
    let group_row = GroupRow {
        info: group,
        reason: Reason::Flowing,
        sentence: text(),
        oldest_unacked_ms: 1,
        recent_lag: vec![1],
    };
    let attention = Attention {
        now_ms: 1,
        findings: vec![finding.clone()],
    };
    let topics = TopicPage {
        total: 1,
        offset: 0,
        topics: vec![topic_row.clone()],
    };
    let groups = GroupPage {
        total: 1,
        offset: 0,
        groups: vec![group_row.clone()],
    };
    vec![
        ("History", reply(&history())),
        ("NodeList", reply(&nodes())),
        ("Node", reply(&nodes().nodes[0])),
        ("ServerStatus", reply(&status())),
        ("StoreSummary", reply(&status().store)),
        (
            "SharedLogSummary",
            reply(&status().store.and_then(|store| store.shared_log)),
        ),
        ("ProjectorSummary", reply(&status().projectors[0])),
        ("Access", reply(&status().access)),
        ("Attention", reply(&attention)),
        ("Finding", reply(&finding)),
        ("Histogram", reply(&histogram())),
        ("TopicPage", reply(&topics)),
        ("TopicRow", reply(&topic_row)),
        ("GroupPage", reply(&groups)),
        ("GroupRow", reply(&group_row)),
        ("Causes", reply(&causes(record))),
    ]
}

fn history() -> History {
    let one = || vec![1];
    History {
        now_ms: 1,
        interval_ms: 1,
        ts: one(),
        published: one(),
        delivered: one(),
        acked: one(),
        nacked: one(),
        redelivered: one(),
        dead_lettered: one(),
        rate_limited: one(),
        fsyncs: one(),
        fsync_p50_us: one(),
        fsync_p99_us: one(),
        connections: one(),
        store_bytes: one(),
        lag: one(),
    }
}

fn nodes() -> NodeList {
    NodeList {
        now_ms: 1,
        nodes: vec![Node {
            node: text(),
            url: Some(text()),
            is_this: true,
            beat_ms: 1,
            groups: 1,
            relayed_groups: 1,
            applied: 1,
            lag: 1,
        }],
    }
}

fn status() -> ServerStatus {
    ServerStatus {
        version: text(),
        now_ms: 1,
        started_ms: 1,
        requires_token: true,
        max_payload_bytes: 1,
        access: Access {
            subject: Some(text()),
            expires_ms: Some(1),
            publish: Allowed::All,
            subscribe: Allowed::Part,
            admin: Allowed::Nothing,
        },
        store: Some(StoreSummary {
            url: text(),
            durability: text(),
            bytes: 1,
            topics: 1,
            damage: 1,
            failed: Some(text()),
            shared_log: Some(SharedLogSummary {
                first: 1,
                last: 1,
                applied: 1,
                bytes: Some(1),
                snapshot: 1,
                snapshot_ms: 1,
                bytes_since_snapshot: 1,
            }),
        }),
        projectors: vec![ProjectorSummary {
            name: text(),
            input: text(),
            output: text(),
            position: 1,
            lag: 1,
            emitted: 1,
            rejected: 1,
            last_rejection: Some(text()),
            standby: true,
            error: Some(text()),
        }],
    }
}

fn histogram() -> Histogram {
    Histogram {
        topic: text(),
        from_ts: 1,
        to_ts: 1,
        bucket_ms: 1,
        counts: vec![1],
    }
}

fn causes(record: &RawValue) -> Causes {
    Causes {
        event: record.to_owned(),
        causes: vec![record.to_owned()],
        unknown: vec![text()],
        effects: vec![record.to_owned()],
        complete: true,
    }
}
