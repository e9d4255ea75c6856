//! `/topics`.

use super::server::Running;
use serde_json::{Value, json};

#[tokio::test]
async fn a_topic_is_made_changed_purged_and_removed() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let config = json!({
        "durability": "os", "retention": "3d", "max_bytes": 5_000_000, "max_events": 100,
        "compaction": true, "snapshot_topic": "t.snapshot", "snapshot_interval": "30s",
    });
    let put = client
        .request("PUT", "/topics/t", &[], config.to_string().as_bytes())
        .await
        .ok();
    assert_eq!((&put["topic"], &put["config"]), (&json!("t"), &config));
    assert_eq!(client.get("/topics/t").await.ok(), put);
    let put = client
        .request("PUT", "/topics/t", &[], br#"{"retention":"1h"}"#)
        .await
        .ok();
    let expected = json!({"durability": "fsync", "retention": "1h", "compaction": false});
    assert_eq!(put["config"], expected, "what is left out gets its default");
    for _ in 0..3 {
        client.post("/publish/t", "1").await.ok();
    }
    assert_eq!(client.get("/topics/t").await.ok()["events"], 3);
    let purged = client.post("/topics/t/purge", "").await.ok();
    assert_eq!(
        (&purged["events"], &purged["tail_seq"]),
        (&json!(0), &json!(3))
    );
    assert_eq!(client.post("/publish/t", "1").await.ok()["seq"], 4);
    let removed = client.request("DELETE", "/topics/t", &[], b"").await;
    assert_eq!((removed.head.status, removed.body.len()), (204, 0));
    client.get("/topics/t").await.is_error(404, "unknown_topic");
}

#[tokio::test]
async fn topics_are_listed_by_name() {
    let server = Running::start().await;
    let mut client = server.client().await;
    for topic in ["b", "a.c", "a"] {
        client.post(&format!("/publish/{topic}"), "1").await.ok();
    }
    let topics = client.get("/topics").await.ok()["topics"].clone();
    let names: Vec<&Value> = topics
        .as_array()
        .expect("a list")
        .iter()
        .map(|info| &info["topic"])
        .collect();
    assert_eq!(names, ["a", "a.c", "b"]);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let server = Running::start().await;
    let mut client = server.client().await;
    for (body, code) in [
        (&br#"{"retenton":"3d"}"#[..], "bad_frame"),
        (br#"{"retention":"soon"}"#, "bad_frame"),
        (br#"{"retention":"0s"}"#, "bad_frame"),
        (br#"{"durability":"perhaps"}"#, "bad_frame"),
        (br#"{"partitions":0}"#, "bad_frame"),
        (b"{", "bad_json"),
    ] {
        client
            .request("PUT", "/topics/t", &[], body)
            .await
            .is_error(400, code);
    }
    client
        .request("PUT", "/topics/a%20b", &[], b"{}")
        .await
        .is_error(400, "bad_topic");
    for (method, target) in [
        ("GET", "/topics/t"),
        ("DELETE", "/topics/t"),
        ("POST", "/topics/t/purge"),
    ] {
        client
            .request(method, target, &[], b"")
            .await
            .is_error(404, "unknown_topic");
    }
    let mut client = server.client().await;
    let large = format!("{{\"x\":\"{}\"}}", "x".repeat(4 << 20));
    client
        .request("PUT", "/topics/t", &[], large.as_bytes())
        .await
        .is_error(413, "too_large");
}
