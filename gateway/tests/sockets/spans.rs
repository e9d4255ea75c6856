//! Spans of events that are part of a trace and go through sockets.

use crate::collector::{attribute, collector, receive};
use crate::support::{serve_with, settle};
use prombus_gateway::GatewayOptions;
use prombus_gateway::auth::Authenticator;
use prombus_gateway::spans::Exporter;
use serde_json::json;

#[tokio::test]
async fn each_traced_frame_of_a_batch_has_its_spans() {
    let (url, mut received) = collector(&[200]).await;
    let (spans, exporter) = Exporter::start(&url).expect("a URL");
    let options = GatewayOptions {
        spans: Some(spans),
        ..GatewayOptions::default()
    };
    let served = serve_with(Authenticator::off(), options).await;
    let mut socket = served.connect().await;
    socket.subscribe("t", "g", json!({})).await;
    let frame = |number: usize| {
        // One in three is traced, and one is refused in between.
        let headers = match number % 3 {
            0 => json!({"traceparent": format!("00-{:032x}-{:016x}-01", number + 1, 7)}),
            _ => json!({}),
        };
        let topic = if number == 4 { "no topic" } else { "t" };
        json!({"op": "PUBLISH", "topic": topic, "payload": number, "opts": {"headers": headers}})
    };
    let frames: Vec<_> = (0..9).map(frame).collect();
    socket.send(json!(frames)).await;
    for _ in &frames {
        socket.reply().await;
    }
    for _ in 0..8 {
        let event = socket.event().await;
        socket.ask(settle("ACK", &event)).await;
    }
    exporter.stop().await;
    let all = receive(&mut received, 9).await;
    for (number, seq) in [(0, "1"), (3, "4"), (6, "6")] {
        let trace_id = format!("{:032x}", number + 1);
        let of_trace = all.iter().filter(|span| span["traceId"] == *trace_id);
        let mut names = Vec::new();
        for span in of_trace {
            assert_eq!(attribute(span, "prombus.seq")["intValue"], seq);
            assert_eq!(span["parentSpanId"], format!("{:016x}", 7));
            names.push(span["name"].as_str().expect("a name"));
        }
        names.sort_unstable();
        assert_eq!(names, ["ack t", "deliver t", "publish t"], "{number}");
    }
    assert_eq!(all.len(), 9);
}
