//! Tokens: shown in three ways, changed on a live socket, and run out in the middle.

use crate::support::{Served, Socket, publish, serve_with, settle};
use prombus_gateway::GatewayOptions;
use prombus_gateway::auth::{AuthError, Authenticator, Grant, Policy, Secret};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A server whose tokens are lists of scopes, with `|` and how many milliseconds they are good for.
async fn serve_scopes(options: GatewayOptions) -> Served {
    let auth = Authenticator::function(|token| {
        let (scopes, good_for_ms) = match token.split_once('|') {
            Some((scopes, ms)) => (scopes, ms.parse::<u64>().ok()),
            None => (token, None),
        };
        let policy = Policy::from_scopes(scopes.split(' ')).map_err(AuthError::from)?;
        Ok(Grant {
            policy: Arc::new(policy),
            expires_at_ms: good_for_ms.map(|ms| now_ms() + ms),
            subject: Some("tester".into()),
        })
    });
    serve_with(auth, options).await
}

#[allow(
    clippy::disallowed_methods,
    reason = "the server under test runs on the machine's clock"
)]
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("after 1970").as_millis() as u64
}

#[tokio::test]
async fn nothing_is_done_before_a_token_is_shown() {
    let served = serve_scopes(GatewayOptions::default()).await;
    let mut socket = served.connect().await;
    for frame in [
        publish("t", json!(1)),
        json!({"op":"SUBSCRIBE","topic":"t","group":"g"}),
        json!({"op":"UNSUBSCRIBE","topic":"t","group":"g"}),
        json!({"op":"ACK","topic":"t","group":"g","id":"1"}),
        json!({"op":"NACK","topic":"t","group":"g","id":"1"}),
        json!({"op":"MODACK","topic":"t","group":"g","id":"1","extend_ms":1}),
        json!({"op":"PAUSE","topic":"t","group":"g"}),
        json!({"op":"RESUME","topic":"t","group":"g"}),
        json!({"op":"AUTH"}),
    ] {
        assert_eq!(
            socket.ask(frame.clone()).await["code"],
            "unauthorized",
            "{frame}"
        );
    }
    let frames = json!([{"op":"AUTH","token":"publish:**","corr":"1"}, publish("t", json!(1))]);
    socket.send(frames).await;
    assert_eq!(socket.reply().await, json!({"op":"OK","corr":"1"}));
    assert_eq!(socket.reply().await["seq"], 1);
}

#[tokio::test]
async fn a_static_token_is_taken_from_the_request_or_from_auth() {
    let token = Secret::new("s3cret+/=");
    let auth = Authenticator::token(&token).expect("a token");
    let served = serve_with(auth, GatewayOptions::default()).await;
    let address = served.address;
    for (path, headers) in [
        ("/ws", "Authorization: Bearer s3cret+/=\r\n"),
        ("/", "authorization: bearer s3cret+/=\r\n"),
        ("/ws?token=s3cret%2B%2F%3D", ""),
    ] {
        let mut socket = Socket::connect(address, path, headers).await.expect(path);
        assert_eq!(socket.publish("t", json!(1)).await["op"], "OK");
    }
    for (path, headers) in [
        ("/ws", "Authorization: Bearer wrong\r\n"),
        ("/ws?token=wrong", ""),
    ] {
        let answer = Socket::connect(address, path, headers)
            .await
            .err()
            .expect("a refusal");
        assert!(
            answer.starts_with("HTTP/1.1 401") && answer.contains("bad_token"),
            "{answer}"
        );
    }
    let mut socket = served.connect().await;
    assert_eq!(
        socket.ask(json!({"op":"AUTH","token":"wrong"})).await["code"],
        "bad_token"
    );
    let reply = socket
        .ask(json!({"op":"AUTH","token":"s3cret+/=","corr":"a"}))
        .await;
    assert_eq!(reply, json!({"op":"OK","corr":"a"}));
    assert_eq!(
        socket.ask(json!({"op":"AUTH","token":"wrong"})).await["code"],
        "bad_token"
    );
    assert_eq!(
        socket.publish("t", json!(1)).await["op"],
        "OK",
        "the old token still holds"
    );
}

#[tokio::test]
async fn the_policy_says_what_may_be_done() {
    let served = serve_scopes(GatewayOptions::default()).await;
    let mut socket = served.connect().await;
    let token = "publish:a.* subscribe:a.** subscribe:b";
    socket.ask(json!({"op":"AUTH","token":token})).await;
    for (topic, code) in [
        ("a.x", None),
        ("a.x.y", Some("forbidden")),
        ("b", Some("forbidden")),
    ] {
        for _ in 0..2 {
            let reply = socket.ask(publish(topic, json!(1))).await;
            assert_eq!(reply["code"].as_str(), code, "{topic}");
        }
    }
    for (topic, more, code) in [
        ("a.x", json!([]), None),
        ("a.**", json!([]), None),
        ("a.*.z", json!(["b"]), None),
        ("**", json!([]), Some("forbidden")),
        ("*.x", json!([]), Some("forbidden")),
        ("c", json!([]), Some("forbidden")),
        ("b", json!(["a.x", "c"]), Some("forbidden")),
        ("b", json!(["**"]), Some("forbidden")),
    ] {
        let frame = json!({"op":"SUBSCRIBE","topic":topic,"group":"g","opts":{"topics":more}});
        let reply = socket.ask(frame).await;
        assert_eq!(reply["code"].as_str(), code, "{topic} {more}");
    }
}

#[tokio::test]
async fn groups_are_part_of_the_policy() {
    let auth = Authenticator::function(|_| {
        let rules =
            r#"[{"effect":"allow","action":"subscribe","topics":["**"],"groups":["mine.*"]}]"#;
        let policy = Arc::new(Policy::from_json(rules).map_err(AuthError::from)?);
        let grant = Grant::everything();
        Ok(Grant { policy, ..grant })
    });
    let served = serve_with(auth, GatewayOptions::default()).await;
    let mut socket = served.connect().await;
    socket.ask(json!({"op":"AUTH","token":"x"})).await;
    socket.subscribe("t", "mine.1", json!({})).await;
    let other = json!({"op":"SUBSCRIBE","topic":"t","group":"yours"});
    assert_eq!(socket.ask(other).await["code"], "forbidden");
    assert_eq!(
        socket.ask(json!({"op":"SUBSCRIBE","topic":"t"})).await["code"],
        "forbidden"
    );
}

#[tokio::test]
async fn a_fresh_token_keeps_leases_and_ends_what_it_does_not_allow() {
    let served = serve_scopes(GatewayOptions::default()).await;
    let mut socket = served.connect().await;
    socket
        .ask(json!({"op":"AUTH","token":"publish:** subscribe:**"}))
        .await;
    socket.subscribe("keep", "g", json!({})).await;
    socket.subscribe("lose", "g", json!({})).await;
    socket.publish("keep", json!(1)).await;
    let event = socket.event().await;
    let reply = socket
        .ask(json!({"op":"AUTH","token":"subscribe:keep","corr":"again"}))
        .await;
    assert_eq!(reply, json!({"op":"OK","corr":"again"}));
    let ended = socket.reply().await;
    assert_eq!(ended["code"], "forbidden");
    assert!(
        ended["msg"]
            .as_str()
            .is_some_and(|msg| msg.contains("lose")),
        "{ended}"
    );
    assert_eq!(
        socket.ask(publish("keep", json!(2))).await["code"],
        "forbidden"
    );
    assert_eq!(
        socket.ask(settle("ACK", &event)).await["op"],
        "OK",
        "the lease is still held"
    );
    let reply = socket
        .ask(json!({"op":"UNSUBSCRIBE","topic":"lose","group":"g"}))
        .await;
    assert_eq!(reply["code"], "not_subscribed");
}

#[tokio::test]
async fn a_token_that_runs_out_ends_the_connection() {
    let served = serve_scopes(GatewayOptions::default()).await;
    let mut socket = served.connect().await;
    socket
        .ask(json!({"op":"AUTH","token":"publish:** subscribe:**|300"}))
        .await;
    socket.subscribe("t", "g", json!({})).await;
    let expired = socket.reply().await;
    assert_eq!(
        (&expired["op"], &expired["code"]),
        (&json!("ERR"), &json!("token_expired"))
    );
    assert_eq!(socket.close().await.0, Some(1008));
}

#[tokio::test]
async fn a_fresh_token_in_time_lets_the_connection_go_on() {
    let served = serve_scopes(GatewayOptions::default()).await;
    let mut socket = served.connect().await;
    socket
        .ask(json!({"op":"AUTH","token":"publish:** subscribe:**|300"}))
        .await;
    socket.subscribe("t", "g", json!({})).await;
    socket.publish("t", json!(1)).await;
    let event = socket.event().await;
    socket
        .ask(json!({"op":"AUTH","token":"publish:** subscribe:**"}))
        .await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(socket.ask(settle("ACK", &event)).await["op"], "OK");
    socket.publish("t", json!(2)).await;
    assert_eq!(socket.event().await["event"]["payload"], 2);
}

#[tokio::test]
async fn who_shows_no_token_in_time_is_sent_away() {
    let options = GatewayOptions {
        request_timeout_ms: 100,
        ..GatewayOptions::default()
    };
    let served = serve_scopes(options).await;
    let mut socket = served.connect().await;
    assert_eq!(socket.reply().await["code"], "unauthorized");
    assert_eq!(socket.close().await.0, Some(1008));
    let mut huge = served.connect().await;
    huge.send_text(&" ".repeat(70_000)).await;
    assert_eq!(
        huge.close().await.0,
        Some(1009),
        "strangers may not send much"
    );
}
