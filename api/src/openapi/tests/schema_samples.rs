//! Every body of the routes of schemas with all its fields.

use crate::http::*;
use serde_json::{Value, json};

fn text() -> String {
    "x".to_owned()
}

fn reply(reply: &impl serde::Serialize) -> Value {
    serde_json::to_value(reply).unwrap()
}

/// By the name of their schema.
pub(super) fn samples() -> Vec<(&'static str, Value)> {
    let mode = || "full_transitive".to_owned();
    let summary = SchemaSummary {
        topic: text(),
        compatibility: mode(),
        latest: 1,
        versions: vec![1],
    };
    let version = SchemaVersion {
        version: 1,
        ts: 1,
        schema: json!({}),
    };
    let finding = SchemaFinding {
        path: text(),
        rule: text(),
        detail: text(),
        proven: true,
    };
    let failing = FailingEvent {
        id: text(),
        seq: 1,
        path: text(),
        reason: text(),
    };
    let group = AffectedGroup {
        group: text(),
        members: 1,
        failing_ahead: 1,
    };
    let retained = RetainedEvents {
        checked: 1,
        failing: 1,
        first_failing: vec![failing.clone()],
        groups: vec![group.clone()],
    };
    let schemas = TopicSchemas {
        topic: text(),
        compatibility: mode(),
        latest: 1,
        versions: vec![version.clone()],
    };
    let registered = RegisteredSchema {
        topic: text(),
        version: 1,
        unchanged: true,
        compatibility: mode(),
    };
    let check = SchemaCheck {
        topic: text(),
        compatible: false,
        compatibility: mode(),
        latest: Some(1),
        reason: Some(text()),
        findings: vec![finding.clone()],
        retained: Some(retained.clone()),
    };
    vec![
        ("SchemaSummary", reply(&summary)),
        (
            "SchemaList",
            reply(&SchemaList {
                schemas: vec![summary],
            }),
        ),
        ("SchemaVersion", reply(&version)),
        ("TopicSchemas", reply(&schemas)),
        ("RegisteredSchema", reply(&registered)),
        ("SchemaFinding", reply(&finding)),
        ("FailingEvent", reply(&failing)),
        ("AffectedGroup", reply(&group)),
        ("RetainedEvents", reply(&retained)),
        ("SchemaCheck", reply(&check)),
    ]
}
