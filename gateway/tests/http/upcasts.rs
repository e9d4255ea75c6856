//! `upcast=1` on `/replay`, `/export` and `/sse`, and in `/pull`.

use super::client::{Client, head};
use super::server::Running;
use serde_json::{Value, json};

/// An event of version 1, which version 2 renames a field of, and one of version 2.
async fn fill(client: &mut Client) {
    let text = json!({"type": "string"});
    let v1 = json!({"type": "object", "properties": {"name": text}, "required": ["name"]});
    let v2 = json!({
        "type": "object", "properties": {"title": text}, "required": ["title"],
        "x-upcast": [{"rename": {"from": "/name", "to": "title"}}],
    });
    let target = "/schemas/t?compatibility=none";
    client.post(target, &v1.to_string()).await.ok();
    client.post("/publish/t?id=a", r#"{"name":"x"}"#).await.ok();
    client.post(target, &v2.to_string()).await.ok();
    client
        .post("/publish/t?id=b", r#"{"title":"y"}"#)
        .await
        .ok();
}

fn is_upcast(record: &Value) {
    assert_eq!(record["id"], "a");
    assert_eq!(record["payload"], json!({"title": "x"}));
    assert_eq!(record["headers"]["x-schema-version"], "2");
    assert_eq!(record["headers"]["x-upcast-from"], "1");
}

#[tokio::test]
async fn pages_and_exports_are_upcast_where_that_is_asked_for() {
    let server = Running::start().await;
    let mut client = server.client().await;
    fill(&mut client).await;
    let stored = client.get("/replay?topic=t").await.ok();
    assert_eq!(stored["events"][0]["payload"], json!({"name": "x"}));
    let page = client.get("/replay?topic=t&upcast=1").await.ok();
    is_upcast(&page["events"][0]);
    assert_eq!(
        page["events"][1], stored["events"][1],
        "it is of the latest"
    );
    let stored = client.get("/export?topic=t&ndjson=0").await.ok();
    assert_eq!(stored[0]["payload"], json!({"name": "x"}));
    let exported = client.get("/export?topic=t&ndjson=0&upcast=1").await.ok();
    is_upcast(&exported[0]);
    let pull = json!({"topic": "t", "group": "g", "from": "earliest", "max": 1, "upcast": true});
    let pulled = client.post("/pull", &pull.to_string()).await.ok();
    is_upcast(&pulled["events"][0]["event"]);
    client
        .get("/replay?topic=t&upcast=yes")
        .await
        .is_error(400, "bad_frame");
}

#[tokio::test]
async fn a_followed_topic_is_upcast() {
    let server = Running::start().await;
    let mut client = server.client().await;
    fill(&mut client).await;
    let mut follower = server.client().await;
    let target = "/sse?topic=t&from=earliest&upcast=1";
    follower.send(head("GET", target, &[]).as_bytes()).await;
    assert_eq!(follower.head().await.status, 200);
    let mut text = String::new();
    while text.matches("data: ").count() < 2 {
        let chunk = follower.chunk().await.expect("not broken off");
        text += &String::from_utf8(chunk.expect("more")).expect("text");
    }
    let mut records = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let first = records.next().expect("a record");
    is_upcast(&serde_json::from_str(first).expect("JSON"));
}
