//! What is published atomically, and snapshots that are made at once.

use crate::frames::Publish;
use crate::http::{Body as _, PublishAtomic, PublishAtomicReply, PublishedEvent, SnapshotReply};
use serde_json::{Value, json};

/// By the name of their schema.
pub(super) fn samples(publish: Publish<'_>) -> Vec<(&'static str, Value)> {
    let atomic = PublishAtomic {
        publish: vec![publish],
    };
    let published = PublishedEvent {
        topic: "x".to_owned(),
        id: "x".to_owned(),
        seq: 1,
        duplicate: true,
    };
    let reply = PublishAtomicReply {
        published: vec![published],
    };
    let snapshot = SnapshotReply {
        topic: "x".to_owned(),
        seq: 1,
    };
    vec![
        (
            "PublishAtomic",
            serde_json::from_slice(&atomic.to_json()).unwrap(),
        ),
        ("PublishAtomicReply", json!(reply)),
        ("SnapshotReply", json!(snapshot)),
    ]
}
