//! Spans as the JSON of OTLP: ids in hexadecimal digits, large numbers as text.

use super::Span;
use serde_json::{Value, json};

/// The status of what went wrong.
const STATUS_ERROR: u32 = 2;

/// The body of `POST /v1/traces`.
pub(super) fn encode(spans: &[Span]) -> Vec<u8> {
    let version = env!("CARGO_PKG_VERSION");
    let body = json!({
        "resourceSpans": [{
            "resource": {
                "attributes": [text("service.name", "prombus"), text("service.version", version)],
            },
            "scopeSpans": [{
                "scope": { "name": "prombus", "version": version },
                "spans": spans.iter().map(span_value).collect::<Vec<_>>(),
            }],
        }],
    });
    body.to_string().into_bytes()
}

fn span_value(span: &Span) -> Value {
    let mut attributes = vec![
        text("messaging.system", "prombus"),
        text("messaging.operation.name", span.operation),
        text("messaging.destination.name", &span.topic),
    ];
    if let Some(group) = &span.group {
        attributes.push(text("messaging.consumer.group.name", group));
    }
    if let Some(id) = &span.id {
        attributes.push(text("messaging.message.id", id));
    }
    if let Some(seq) = span.seq {
        attributes.push(number("prombus.seq", seq));
    }
    if let Some(attempt) = span.attempt {
        attributes.push(number("prombus.attempt", attempt.into()));
    }
    let mut value = json!({
        "traceId": format!("{:032x}", span.parent.trace_id),
        "spanId": format!("{:016x}", span.span_id),
        "parentSpanId": format!("{:016x}", span.parent.span_id),
        "name": format!("{} {}", span.operation, span.topic),
        "kind": span.kind as u32,
        "startTimeUnixNano": nanos(span.start_ms),
        "endTimeUnixNano": nanos(span.end_ms),
        "attributes": attributes,
    });
    if let Some(error) = &span.error {
        value["status"] = json!({ "code": STATUS_ERROR, "message": error });
    }
    value
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn number(key: &str, value: u64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

fn nanos(ms: u64) -> String {
    (u128::from(ms) * 1_000_000).to_string()
}
