//! Requests of foreign web pages, and requests that are addressed to another host.

use super::server::Running;
use prombus_gateway::GatewayOptions;

/// What changes something, as a page can send it without a preflight.
const ACTING: &[&str] = &["/publish/t", "/topics/t/purge", "/pull", "/dlq/redrive"];

#[tokio::test]
async fn a_foreign_page_changes_nothing() {
    let server = Running::start().await;
    server.fill("t", 3).await;
    let mut client = server.client().await;
    let foreign: &[(&str, &str)] = &[
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ];
    for header in foreign {
        for target in ACTING {
            let headers = [*header, ("content-type", "text/plain")];
            let reply = client.request("POST", target, &headers, b"1").await;
            reply.is_error(403, "forbidden");
        }
        // What a page may not see, the browser keeps from it; so reading is left to the browser.
        let reply = client
            .request("GET", "/replay?topic=t", &[*header], b"")
            .await;
        assert_eq!(reply.ok()["count"], 3);
    }
    let reply = client
        .request("DELETE", "/topics/t", &foreign[..1], b"")
        .await;
    reply.is_error(403, "forbidden");
    for own in [("origin", "http://localhost"), ("sec-fetch-site", "none")] {
        client
            .request("POST", "/publish/t", &[own], b"1")
            .await
            .ok();
    }
    assert_eq!(client.get("/replay?topic=t").await.ok()["count"], 5);
}

#[tokio::test]
async fn a_page_that_cors_origins_names_may_act() {
    let options = GatewayOptions {
        cors_origins: vec!["https://ours.example".to_owned()],
        ..GatewayOptions::default()
    };
    let server = Running::with(options).await;
    let mut client = server.client().await;
    let ours = [("origin", "https://ours.example")];
    client.request("POST", "/publish/t", &ours, b"1").await.ok();
    let other = [("origin", "https://other.example")];
    let reply = client.request("POST", "/publish/t", &other, b"1").await;
    reply.is_error(403, "forbidden");
}

#[tokio::test]
async fn a_server_without_authentication_answers_to_local_names_only() {
    let options = GatewayOptions {
        allowed_hosts: vec!["bus.internal".to_owned()],
        ..GatewayOptions::default()
    };
    let server = Running::with(options).await;
    for (host, status) in [
        ("localhost:8090", 200),
        ("127.0.0.1", 200),
        ("[::1]:80", 200),
        ("bus.internal", 200),
        ("rebound.example", 403),
        ("", 400),
        ("a b", 400),
        ("localhost\r\nhost: localhost", 400),
    ] {
        let mut client = server.client().await;
        let request = format!("GET /livez HTTP/1.1\r\nhost: {host}\r\n\r\n");
        client.send(request.as_bytes()).await;
        let reply = client.reply(false).await;
        assert_eq!(reply.head.status, status, "{host:?}: {}", reply.text());
    }
    let mut client = server.client().await;
    client.send(b"GET /livez HTTP/1.1\r\n\r\n").await;
    client.reply(false).await.is_error(400, "bad_frame");
    let mut client = server.client().await;
    let target = "GET http://rebound.example/livez HTTP/1.1\r\nhost: localhost\r\n\r\n";
    client.send(target.as_bytes()).await;
    client.reply(false).await.is_error(403, "forbidden");
}

#[tokio::test]
async fn with_tokens_any_host_name_is_served() {
    let server = Running::with_scopes(GatewayOptions::default()).await;
    let mut client = server.client().await;
    let request = b"GET /livez HTTP/1.1\r\nhost: bus.example\r\n\r\n";
    client.send(request).await;
    assert_eq!(client.reply(false).await.head.status, 200);
}
