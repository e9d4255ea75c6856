//! What plain HTTP clients rely on: they see the reply to a body that was rejected, HEAD is GET without a body, caches are
//! told what a reply depends on, and a slip of the hand is named.

use super::client::head;
use super::server::Running;
use prombus_gateway::GatewayOptions;
use prombus_gateway::limits::LimitsConfig;
use serde_json::json;

/// Sends a whole body before it reads, as most libraries do.
async fn status_after_body(server: &Running, target: &str, bytes: usize, token: &str) -> u16 {
    let mut client = server.client().await;
    let length = bytes.to_string();
    let headers = [
        ("content-length", length.as_str()),
        ("authorization", token),
    ];
    client.send(head("POST", target, &headers).as_bytes()).await;
    let piece = vec![b'x'; 64 << 10];
    let mut sent = 0;
    while sent < bytes {
        let next = piece.len().min(bytes - sent);
        client.send(&piece[..next]).await;
        sent += next;
    }
    client.reply(false).await.head.status
}

#[tokio::test]
async fn a_rejected_body_is_drained_so_that_the_reply_is_seen() {
    let server = Running::with_scopes(GatewayOptions::default()).await;
    let good = "Bearer publish:** admin:**";
    for _ in 0..5 {
        for (target, token, expected) in [
            ("/publish/t", good, 413),
            ("/nowhere", good, 404),
            ("/topics", good, 405),
            ("/publish/t", "Bearer wrong", 401),
            ("/publish/t", "Bearer subscribe:**", 403),
            ("/publish/t?nokey=1", good, 400),
            ("/pull", good, 413),
        ] {
            let status = status_after_body(&server, target, 8 << 20, token).await;
            assert_eq!(status, expected, "{target}");
        }
    }
}

#[tokio::test]
async fn a_client_that_waits_for_continue_is_not_asked_for_its_body() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let headers = [("content-length", "8"), ("expect", "100-continue")];
    client
        .send(head("POST", "/nowhere", &headers).as_bytes())
        .await;
    assert_eq!(client.head().await.status, 404);
}

#[tokio::test]
async fn head_is_get_without_a_body() {
    let server = Running::start().await;
    server.fill("t", 3).await;
    let mut client = server.client().await;
    client.post("/publish/k?key=a", "{}").await.ok();
    for target in [
        "/replay?topic=t",
        "/replay?topic=none",
        "/export?topic=t",
        "/latest-by-key?topic=k",
        "/snap/k/a",
        "/snap/k/b",
        "/list/k",
        "/topics",
        "/topics/t",
        "/groups?topic=t",
        "/cursors?topic=t",
        "/dlq?topic=t",
        "/openapi.json",
        "/healthz",
        "/livez",
        "/readyz",
        "/nowhere",
        "/ws",
        "/lag?topic=t",
    ] {
        let get = client.request("GET", target, &[], b"").await;
        let head = client.request("HEAD", target, &[], b"").await;
        assert_eq!(head.head.status, get.head.status, "{target}");
        for name in [
            "content-type",
            "content-length",
            "etag",
            "vary",
            "upgrade",
            "allow",
        ] {
            let (of_head, of_get) = (head.head.header(name), get.head.header(name));
            assert_eq!(of_head, of_get, "{name} of {target}");
        }
        assert!(head.body.is_empty());
    }
}

#[tokio::test]
async fn replies_that_depend_on_the_origin_say_so() {
    let server = Running::with(GatewayOptions {
        cors_origins: vec!["https://ours.example".to_owned()],
        ..GatewayOptions::default()
    })
    .await;
    server.fill("t", 1).await;
    let mut client = server.client().await;
    for headers in [&[][..], &[("origin", "https://ours.example")]] {
        for target in ["/topics", "/nowhere", "/export?topic=t"] {
            let reply = client.request("GET", target, headers, b"").await;
            let vary = reply.head.headers("vary").join(", ");
            assert!(vary.contains("origin"), "{target}: {vary}");
        }
    }
    let export = client.get("/export?topic=t").await;
    let vary = export.head.headers("vary").join(", ");
    assert!(vary.contains("accept-encoding"), "{vary}");
}

#[tokio::test]
async fn a_line_of_exactly_the_limit_may_end_in_crlf() {
    let server = Running::with(GatewayOptions {
        limits: LimitsConfig {
            max_payload_bytes: 10,
            ..LimitsConfig::default()
        },
        ..GatewayOptions::default()
    })
    .await;
    let mut client = server.client().await;
    let ndjson = [("content-type", "application/x-ndjson")];
    let body = b"\"12345678\"\r\n\"123456789\"\r\n1\r\n";
    let reply = client
        .request("POST", "/publish/t", &ndjson, body)
        .await
        .ok();
    assert_eq!(reply["published"], 2, "{reply}");
    assert_eq!(reply["errors"][0]["line"], 2);
    assert_eq!(reply["errors"][0]["code"], "too_large");
}

#[tokio::test]
async fn unknown_fields_and_parameters_are_named_with_the_nearest_known() {
    let server = Running::start().await;
    server.fill("t", 1).await;
    let mut client = server.client().await;
    for (method, target, body, expected) in [
        (
            "GET",
            "/replay?topic=t&limt=5",
            "",
            "limt: unknown parameter; did you mean limit?",
        ),
        (
            "GET",
            "/healthz?x=1",
            "",
            "x: unknown parameter; this path takes none",
        ),
        (
            "POST",
            "/publish/t?Key=a",
            "1",
            "Key: unknown parameter; did you mean key?",
        ),
        (
            "POST",
            "/pull",
            r#"{"topic":"t","group":"g","wait":5}"#,
            "wait: unknown field; did you mean wait_ms?",
        ),
        (
            "POST",
            "/ack",
            r#"{"topic":"t","group":"g","id":"x","opts":{}}"#,
            "opts: unknown field; expected one of topic, group, id, ids, corr, publish",
        ),
        (
            "POST",
            "/cursors",
            r#"{"topic":"t","group":"g","from":"earliest","dryRun":true}"#,
            "dryRun: unknown field; did you mean dry_run?",
        ),
        (
            "PUT",
            "/topics/t",
            r#"{"max_event":5}"#,
            "max_event: unknown field; did you mean max_events?",
        ),
    ] {
        let reply = client.request(method, target, &[], body.as_bytes()).await;
        reply.is_error(400, "bad_frame");
        assert_eq!(reply.json()["error"], json!(expected), "{target}");
    }
    let ndjson = [("content-type", "application/x-ndjson")];
    let lines = "{\"payload\":1,\"kee\":\"a\"}\n{\"payload\":2,\"key\":\"a\"}\n";
    let reply = client
        .request("POST", "/publish/t?envelope=1", &ndjson, lines.as_bytes())
        .await
        .ok();
    assert_eq!(reply["published"], 1);
    assert_eq!(
        reply["errors"][0]["error"],
        "kee: unknown field; did you mean key?"
    );
    // A token may come with any request, and fields of payloads with a list.
    client.get("/topics?token=x").await.ok();
    client.get("/list/t?status=alive").await.ok();
}
