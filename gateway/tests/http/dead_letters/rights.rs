//! Who may list, remove and redrive, and what a refusal says is missing.

use super::kill;
use crate::server::Running;
use prombus_gateway::GatewayOptions;

async fn ask(
    server: &Running,
    scopes: &str,
    method: &str,
    target: &str,
    body: &str,
) -> (u16, String) {
    let token = format!("Bearer {scopes}");
    let mut client = server.client().await;
    let headers = [("authorization", token.as_str())];
    let reply = client
        .request(method, target, &headers, body.as_bytes())
        .await;
    (reply.head.status, reply.text())
}

#[tokio::test]
async fn administering_a_topic_is_not_reading_its_dead_letters() {
    let server = Running::with_scopes(GatewayOptions::default()).await;
    server.fill("t", 1).await;
    kill(&server, 1).await;
    let list = "/dlq?topic=t";
    assert_eq!(ask(&server, "admin:t", "GET", list, "").await.0, 403);
    assert_eq!(ask(&server, "subscribe:t", "GET", list, "").await.0, 403);
    assert_eq!(
        ask(&server, "subscribe:dlq.t", "GET", list, "").await.0,
        200
    );
    let remove = "/dlq?topic=t&all=1";
    assert_eq!(
        ask(&server, "subscribe:dlq.t", "DELETE", remove, "")
            .await
            .0,
        403
    );
    assert_eq!(ask(&server, "admin:t", "DELETE", remove, "").await.0, 200);
}

#[tokio::test]
async fn a_refused_redrive_names_the_missing_right() {
    let server = Running::with_scopes(GatewayOptions::default()).await;
    server.fill("t", 1).await;
    kill(&server, 1).await;
    let body = r#"{"topic":"t","dry_run":true}"#;
    let (status, text) = ask(&server, "subscribe:dlq.t", "POST", "/dlq/redrive", body).await;
    assert_eq!(status, 403);
    assert!(text.contains("publish to t\""), "{text}");
    let (status, text) = ask(&server, "publish:t", "POST", "/dlq/redrive", body).await;
    assert_eq!(status, 403);
    assert!(text.contains("subscribe to dlq.t\""), "{text}");
    let both = "publish:t subscribe:dlq.t";
    assert_eq!(
        ask(&server, both, "POST", "/dlq/redrive", body).await.0,
        200
    );
}

#[tokio::test]
async fn snapshots_go_only_where_the_caller_may_publish() {
    let server = Running::with_scopes(GatewayOptions::default()).await;
    server.fill("t", 1).await;
    let body = r#"{"compaction":true,"snapshot_topic":"secret"}"#;
    let (status, text) = ask(&server, "admin:t", "PUT", "/topics/t", body).await;
    assert_eq!(status, 403);
    assert!(text.contains("publish to secret"), "{text}");
    let both = "admin:t publish:secret";
    assert_eq!(ask(&server, both, "PUT", "/topics/t", body).await.0, 200);
}
