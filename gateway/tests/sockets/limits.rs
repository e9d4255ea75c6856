//! Rate limits: publishing over them is refused, delivery is slowed.

use crate::support::{publish, serve_with};
use prombus_gateway::GatewayOptions;
use prombus_gateway::auth::Authenticator;
use prombus_gateway::limits::Rate;
use prombus_store::ManualClock;
use serde_json::json;
use std::sync::Arc;

fn rate(capacity: u32, refill_per_sec: u32) -> Option<Rate> {
    Some(Rate {
        capacity,
        refill_per_sec,
    })
}

#[tokio::test]
async fn publishing_over_the_limit_of_a_connection_is_refused() {
    let mut options = GatewayOptions::default();
    options.limits.conn_publish = rate(5, 1);
    let served = serve_with(Authenticator::off(), options).await;
    let mut socket = served.connect().await;
    let frames: Vec<_> = (0..20).map(|number| publish("t", json!(number))).collect();
    socket.send(json!(frames)).await;
    let mut stored = 0;
    for _ in 0..20 {
        let reply = socket.reply().await;
        if reply["op"] == "OK" {
            stored += 1;
            continue;
        }
        assert_eq!(reply["code"], "rate_limited");
        let retry_after_ms = reply["retry_after_ms"].as_u64().expect("a time");
        assert!((1..=1_000).contains(&retry_after_ms), "{reply}");
    }
    assert!((5..=7).contains(&stored), "{stored}");
    let refused = served.metric(r#"rate_limited_total{limit="conn_publish"}"#);
    assert_eq!(refused, Some(f64::from(20 - stored)));
    assert_eq!(
        served.connect().await.publish("t", json!(1)).await["op"],
        "OK",
        "another connection"
    );
}

#[tokio::test]
async fn publishing_over_the_limit_of_a_topic_is_refused_for_all() {
    let options = GatewayOptions {
        topic_rates: vec![("slow.*".to_owned(), rate(2, 1).expect("a rate"))],
        ..GatewayOptions::default()
    };
    let served = serve_with(Authenticator::off(), options).await;
    let (mut one, mut two) = (served.connect().await, served.connect().await);
    one.publish("slow.a", json!(1)).await;
    two.publish("slow.a", json!(1)).await;
    assert_eq!(
        one.ask(publish("slow.a", json!(1))).await["code"],
        "rate_limited"
    );
    assert_eq!(
        two.ask(publish("slow.a", json!(1))).await["code"],
        "rate_limited"
    );
    one.publish("slow.b", json!(1)).await;
    one.publish("quick", json!(1)).await;
}

#[tokio::test]
async fn delivery_over_the_limit_waits_and_loses_nothing() {
    let mut options = GatewayOptions::default();
    options.limits.conn_delivery = rate(10, 200);
    let served = serve_with(Authenticator::off(), options).await;
    let mut publisher = served.connect().await;
    let frames: Vec<_> = (0..60).map(|number| publish("t", json!(number))).collect();
    publisher.send(json!(frames)).await;
    for _ in 0..60 {
        publisher.reply().await;
    }
    let mut socket = served.connect().await;
    socket.subscribe("t", "g", json!({"from":"earliest"})).await;
    for number in 0..60 {
        assert_eq!(socket.event().await["event"]["payload"], number);
    }
    let slowed = served.metric(r#"rate_limited_total{limit="conn_delivery"}"#);
    assert!(slowed.is_some_and(|slowed| slowed > 0.0), "{slowed:?}");
}

#[tokio::test]
async fn a_wall_clock_that_is_set_neither_freezes_nor_floods_delivery() {
    const HOUR_MS: i64 = 3_600_000;
    let clock = Arc::new(ManualClock::at(10 * HOUR_MS as u64));
    let mut options = GatewayOptions {
        clock: clock.clone(),
        ..GatewayOptions::default()
    };
    options.limits.conn_delivery = rate(1, 100);
    let served = serve_with(Authenticator::off(), options).await;
    let mut socket = served.connect().await;
    for number in 0..5 {
        socket.publish("t", json!(number)).await;
    }
    socket.subscribe("t", "g", json!({"from":"earliest"})).await;
    assert_eq!(socket.event().await["event"]["payload"], 0);
    for (number, step_ms) in [(1, -HOUR_MS), (2, 3 * HOUR_MS), (3, -2 * HOUR_MS), (4, 1)] {
        clock.step(step_ms);
        for _ in 0..20 {
            // The session has had its turn when this is answered, and the socket was not closed for a pong of an hour ago.
            assert_eq!(socket.publish("other", json!(0)).await["op"], "OK");
        }
        assert!(socket.events.is_empty(), "{:?}", socket.events);
        clock.advance(10);
        assert_eq!(socket.event().await["event"]["payload"], number);
    }
}
