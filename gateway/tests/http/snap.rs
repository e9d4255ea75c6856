//! `/snap`: the state of one key, with what HTTP has for asking whether it changed, and as it was.

use super::client::{Client, Reply};
use super::server::Running;
use prombus_gateway::GatewayOptions;
use serde_json::{Value, json};

#[tokio::test]
async fn the_payload_comes_as_it_was_published() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let published = client
        .post(
            "/publish/t?key=k&ts=1700000000000&id=one",
            r#"{"cpu": 1.50, "b":1,"a":2}"#,
        )
        .await
        .ok();
    let reply = client.get("/snap/t/k").await;
    assert_eq!(reply.head.status, 200);
    assert_eq!(reply.text(), r#"{"cpu":1.50,"b":1,"a":2}"#);
    assert_eq!(reply.head.header("content-type"), Some("application/json"));
    assert_eq!(
        reply.head.header("cache-control"),
        Some("private, no-cache")
    );
    assert_eq!(reply.head.header("x-event-id"), Some("one"));
    assert_eq!(reply.head.header("x-event-ts"), Some("1700000000000"));
    assert_eq!(
        reply.head.header("x-event-seq"),
        Some(published["seq"].to_string().as_str())
    );
    let tag = tag(&reply);
    assert!(
        tag.starts_with('"') && tag.ends_with('"'),
        "a strong tag: {tag}"
    );

    let head = client.request("HEAD", "/snap/t/k", &[], b"").await;
    assert_eq!((head.head.status, head.body.len()), (200, 0));
    assert_eq!(head.head.header("etag"), Some(tag.as_str()));
    assert_eq!(head.head.header("content-length"), Some("24"));
}

#[tokio::test]
async fn what_the_client_has_is_not_sent_again() {
    let server = Running::start().await;
    let mut client = server.client().await;
    client.post("/publish/t?key=k", "1").await.ok();
    let first = tag(&client.get("/snap/t/k").await);
    for method in ["GET", "HEAD"] {
        for tags in [
            first.clone(),
            "*".to_owned(),
            format!("W/{first}"),
            format!("\"x\" , {first}"),
        ] {
            let reply = client
                .request(method, "/snap/t/k", &[("if-none-match", &tags)], b"")
                .await;
            assert_eq!(
                (reply.head.status, reply.body.len()),
                (304, 0),
                "{method} {tags}"
            );
            assert_eq!(reply.head.header("etag"), Some(first.as_str()));
            assert_eq!(
                reply.head.header("cache-control"),
                Some("private, no-cache")
            );
        }
    }
    client.post("/publish/t?key=k", "1").await.ok();
    let changed = client
        .request("GET", "/snap/t/k", &[("if-none-match", &first)], b"")
        .await;
    assert_eq!(changed.ok(), 1, "the same payload, but another event");
    assert_ne!(tag(&changed), first);
}

#[tokio::test]
async fn keys_are_what_stands_behind_the_topic() {
    let server = Running::start().await;
    let mut client = server.client().await;
    for (number, (key, path)) in [
        ("host:name:42", "host:name:42"),
        ("a/b", "a/b"),
        ("a/b", "a%2Fb"),
        ("a b", "a%20b"),
        ("a+b", "a+b"),
        ("a&b=c", "a&b=c"),
        ("50%", "50%25"),
        ("ü", "%C3%BC"),
        ("", ""),
        ("/", "/"),
        ("a?b", "a%3Fb"),
    ]
    .into_iter()
    .enumerate()
    {
        let body = json!([{"payload": number, "key": key}]);
        let line = body[0].to_string();
        client
            .request(
                "POST",
                "/publish/t?envelope=1",
                &[("content-type", "application/x-ndjson")],
                line.as_bytes(),
            )
            .await
            .ok();
        let reply = client.get(&format!("/snap/t/{path}")).await;
        assert_eq!(reply.ok(), number, "{key} at {path}");
    }
    client.get("/snap/t/%zz").await.is_error(400, "bad_frame");
    client.get("/snap/t/%ff").await.is_error(400, "bad_frame");
}

#[tokio::test]
async fn what_is_not_there_has_its_own_codes() {
    let server = Running::start().await;
    let mut client = server.client().await;
    client.post("/publish/t?key=a", "1").await.ok();
    client.post("/publish/t?key=gone", "1").await.ok();
    client.post("/publish/t?key=gone", "null").await.ok();
    client
        .post("/publish/t?key=gone2", "{\"_deleted\": true}")
        .await
        .ok();
    for (target, status, code) in [
        ("/snap/none/a", 404, "unknown_topic"),
        ("/snap/a%20b/a", 400, "bad_topic"),
        ("/snap/t/none", 404, "unknown_key"),
        ("/snap/t/gone", 404, "deleted_key"),
        ("/snap/t/gone2", 404, "deleted_key"),
        ("/snap/t/a?at=0", 404, "unknown_key"),
        ("/snap/none/a?at=0", 404, "unknown_topic"),
        ("/snap/t/a?at=yesterday", 400, "bad_frame"),
        ("/snap/t", 404, "not_found"),
    ] {
        client.get(target).await.is_error(status, code);
    }
    client
        .post("/snap/t/a", "1")
        .await
        .is_error(405, "method_not_allowed");
    assert!(
        server.bus().topic("none").is_err(),
        "looking does not make a topic"
    );
}

#[tokio::test]
async fn states_as_they_were() {
    let server = Running::start().await;
    let mut client = server.client().await;
    for (ts, payload) in [
        (1_000, "1"),
        (2_000, "2"),
        (3_000, "null"),
        (4_000, "4"),
        (1_500, "5"),
    ] {
        client
            .post(&format!("/publish/t?key=k&ts={ts}"), payload)
            .await
            .ok();
    }
    for (at, expected) in [(1_000, 1), (1_499, 1), (1_500, 5), (2_500, 5), (9_999, 5)] {
        let reply = client.get(&format!("/snap/t/k?at={at}")).await;
        assert_eq!(reply.ok(), expected, "at {at}");
    }
    client
        .get("/snap/t/k?at=999")
        .await
        .is_error(404, "unknown_key");
    let then = client.get("/snap/t/k?at=1200").await;
    let again = client
        .request(
            "GET",
            "/snap/t/k?at=1100",
            &[("if-none-match", &tag(&then))],
            b"",
        )
        .await;
    assert_eq!(again.head.status, 304);
    assert_ne!(tag(&then), tag(&client.get("/snap/t/k").await));
}

#[tokio::test]
async fn a_past_that_is_lost_is_gone() {
    let server = Running::start().await;
    let mut client = server.client().await;
    client
        .request("PUT", "/topics/t", &[], br#"{"compaction":true}"#)
        .await
        .ok();
    for number in 1..=5 {
        client
            .post(
                &format!("/publish/t?key=k&ts={number}000"),
                &number.to_string(),
            )
            .await
            .ok();
    }
    server.bus().store().maintain().await.expect("upkeep");
    client
        .get("/snap/t/k?at=2500")
        .await
        .is_error(410, "history_gone");
    assert_eq!(client.get("/snap/t/k?at=5000").await.ok(), 5);
    client
        .get("/list/t?at=2500")
        .await
        .is_error(410, "history_gone");
}

#[tokio::test]
async fn reading_state_takes_the_right_to_subscribe() {
    let server = Running::with_scopes(GatewayOptions::default()).await;
    let mut client = server.client().await;
    let publish = [("authorization", "Bearer publish:t")];
    client
        .request("POST", "/publish/t?key=k", &publish, b"1")
        .await
        .ok();
    for target in ["/snap/t/k", "/list/t", "/snap/t/k?at=1"] {
        let refused = client.request("GET", target, &publish, b"").await;
        refused.is_error(403, "forbidden");
        client.get(target).await.is_error(401, "unauthorized");
    }
    for target in ["/snap/t/k", "/list/t"] {
        let subscribe = [("authorization", "Bearer subscribe:t")];
        client.request("GET", target, &subscribe, b"").await.ok();
        let reply: Value = client
            .get(&format!("{target}?token=subscribe:t"))
            .await
            .ok();
        assert!(!reply.is_null(), "the token is no field");
    }
}

fn tag(reply: &Reply) -> String {
    reply.head.header("etag").expect("a tag").to_owned()
}

/// A connection is kept for many reads.
#[tokio::test]
async fn many_reads_share_a_connection() {
    let server = Running::start().await;
    let mut client: Client = server.client().await;
    client.post("/publish/t?key=k", "1").await.ok();
    for number in 0..200 {
        if number % 50 == 0 {
            client
                .post("/publish/t?key=k", &number.to_string())
                .await
                .ok();
        }
        assert_eq!(client.get("/snap/t/k").await.ok(), number / 50 * 50);
    }
}
