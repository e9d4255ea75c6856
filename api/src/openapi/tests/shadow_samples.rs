//! The bodies of shadow groups with all their fields.

use crate::http::{Age, Body as _, Pace, Shadow, ShadowReply};
use crate::options::Position;
use serde_json::Value;

/// By the name of their schema.
pub(super) fn samples(positions: impl IntoIterator<Item = Position>) -> Vec<(&'static str, Value)> {
    let name = || "x".to_owned();
    let reply = ShadowReply {
        topic: name(),
        group: name(),
        original: name(),
        from_seq: 1,
        to_seq: Some(1),
        ttl_ms: 1,
    };
    let mut samples = vec![("ShadowReply", serde_json::to_value(&reply).unwrap())];
    for start in positions {
        let shadow = Shadow {
            topic: name(),
            group: name(),
            start: Some(start),
            to: Some(1),
            pace: Some(Pace::Times(2.0)),
            ttl: Some(Age { ms: 1 }),
        };
        let body = serde_json::from_slice(&shadow.to_json()).unwrap();
        samples.push(("Shadow", body));
    }
    samples
}
