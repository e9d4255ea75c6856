//! What a session counts.

use crate::support::{serve, settle};
use serde_json::json;

#[tokio::test]
async fn a_session_counts_what_it_does() {
    let served = serve().await;
    let mut socket = served.connect().await;
    socket
        .subscribe("t", "g", json!({"ackTimeoutMs":60_000}))
        .await;
    for number in 0..4 {
        socket.publish("t", json!(number)).await;
    }
    let frame = json!({"op":"PUBLISH","topic":"t","payload":9,"opts":{"id":"x"}});
    socket.ask(frame.clone()).await;
    assert_eq!(socket.ask(frame).await["duplicate"], true);
    let mut events = Vec::new();
    for _ in 0..5 {
        events.push(socket.event().await);
    }
    let of_group = |name: &str| served.metric(&format!("{name}{{topic=\"t\",group=\"g\"}}"));
    assert_eq!(
        served.metric("events_published_total{topic=\"t\"}"),
        Some(5.0)
    );
    assert_eq!(served.metric("ws_connections"), Some(1.0));
    assert_eq!(of_group("events_delivered_total"), Some(5.0));
    assert_eq!(of_group("ws_inflight"), Some(5.0));
    let samples = served.gateway.bus().group_metrics().await.expect("samples");
    let sample = &samples[0];
    assert_eq!((&*sample.topic, &*sample.group), ("t", "g"));
    assert_eq!(
        (sample.counts.in_flight, sample.lag),
        (5, 5),
        "sockets count too"
    );
    for event in &events[..3] {
        socket.ask(settle("ACK", event)).await;
    }
    socket.ask(settle("ACK", &events[0])).await;
    let mut nack = settle("NACK", &events[3]);
    nack["delay_ms"] = json!(60_000);
    socket.ask(nack).await;
    assert_eq!(
        of_group("events_acked_total"),
        Some(3.0),
        "twice counts once"
    );
    assert_eq!(of_group("events_nacked_total"), Some(1.0));
    assert_eq!(of_group("ws_inflight"), Some(1.0));
    assert_eq!(of_group("delivery_latency_ms_count"), Some(3.0));
    assert_eq!(of_group("delivery_handler_duration_ms_count"), Some(3.0));
    assert!(of_group("subscribe_poll_duration_ms_count").is_some_and(|count| count >= 1.0));
    drop(socket);
    served
        .until("it is gone", |_| {
            served.metric("ws_connections") == Some(0.0)
        })
        .await;
    assert_eq!(of_group("ws_inflight"), Some(0.0));
}

#[tokio::test]
async fn a_lease_that_runs_out_is_not_in_flight_any_more() {
    let served = serve().await;
    let mut socket = served.connect().await;
    socket
        .subscribe(
            "t",
            "g",
            json!({"ackTimeoutMs":20,"maxAttempts":100,"maxInFlight":1}),
        )
        .await;
    socket.publish("t", json!(1)).await;
    for attempt in 1..=3 {
        assert_eq!(socket.event().await["ctx"]["attempt"], attempt);
        assert_eq!(
            served.metric("ws_inflight{topic=\"t\",group=\"g\"}"),
            Some(1.0)
        );
    }
}
