//! What is common to all routes: unknown paths, wrong methods, HEAD, CORS, health and the documents.

use super::server::Running;
use prombus::{BusOptions, Store, SystemClock};
use prombus_api::openapi::document;
use prombus_gateway::GatewayOptions;
use prombus_gateway::auth::Authenticator;
use prombus_store::memory::MemoryStore;
use std::sync::Arc;

#[tokio::test]
async fn unknown_paths_and_wrong_methods() {
    let server = Running::start().await;
    let mut client = server.client().await;
    for path in [
        "/nowhere",
        "/topics/a/b",
        "/publish/",
        "/snap/t",
        "/list/t/k",
    ] {
        client.get(path).await.is_error(404, "not_found");
    }
    let reply = client.request("DELETE", "/cursors", &[], b"").await;
    reply.is_error(405, "method_not_allowed");
    assert_eq!(reply.head.header("allow"), Some("GET, POST, HEAD"));
    let reply = client.get("/publish/t").await;
    reply.is_error(405, "method_not_allowed");
    assert_eq!(reply.head.header("allow"), Some("POST"));
}

#[tokio::test]
async fn every_documented_path_is_served() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let document = document();
    for (path, operations) in document["paths"].as_object().expect("paths") {
        for method in operations.as_object().expect("operations").keys() {
            let target = path.replace("{topic}", "some.topic");
            let method = method.to_uppercase();
            let reply = client.request(&method, &target, &[], b"").await;
            if reply.head.status >= 400 {
                let (_, code) = reply.error();
                assert!(
                    !["not_found", "method_not_allowed"].contains(&code.as_str()),
                    "{path}"
                );
            }
        }
    }
    assert_eq!(client.get("/openapi.json").await.ok(), document);
}

#[tokio::test]
async fn head_is_get_without_a_body() {
    let server = Running::start().await;
    server.fill("t", 3).await;
    let mut client = server.client().await;
    for target in [
        "/topics",
        "/replay?topic=t",
        "/livez",
        "/metrics",
        "/export?topic=t",
    ] {
        let got = client.get(target).await;
        let head = client.request("HEAD", target, &[], b"").await;
        assert_eq!(head.head.status, 200, "{target}");
        assert_eq!(
            head.head.header("content-type"),
            got.head.header("content-type")
        );
        if let Some(length) = got.head.header("content-length") {
            assert_eq!(head.head.header("content-length"), Some(length), "{target}");
        }
    }
    let head = client.request("HEAD", "/replay?topic=none", &[], b"").await;
    assert_eq!(head.head.status, 404);
}

#[tokio::test]
async fn pages_of_other_origins_are_kept_out_unless_they_are_named() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let page = [("origin", "https://a.example")];
    let reply = client.request("GET", "/topics", &page, b"").await;
    assert_eq!(reply.head.header("access-control-allow-origin"), None);
    let preflight = [
        ("origin", "https://a.example"),
        ("access-control-request-method", "PUT"),
    ];
    let reply = client
        .request("OPTIONS", "/topics/t", &preflight, b"")
        .await;
    assert_eq!(reply.head.status, 405);

    let server = Running::with(GatewayOptions {
        cors_origins: vec!["https://a.example".to_owned()],
        ..GatewayOptions::default()
    })
    .await;
    let mut client = server.client().await;
    let allowed = "access-control-allow-origin";
    let reply = client
        .request("GET", "/replay?topic=none", &page, b"")
        .await;
    assert_eq!(
        (reply.head.status, reply.head.header(allowed)),
        (404, Some("https://a.example"))
    );
    assert_eq!(reply.head.header("vary"), Some("origin"));
    let reply = client
        .request("OPTIONS", "/topics/t", &preflight, b"")
        .await;
    assert_eq!(
        (reply.head.status, reply.head.header(allowed)),
        (204, Some("https://a.example"))
    );
    let methods = reply.head.header("access-control-allow-methods");
    assert!(methods.is_some_and(|methods| methods.contains("PUT")));
    let other = [
        ("origin", "https://b.example"),
        ("access-control-request-method", "PUT"),
    ];
    let reply = client.request("OPTIONS", "/topics/t", &other, b"").await;
    assert_eq!((reply.head.status, reply.head.header(allowed)), (405, None));

    let server = Running::with(GatewayOptions {
        cors_origins: vec!["*".to_owned()],
        ..GatewayOptions::default()
    })
    .await;
    let mut client = server.client().await;
    let reply = client.request("GET", "/topics", &page, b"").await;
    assert_eq!(reply.head.header(allowed), Some("*"));
}

#[tokio::test]
async fn health_turns_red_when_the_store_takes_no_writes() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
    let store = super::broken::Breakable::around(store);
    let options = GatewayOptions::default();
    let auth = Authenticator::off();
    let server = Running::on(store.clone(), BusOptions::default(), auth, options).await;
    let mut client = server.client().await;
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(client.get(path).await.ok()["status"], "ok");
    }
    client.post("/publish/t", "1").await.ok();
    store.break_writes();
    client
        .post("/publish/t", "2")
        .await
        .is_error(503, "publish_failed");
    for path in ["/healthz", "/readyz"] {
        let reply = client.get(path).await;
        assert_eq!(reply.head.status, 503, "{path}");
        assert_eq!(reply.json()["status"], "failing");
    }
    assert_eq!(client.get("/livez").await.head.status, 200);
    assert_eq!(
        client.get("/replay?topic=t").await.ok()["count"],
        1,
        "reading goes on"
    );
}

#[tokio::test]
async fn a_server_that_goes_down_says_so_and_ends() {
    let mut server = Running::start().await;
    let mut client = server.client().await;
    client.get("/readyz").await.ok();
    server.gateway.drain();
    let ended = tokio::time::timeout(super::client::PATIENCE, &mut server.serving).await;
    ended.expect("in time").expect("without a panic");
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn metrics_count_what_happens() {
    let server = Running::start().await;
    let mut client = server.client().await;
    client.post("/publish/t", "1").await.ok();
    client.post("/publish/t", "2").await.ok();
    let body = r#"{"topic":"t","group":"g","from":"earliest","max":2,"wait_ms":5000}"#;
    let pulled = client.post("/pull", body).await.ok();
    let id = pulled["events"][0]["event"]["id"].as_str().expect("an id");
    let ack = format!(r#"{{"topic":"t","group":"g","id":"{id}"}}"#);
    client.post("/ack", &ack).await.ok();
    let reply = client.get("/metrics").await;
    let text = reply.text();
    assert!(
        reply
            .head
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("text/plain"))
    );
    for line in [
        r#"events_published_total{topic="t"} 2"#,
        r#"events_delivered_total{topic="t",group="g"} 2"#,
        r#"events_acked_total{topic="t",group="g"} 1"#,
        r#"events_inflight{topic="t",group="g"} 1"#,
        r#"delivery_latency_ms_count{topic="t",group="g"} 1"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
    assert!(
        text.contains(r#"group_lag_events{topic="t",group="g"} "#),
        "{text}"
    );
    assert!(text.contains("store_bytes "), "{text}");
}
