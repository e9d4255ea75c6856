//! Scheduled events over HTTP: making, listing and removing them, and who may.

use super::server::Running;
use prombus_gateway::GatewayOptions;
use serde_json::json;

/// Ten years on.
const LATER: u64 = 315_360_000_000;

#[tokio::test]
async fn an_event_waits_is_listed_and_is_removed() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let target = format!("/publish/t?id=a&key=k&delay_ms={LATER}");
    let made = client.post(&target, r#"{"n": 1}"#).await.ok();
    assert_eq!(
        (&made["id"], &made["scheduled"]),
        (&json!("a"), &json!(true))
    );
    assert_eq!(made["topic"], "t");
    assert!(made.get("seq").is_none(), "it has no position yet");
    let due = made["due"].as_u64().expect("a time");
    let again = client.post(&target, r#"{"n":1}"#).await.ok();
    assert_eq!(
        (&again["due"], &again["duplicate"]),
        (&json!(due), &json!(true))
    );
    client.post(&target, "2").await.is_error(409, "id_conflict");
    let other = format!("/publish/u?id=b&deliver_at={due}&every=1m&catch_up=1");
    client.post(&other, "null").await.ok();

    let all = client.get("/schedules").await.ok();
    let a = json!({"id":"a","topic":"t","due":due,"key":"k","payload":{"n":1}});
    let b = json!({"id":"b","topic":"u","due":due,"every":"1m","catch_up":true,"payload":null});
    assert_eq!(all, json!({"schedules":[a, b],"next":null}));
    let page = client.get("/schedules?limit=1").await.ok();
    assert_eq!(
        (&page["schedules"], &page["next"]),
        (&json!([a]), &json!("a"))
    );
    let page = client.get("/schedules?after=a&limit=10").await.ok();
    assert_eq!(page["schedules"], json!([b]));
    assert_eq!(
        client.get("/schedules?topic=u").await.ok()["schedules"],
        json!([b])
    );
    client
        .get("/replay?topic=t")
        .await
        .is_error(404, "unknown_topic");

    let removed = client.request("DELETE", "/schedules/a", &[], b"").await;
    assert_eq!(removed.ok(), a);
    let gone = client.request("DELETE", "/schedules/a", &[], b"").await;
    gone.is_error(404, "unknown_id");
    assert_eq!(client.get("/schedules").await.ok()["schedules"], json!([b]));
}

#[tokio::test]
async fn an_event_that_is_due_is_published() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let made = client.post("/publish/t?deliver_at=5", "1").await.ok();
    let mut tail = server.bus().store().watch(&"t".into());
    while tail.current() == 0 {
        assert!(tail.moved().await);
    }
    let events = client.get("/replay?topic=t").await.ok();
    assert_eq!(events["events"][0]["id"], made["id"]);
    assert_eq!(events["events"][0]["ts"], 5);
    assert_eq!(events["events"][0]["headers"]["x-scheduled-for"], "5");
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let server = Running::start().await;
    let mut client = server.client().await;
    for query in [
        "deliver_at=1&delay_ms=1",
        "deliver_at=x",
        "every=often",
        "every=1ms",
        "catch_up=1",
        "deliver_at=1&catch_up=1",
        "deliver_at=1&ts=1",
        "deliver_at=1&expect_seq=0",
    ] {
        let reply = client.post(&format!("/publish/t?{query}"), "1").await;
        reply.is_error(400, "bad_frame");
    }
    let ndjson = [("content-type", "application/x-ndjson")];
    let lines = client
        .request("POST", "/publish/t?delay_ms=1", &ndjson, b"1\n")
        .await;
    lines.is_error(400, "bad_frame");
    let lines = b"{\"payload\":1,\"delay_ms\":1}\n";
    let reply = client
        .request("POST", "/publish/t?envelope=1", &ndjson, lines)
        .await
        .ok();
    assert_eq!(reply["errors"][0]["code"], "bad_frame");
    for target in [
        "/schedules?limit=0",
        "/schedules?nope=1",
        "/schedules?topic=a%20b",
    ] {
        assert_eq!(client.get(target).await.error().0, 400, "{target}");
    }
    client
        .get("/schedules/a")
        .await
        .is_error(405, "method_not_allowed");
    assert_eq!(client.get("/schedules").await.ok()["schedules"], json!([]));
}

#[tokio::test]
async fn only_those_who_may_publish_or_administer_remove_and_only_readers_list() {
    let server = Running::with_scopes(GatewayOptions::default()).await;
    let mut client = server.client().await;
    let as_scope = |scope: &'static str| [("authorization", scope)];
    let writer = as_scope("Bearer publish:t");
    let target = format!("/publish/t?id=a&delay_ms={LATER}");
    client.request("POST", &target, &writer, b"1").await.ok();
    let elsewhere = format!("/publish/u?delay_ms={LATER}");
    let refused = client.request("POST", &elsewhere, &writer, b"1").await;
    refused.is_error(403, "forbidden");
    for (scope, status) in [
        ("Bearer subscribe:t", 200),
        ("Bearer admin:t", 200),
        ("Bearer publish:t", 403),
    ] {
        let listed = client
            .request("GET", "/schedules?topic=t", &as_scope(scope), b"")
            .await;
        assert_eq!(listed.head.status, status, "{scope}");
    }
    let other = client
        .request("GET", "/schedules", &as_scope("Bearer subscribe:u"), b"")
        .await;
    assert_eq!(other.ok()["schedules"], json!([]));
    for scope in ["Bearer subscribe:t", "Bearer publish:u"] {
        let refused = client
            .request("DELETE", "/schedules/a", &as_scope(scope), b"")
            .await;
        refused.is_error(403, "forbidden");
    }
    client
        .request("DELETE", "/schedules/a", &writer, b"")
        .await
        .ok();
}

#[tokio::test]
async fn what_is_published_when_it_is_due_is_counted() {
    let server = Running::start().await;
    let mut client = server.client().await;
    client.post("/publish/t?delay_ms=10", "1").await.ok();
    let sample = "events_published_total{topic=\"t\"} 1\n";
    for _ in 0..1_000 {
        let reply = client.get("/metrics").await;
        let text = String::from_utf8_lossy(&reply.body).into_owned();
        if text.contains(sample) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("it is not counted");
}
