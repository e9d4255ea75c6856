//! `POST /groups/shadow`, and pulling from such a group.

use super::server::Running;
use prombus_gateway::GatewayOptions;
use serde_json::json;

#[tokio::test]
async fn a_shadow_is_made_and_pulled_from() {
    let server = Running::start().await;
    server.fill("t", 3).await;
    let mut client = server.client().await;
    let pull = json!({"topic": "t", "group": "g", "from": "earliest"}).to_string();
    let first = client.post("/pull", &pull).await.ok();
    assert!(first["events"][0]["ctx"].get("shadow").is_none());
    let body =
        json!({"topic": "t", "group": "g", "from": "seq", "seq": 2, "pace": "max", "ttl": "30m"});
    let made = client.post("/groups/shadow", &body.to_string()).await.ok();
    assert_eq!(
        (&made["original"], &made["from_seq"]),
        (&json!("g"), &json!(2))
    );
    assert_eq!(made["ttl_ms"], 1_800_000);
    let pull = json!({"topic": "t", "group": made["group"], "wait_ms": 5_000}).to_string();
    let pulled = client.post("/pull", &pull).await.ok();
    assert_eq!(pulled["events"][0]["event"]["seq"], 2);
    assert_eq!(pulled["events"][0]["ctx"]["shadow"], true);
}

#[tokio::test]
async fn what_is_wrong_is_said() {
    let server = Running::with_scopes(GatewayOptions::default()).await;
    server.fill("t", 1).await;
    let mut client = server.client().await;
    for (body, token, status, code) in [
        (
            json!({"topic": "t", "group": "g"}),
            "subscribe:t",
            404,
            "unknown_group",
        ),
        (
            json!({"topic": "t", "group": "g"}),
            "publish:t",
            403,
            "forbidden",
        ),
        (
            json!({"topic": "u", "group": "g"}),
            "subscribe:**",
            404,
            "unknown_topic",
        ),
        (json!({"topic": "t"}), "subscribe:t", 400, "bad_frame"),
        (
            json!({"topic": "t", "group": "g", "pace": "fast"}),
            "subscribe:t",
            400,
            "bad_frame",
        ),
        (
            json!({"topic": "t", "group": "g", "pace": -1}),
            "subscribe:t",
            400,
            "bad_frame",
        ),
        (
            json!({"topic": "t", "group": "g", "ttl": 5}),
            "subscribe:t",
            400,
            "bad_frame",
        ),
        (
            json!({"topic": "t", "group": "g", "speed": 5}),
            "subscribe:t",
            400,
            "bad_frame",
        ),
    ] {
        let target = format!("/groups/shadow?token={token}");
        let reply = client.post(&target, &body.to_string()).await;
        reply.is_error(status, code);
    }
    let target = "/pull?token=subscribe:t";
    let pull = json!({"topic": "t", "group": "shadow:g:1"}).to_string();
    client
        .post(target, &pull)
        .await
        .is_error(404, "unknown_group");
}
