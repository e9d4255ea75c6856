//! Spans of events that are part of a trace, as an OpenTelemetry collector gets them.

use super::client::PATIENCE;
use super::collector::{attribute, collector, receive};
use super::server::Running;
use prombus_gateway::GatewayOptions;
use prombus_gateway::spans::{Exporter, MAX_QUEUED_SPANS, Spans};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::timeout;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

async fn server(spans: Spans) -> Running {
    let options = GatewayOptions {
        spans: Some(spans),
        ..GatewayOptions::default()
    };
    Running::with(options).await
}

async fn publish(server: &Running, flags: &str) -> Value {
    let trace_parent = format!("00-{TRACE}-{PARENT}-{flags}");
    let headers = [("traceparent", trace_parent.as_str())];
    let mut client = server.client().await;
    let reply = client.request("POST", "/publish/orders", &headers, b"1");
    reply.await.ok()
}

async fn until(condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, waiting).await.expect("in time");
}

#[tokio::test]
async fn publish_delivery_and_acknowledgement_are_spans_of_the_events_trace() {
    let (url, mut received) = collector(&[503, 200]).await;
    let (spans, exporter) = Exporter::start(&url).expect("a URL");
    let server = server(spans.clone()).await;
    let published = publish(&server, "01").await;
    // Neither is recorded: one is not sampled, the other is in no trace.
    publish(&server, "00").await;
    server.fill("orders", 1).await;
    let mut client = server.client().await;
    let body = json!({"topic": "orders", "group": "billing", "from": "earliest", "max": 3});
    let pulled = client.post("/pull", &body.to_string()).await.ok();
    assert_eq!(pulled["count"], 3);
    let id = &published["id"];
    let ack = json!({"topic": "orders", "group": "billing", "ids": [id]});
    client.post("/ack", &ack.to_string()).await.ok();
    let all = receive(&mut received, 3).await;
    let names: Vec<&str> = all
        .iter()
        .filter_map(|span| span["name"].as_str())
        .collect();
    assert_eq!(names, ["publish orders", "deliver orders", "ack orders"]);
    for (span, kind) in all.iter().zip([4, 5, 5]) {
        assert_eq!(span["traceId"], TRACE);
        assert_eq!(span["parentSpanId"], PARENT);
        assert_eq!(span["kind"], kind);
        assert_eq!(span["spanId"].as_str().map(str::len), Some(16));
        assert_eq!(attribute(span, "messaging.message.id")["stringValue"], *id);
        assert_eq!(attribute(span, "prombus.seq")["intValue"], "1");
        let time = |field: &str| span[field].as_str().expect("text").parse::<u128>();
        let (start, end) = (time("startTimeUnixNano"), time("endTimeUnixNano"));
        assert!(start.expect("a number") <= end.expect("a number"));
        assert!(span.get("status").is_none());
    }
    let group = attribute(&all[1], "messaging.consumer.group.name");
    assert_eq!(group["stringValue"], "billing");
    until(|| spans.counts().exported.get() == 3).await;
    let metrics = client.get("/metrics").await;
    let metrics = String::from_utf8(metrics.body).expect("text");
    assert!(metrics.contains("prombus_otlp_spans_total{result=\"exported\"} 3\n"));
    assert!(metrics.contains("prombus_otlp_spans_total{result=\"dropped\"} 0\n"));
    exporter.stop().await;
}

#[tokio::test]
async fn a_negative_acknowledgement_and_a_failed_publish_are_errors() {
    let (url, mut received) = collector(&[200]).await;
    let (spans, exporter) = Exporter::start(&url).expect("a URL");
    let server = server(spans).await;
    let published = publish(&server, "01").await;
    let mut client = server.client().await;
    let body = json!({"topic": "orders", "group": "g", "from": "earliest", "max": 1});
    client.post("/pull", &body.to_string()).await.ok();
    let nack = json!({"topic": "orders", "group": "g", "ids": [published["id"]]});
    client.post("/nack", &nack.to_string()).await.ok();
    let trace_parent = format!("00-{TRACE}-{PARENT}-01");
    let headers = [("traceparent", trace_parent.as_str())];
    let refused = client.request("POST", "/publish/orders?expect_seq=7", &headers, b"2");
    assert_ne!(refused.await.head.status, 200);
    // What waits is sent before the end.
    exporter.stop().await;
    let all = receive(&mut received, 4).await;
    let errors = all.iter().filter(|span| span["status"]["code"] == 2);
    let names: Vec<&str> = errors.filter_map(|span| span["name"].as_str()).collect();
    assert_eq!(names, ["nack orders", "publish orders"]);
}

#[tokio::test]
async fn a_collector_that_is_away_costs_spans_and_nothing_else() {
    // A port that nobody listens on.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    let (spans, exporter) = Exporter::start(&url).expect("a URL");
    let server = server(spans.clone()).await;
    let trace_parent = format!("00-{TRACE}-{PARENT}-01");
    let mut client = server.client().await;
    let headers = [("traceparent", trace_parent.as_str())];
    let count = MAX_QUEUED_SPANS + 1_000;
    for _ in 0..count {
        let reply = client.request("POST", "/publish/orders", &headers, b"1");
        assert_eq!(reply.await.head.status, 200);
    }
    // The queue is full, and one batch is in the hands of the task.
    until(|| spans.counts().dropped.get() > 0).await;
    assert_eq!(spans.counts().exported.get(), 0);
    exporter.stop().await;
    assert_eq!(
        server.bus().topic("orders").expect("a topic").tail_seq,
        count as u64
    );
}

#[tokio::test]
async fn a_collector_that_refuses_is_not_asked_again_for_the_same_spans() {
    let (url, mut received) = collector(&[400, 200]).await;
    let (spans, exporter) = Exporter::start(&url).expect("a URL");
    let server = server(spans.clone()).await;
    publish(&server, "01").await;
    until(|| spans.counts().dropped.get() == 1).await;
    publish(&server, "01").await;
    let all = receive(&mut received, 1).await;
    assert_eq!(attribute(&all[0], "prombus.seq")["intValue"], "2");
    exporter.stop().await;
}

/// A `traceparent` whose trace has this number.
fn traced(number: u32) -> Value {
    json!({"traceparent": format!("00-{number:032x}-{PARENT}-01")})
}

#[tokio::test]
async fn events_that_are_published_together_have_their_spans() {
    let (url, mut received) = collector(&[200]).await;
    let (spans, exporter) = Exporter::start(&url).expect("a URL");
    let server = server(spans).await;
    let mut client = server.client().await;
    let ndjson = [("content-type", "application/x-ndjson")];
    let lines = [
        json!({"payload": 1, "headers": traced(1)}),
        json!({"payload": 2}),
        json!({"payload": 3, "headers": traced(2), "expect_seq": 99}),
    ];
    let lines = lines.map(|line| line.to_string()).join("\n");
    let reply = client.request(
        "POST",
        "/publish/bulk?envelope=1",
        &ndjson,
        lines.as_bytes(),
    );
    assert_eq!(reply.await.ok()["published"], 2);
    let record = json!({"id": "old-1", "ts": 5, "payload": 1, "headers": traced(3)}).to_string();
    let reply = client.request("POST", "/import?topic=imported", &ndjson, record.as_bytes());
    assert_eq!(reply.await.ok()["published"], 1);
    let event = |number: u32| {
        let parent = &traced(number)["traceparent"];
        json!({"specversion": "1.0", "id": number.to_string(), "source": "/s", "type": "made", "traceparent": parent, "data": 1})
    };
    let cloud = [("content-type", "application/cloudevents-batch+json")];
    let batch = json!([event(4), event(5)]).to_string();
    let reply = client.request("POST", "/publish/cloud", &cloud, batch.as_bytes());
    reply.await.ok();
    let versions = json!({"payload": 1, "headers": traced(6), "also_publish": [{"topic": "v2", "payload": 2}]});
    let versions = versions.to_string();
    client.post("/publish/v1?envelope=1", &versions).await.ok();
    let pull = json!({"topic": "bulk", "group": "g", "from": "earliest", "max": 2});
    let pulled = client.post("/pull", &pull.to_string()).await.ok();
    let ack = json!({
        "topic": "bulk", "group": "g", "ids": [pulled["events"][1]["event"]["id"]],
        "publish": [{"topic": "results", "payload": 1, "opts": {"headers": traced(7)}}],
    });
    client.post("/ack", &ack.to_string()).await.ok();
    exporter.stop().await;
    let all = receive(&mut received, 9).await;
    let published = all.iter().filter(|span| span["kind"] == 4);
    let mut seen: Vec<(u32, String, bool)> = published
        .map(|span| {
            let trace = span["traceId"].as_str().expect("text");
            let number = u32::from_str_radix(trace, 16).expect("a number");
            let name = span["name"].as_str().expect("text").to_owned();
            (number, name, span["status"]["code"] == 2)
        })
        .collect();
    seen.sort();
    let expected = [
        (1, "publish bulk", false),
        (2, "publish bulk", true),
        (3, "publish imported", false),
        (4, "publish cloud", false),
        (5, "publish cloud", false),
        (6, "publish v1", false),
        (6, "publish v2", false),
        (7, "publish results", false),
    ];
    let expected = expected.map(|(number, name, failed)| (number, name.to_owned(), failed));
    assert_eq!(seen, expected);
}
