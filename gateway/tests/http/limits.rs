//! Rate limits over HTTP.

use super::client::head;
use super::server::Running;
use prombus_gateway::GatewayOptions;
use prombus_gateway::limits::{LimitsConfig, Rate};
use prombus_store::ManualClock;
use std::sync::Arc;

fn slow() -> Rate {
    Rate {
        capacity: 2,
        refill_per_sec: 1,
    }
}

#[tokio::test]
async fn publishing_too_fast_on_one_connection() {
    let server = Running::with(GatewayOptions {
        limits: LimitsConfig {
            conn_publish: Some(slow()),
            ..LimitsConfig::default()
        },
        ..GatewayOptions::default()
    })
    .await;
    let mut client = server.client().await;
    client.post("/publish/a", "1").await.ok();
    client.post("/publish/b", "1").await.ok();
    let reply = client.post("/publish/a", "1").await;
    reply.is_error(429, "rate_limited");
    assert_eq!(reply.head.header("retry-after"), Some("1"));
    let retry_after_ms = reply.json()["retry_after_ms"].as_u64();
    assert!(
        retry_after_ms.is_some_and(|ms| (1..=1_000).contains(&ms)),
        "{}",
        reply.text()
    );
    server.client().await.post("/publish/a", "1").await.ok();
    let metrics = client.get("/metrics").await.text();
    assert!(
        metrics.contains(r#"rate_limited_total{limit="conn_publish"} 1"#),
        "{metrics}"
    );
}

#[tokio::test]
async fn publishing_too_fast_to_one_topic() {
    let server = Running::with(GatewayOptions {
        topic_rates: vec![("slow.*".to_owned(), slow())],
        ..GatewayOptions::default()
    })
    .await;
    for _ in 0..2 {
        server
            .client()
            .await
            .post("/publish/slow.a", "1")
            .await
            .ok();
    }
    let mut client = server.client().await;
    client
        .post("/publish/slow.a", "1")
        .await
        .is_error(429, "rate_limited");
    client.post("/publish/slow.b", "1").await.ok();
    client.post("/publish/quick", "1").await.ok();
    assert_eq!(server.bus().topic("slow.a").expect("a topic").tail_seq, 2);
}

#[tokio::test]
async fn many_lines_are_slowed_and_none_is_lost() {
    let rate = Rate {
        capacity: 10,
        refill_per_sec: 1_000,
    };
    let server = Running::with(GatewayOptions {
        topic_rates: vec![("t".to_owned(), rate)],
        ..GatewayOptions::default()
    })
    .await;
    let mut client = server.client().await;
    let ndjson = [("content-type", "application/x-ndjson")];
    for _ in 0..2 {
        let reply = client
            .request("POST", "/publish/t", &ndjson, "1\n".repeat(200).as_bytes())
            .await
            .ok();
        assert_eq!(reply["published"], 200);
    }
    assert_eq!(server.bus().topic("t").expect("a topic").tail_seq, 400);
}

#[tokio::test]
async fn delivery_is_slowed_and_nothing_is_dropped() {
    let rate = Rate {
        capacity: 5,
        refill_per_sec: 100,
    };
    let server = Running::with(GatewayOptions {
        limits: LimitsConfig {
            conn_delivery: Some(rate),
            ..LimitsConfig::default()
        },
        ..GatewayOptions::default()
    })
    .await;
    server.fill("t", 20).await;
    let mut client = server.client().await;
    let body = r#"{"topic":"t","group":"g","from":"earliest","max":20,"wait_ms":10000}"#;
    let (mut pulled, mut pulls) = (0, 0);
    while pulled < 20 {
        let count = client.post("/pull", body).await.ok()["count"].as_u64();
        pulled += count.expect("a count");
        pulls += 1;
        assert!(pulls <= 20);
    }
    assert_eq!(pulled, 20);
    assert!(pulls > 1, "no more than the limit allows at a time");
    let head = head("GET", "/sse?topic=t&from=earliest", &[]);
    client.send(head.as_bytes()).await;
    assert_eq!(client.head().await.status, 200);
    let mut text = String::new();
    while text.matches("id: ").count() < 20 {
        let chunk = client.chunk().await.flatten().expect("more events");
        text += &String::from_utf8(chunk).expect("text");
    }
    let metrics = server.client().await.get("/metrics").await.text();
    assert!(
        !metrics.contains(r#"rate_limited_total{limit="conn_delivery"} 0"#),
        "{metrics}"
    );
}

/// A body of many lines takes what there is and waits; it does not take what others are to have.
#[tokio::test]
async fn many_lines_do_not_overdraw_the_bucket_of_others() {
    let rate = Rate {
        capacity: 10,
        refill_per_sec: 100,
    };
    let server = Running::with(GatewayOptions {
        topic_rates: vec![("t".to_owned(), rate)],
        ..GatewayOptions::default()
    })
    .await;
    let mut bulk = server.client().await;
    let lines = "1\n".repeat(150);
    let length = lines.len().to_string();
    let headers = [
        ("content-type", "application/x-ndjson"),
        ("content-length", length.as_str()),
    ];
    bulk.send(head("POST", "/publish/t", &headers).as_bytes())
        .await;
    bulk.send(lines.as_bytes()).await;
    // What was read is stored while the rest waits for tokens.
    let mut tail = 0;
    for _ in 0..500 {
        tail = server.bus().topic("t").map_or(0, |topic| topic.tail_seq);
        if tail >= 10 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!((10..150).contains(&tail), "{tail}");
    // An empty bucket has its next token after 10 ms; one that 150 lines had overdrawn would need more than a second.
    let reply = server.client().await.post("/publish/t", "2").await;
    if reply.head.status != 200 {
        reply.is_error(429, "rate_limited");
        let retry_after_ms = reply.json()["retry_after_ms"].as_u64().expect("a time");
        assert!(retry_after_ms <= 10, "{retry_after_ms}");
    }
    assert_eq!(bulk.reply(false).await.ok()["published"], 150);
}

#[tokio::test]
async fn a_line_that_gets_no_token_for_long_ends_the_body() {
    let rate = Rate {
        capacity: 2,
        refill_per_sec: 1,
    };
    tokio::time::pause();
    let server = Running::with(GatewayOptions {
        // A token a second, of a clock that stands still.
        clock: Arc::new(ManualClock::at(1_000)),
        topic_rates: vec![("t".to_owned(), rate)],
        ..GatewayOptions::default()
    })
    .await;
    let mut client = server.client().await;
    let ndjson = [("content-type", "application/x-ndjson")];
    let reply = client
        .request("POST", "/publish/t", &ndjson, "1\n".repeat(5).as_bytes())
        .await;
    let body = reply.json();
    assert_eq!(reply.head.status, 429, "{body}");
    assert_eq!((&body["lines"], &body["published"]), (&2.into(), &2.into()));
    assert_eq!(body["stopped"]["code"], "rate_limited");
    assert!(body["stopped"]["retry_after_ms"].as_u64() > Some(0));
    assert_eq!(server.bus().topic("t").expect("a topic").tail_seq, 2);
}

#[tokio::test]
async fn a_wall_clock_that_is_set_neither_freezes_nor_floods_publishing() {
    const HOUR_MS: i64 = 3_600_000;
    let clock = Arc::new(ManualClock::at(10 * HOUR_MS as u64));
    let server = Running::with(GatewayOptions {
        clock: clock.clone(),
        limits: LimitsConfig {
            conn_publish: Some(slow()),
            ..LimitsConfig::default()
        },
        topic_rates: vec![("slow".to_owned(), slow())],
        ..GatewayOptions::default()
    })
    .await;
    let mut client = server.client().await;
    // The first topic is limited by the connection, the second by itself, whatever connection is used.
    for topic in ["any", "slow"] {
        if topic == "slow" {
            client = server.client().await;
        }
        let path = format!("/publish/{topic}");
        client.post(&path, "1").await.ok();
        client.post(&path, "1").await.ok();
        for step_ms in [HOUR_MS, -3 * HOUR_MS, 2 * HOUR_MS] {
            clock.step(step_ms);
            let reply = client.post(&path, "1").await;
            reply.is_error(429, "rate_limited");
            assert_eq!(reply.json()["retry_after_ms"], 1_000, "{}", reply.text());
            clock.step(-step_ms);
            clock.advance(1_000);
            client.post(&path, "1").await.ok();
        }
    }
}
