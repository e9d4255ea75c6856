//! `/groups`, `/cursors`, `/lag` and `/explain`.

use super::server::Running;
use prombus::{StartAt, SubscribeExtras, SubscribeOptions};
use serde_json::json;

fn earliest() -> SubscribeOptions {
    SubscribeOptions {
        from: StartAt::Earliest,
        extras: SubscribeExtras::member("worker"),
        ..SubscribeOptions::default()
    }
}

#[tokio::test]
async fn groups_and_where_they_are() {
    let server = Running::start().await;
    server.fill("t", 10).await;
    let subscription = server
        .bus()
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    for _ in 0..4 {
        let delivery = subscription.next().await.expect("a delivery");
        delivery.ack_confirmed().await.expect("acknowledged");
    }
    let mut client = server.client().await;
    let groups = client.get("/groups?topic=t").await.ok();
    assert_eq!(groups["topic"], "t");
    let group = &groups["groups"][0];
    assert_eq!(
        (&group["group"], &group["cursor"], &group["lag"]),
        (&json!("g"), &json!(4), &json!(6))
    );
    assert_eq!(group["members"][0]["name"], "worker");
    assert_eq!(group["counts"]["acked"], 4);
    let cursors = client.get("/cursors?topic=t").await.ok();
    let cursor = &cursors["cursors"][0];
    assert_eq!(
        (&cursor["group"], &cursor["lastSeq"]),
        (&json!("g"), &json!(4))
    );
    assert!(
        cursor["lastId"].is_string() && cursor["lastTs"].is_u64(),
        "{cursor}"
    );
    let lag = client.get("/lag?topic=t&group=g").await.ok();
    assert_eq!((&lag["lag"], &lag["tail"]), (&json!(6), &json!(10)));
    assert_eq!(lag["lastCursor"]["lastSeq"], 4);
    assert!(lag["lagMs"].is_u64());
    drop(subscription);
    let removed = client
        .request("DELETE", "/groups?topic=t&group=g", &[], b"")
        .await;
    assert_eq!(removed.head.status, 204);
    assert_eq!(
        client.get("/groups?topic=t").await.ok()["groups"],
        json!([])
    );
    client
        .get("/lag?topic=t&group=g")
        .await
        .is_error(404, "unknown_group");
}

#[tokio::test]
async fn a_seek_is_tried_before_it_is_done() {
    let server = Running::start().await;
    server.fill("t", 10).await;
    let subscription = server
        .bus()
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    for _ in 0..4 {
        let delivery = subscription.next().await.expect("a delivery");
        delivery.ack_confirmed().await.expect("acknowledged");
    }
    drop(subscription);
    let mut client = server.client().await;
    let dry = r#"{"topic":"t","group":"g","from":"earliest","dry_run":true}"#;
    let would = client.post("/cursors", dry).await.ok();
    assert_eq!(
        (&would["redelivered"], &would["dry_run"]),
        (&json!(4), &json!(true))
    );
    let cursor = |reply: serde_json::Value| reply["cursors"][0]["lastSeq"].clone();
    assert_eq!(cursor(client.get("/cursors?topic=t&group=g").await.ok()), 4);
    let done = r#"{"topic":"t","group":"g","from":"seq","seq":9}"#;
    let done = client.post("/cursors", done).await.ok();
    assert_eq!((&done["cursor"], &done["skipped"]), (&json!(8), &json!(4)));
    assert_eq!(cursor(client.get("/cursors?topic=t").await.ok()), 8);
    let unknown = r#"{"topic":"t","group":"g","from":"afterId","afterId":"nobody"}"#;
    client
        .post("/cursors", unknown)
        .await
        .is_error(404, "unknown_id");
}

#[tokio::test]
async fn why_nothing_flows() {
    let server = Running::start().await;
    server.fill("t", 3).await;
    let subscription = server
        .bus()
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    subscription.pause();
    let mut client = server.client().await;
    let paused = client.get("/explain?topic=t&group=g").await.ok();
    assert_eq!(paused["reason"], "paused", "{paused}");
    assert!(
        paused["sentence"]
            .as_str()
            .is_some_and(|text| text.contains("worker")),
        "{paused}"
    );
    drop(subscription);
    let mut reason = json!(null);
    for _ in 0..1_000 {
        reason = client.get("/explain?topic=t&group=g").await.ok()["reason"].clone();
        if reason == "no_members" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(reason, "no_members");
}

#[tokio::test]
async fn groups_that_are_not_there() {
    let server = Running::start().await;
    server.fill("t", 1).await;
    let mut client = server.client().await;
    for (target, status, code) in [
        ("/groups?topic=none", 404, "unknown_topic"),
        ("/cursors?topic=none", 404, "unknown_topic"),
        ("/lag?topic=none&group=g", 404, "unknown_topic"),
        ("/explain?topic=none&group=g", 404, "unknown_topic"),
        ("/explain?topic=t&group=g", 404, "unknown_group"),
        ("/groups?topic=t&group=g", 404, "unknown_group"),
        ("/lag?topic=t", 400, "bad_frame"),
        ("/lag?topic=t&group=a%20b", 400, "bad_group"),
        ("/groups", 400, "bad_frame"),
    ] {
        client.get(target).await.is_error(status, code);
    }
    let seek = r#"{"topic":"t","group":"g","from":"earliest"}"#;
    client
        .post("/cursors", seek)
        .await
        .is_error(404, "unknown_group");
    client
        .post("/cursors", r#"{"topic":"t","group":"g"}"#)
        .await
        .is_error(400, "bad_frame");
    let removal = client
        .request("DELETE", "/groups?topic=t&group=g", &[], b"")
        .await;
    removal.is_error(404, "unknown_group");
}

#[tokio::test]
async fn a_group_is_changed_on_purpose_and_a_seek_stops_at_the_tail() {
    let server = Running::start().await;
    server.fill("t", 3).await;
    let subscription = server.bus().subscribe("t", "g", earliest()).await;
    let subscription = subscription.expect("subscribed");
    let mut client = server.client().await;
    let change = json!({"topic": "t", "group": "g", "maxAttempts": 9, "filter": {"tags": ["w"]}});
    let changed = client
        .request("PATCH", "/groups", &[], change.to_string().as_bytes())
        .await
        .ok();
    assert_eq!(changed["max_attempts"], 9);
    let unknown = json!({"topic": "t", "group": "g", "ackTimeoutMs": 9});
    let refused = client
        .request("PATCH", "/groups", &[], unknown.to_string().as_bytes())
        .await;
    refused.is_error(400, "bad_frame");
    let seek = json!({"topic": "t", "group": "g", "from": "seq", "seq": 99});
    let sought = client.post("/cursors", &seek.to_string()).await.ok();
    assert_eq!(
        (&sought["cursor"], &sought["beyond_tail"]),
        (&json!(3), &json!(true))
    );
    drop(subscription);
}

#[tokio::test]
async fn a_group_is_paused_and_resumed() {
    let server = Running::start().await;
    server.fill("t", 3).await;
    let subscription = server.bus().subscribe("t", "g", earliest()).await;
    let subscription = subscription.expect("subscribed");
    let mut client = server.client().await;
    let named = r#"{"topic":"t","group":"g"}"#;
    let before = client.get("/groups?topic=t&group=g").await.ok();
    assert_eq!(before["groups"][0]["paused"], json!(false));
    let paused = client.post("/groups/pause", named).await.ok();
    assert_eq!(
        (&paused["group"], &paused["paused"]),
        (&json!("g"), &json!(true))
    );
    let listed = client.get("/groups?topic=t").await.ok();
    assert_eq!(listed["groups"][0], paused, "as the list shows it");
    let pull = r#"{"topic":"t","group":"g","max":3,"wait_ms":50}"#;
    assert_eq!(client.post("/pull", pull).await.ok()["events"], json!([]));
    let told = client.get("/explain?topic=t&group=g").await.ok();
    assert_eq!(told["reason"], "paused");
    let sentence = told["sentence"].as_str().expect("a sentence");
    assert!(
        sentence.contains("prombus group resume t g") && sentence.contains("paused at 20"),
        "{sentence}"
    );
    let resumed = client.post("/groups/resume", named).await.ok();
    assert_eq!(resumed["paused"], json!(false));
    assert!(resumed.get("paused_since_ms").is_none(), "{resumed}");
    let first = subscription.next().await.expect("a delivery");
    assert_eq!(first.event.seq(), 1);
}

#[tokio::test]
async fn a_seek_is_undone_once() {
    let server = Running::start().await;
    server.fill("t", 5).await;
    let subscription = server.bus().subscribe("t", "g", earliest()).await;
    drop(subscription.expect("subscribed"));
    let mut client = server.client().await;
    let named = r#"{"topic":"t","group":"g"}"#;
    let nothing = client.post("/cursors/undo", named).await;
    nothing.is_error(409, "group_mismatch");
    assert!(nothing.text().contains("no seek to undo"));
    let seek = r#"{"topic":"t","group":"g","from":"latest"}"#;
    assert_eq!(client.post("/cursors", seek).await.ok()["skipped"], 5);
    let undone = client.post("/cursors/undo", named).await.ok();
    assert_eq!(
        undone,
        json!({"topic": "t", "group": "g", "dry_run": false, "cursor": 0, "redelivered": 5, "skipped": 0, "beyond_tail": false})
    );
    client
        .post("/cursors/undo", named)
        .await
        .is_error(409, "group_mismatch");
}

#[tokio::test]
async fn pause_resume_and_undo_of_what_is_not_there() {
    let server = Running::start().await;
    server.fill("t", 1).await;
    let mut client = server.client().await;
    for path in ["/groups/pause", "/groups/resume", "/cursors/undo"] {
        for (body, status, code) in [
            (r#"{"topic":"t","group":"g"}"#, 404, "unknown_group"),
            (r#"{"topic":"none","group":"g"}"#, 404, "unknown_topic"),
            (r#"{"topic":"t.*","group":"g"}"#, 400, "bad_topic"),
            (r#"{"topic":"t","group":"a b"}"#, 400, "bad_group"),
            (r#"{"topic":"t"}"#, 400, "bad_frame"),
            (r#"{"topic":"t","group":"g","x":1}"#, 400, "bad_frame"),
            ("", 400, "bad_json"),
        ] {
            client.post(path, body).await.is_error(status, code);
        }
        let reply = client.get(path).await;
        assert_eq!(reply.head.status, 405, "{}", reply.text());
    }
}
