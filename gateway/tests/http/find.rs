//! `/find`: events by header and by cause.

use super::client::Client;
use super::server::Running;
use prombus_gateway::GatewayOptions;
use serde_json::{Value, json};

async fn serve() -> Running {
    Running::with(GatewayOptions {
        index_headers: vec![("orders.*".to_owned(), vec!["correlationId".to_owned()])],
        ..GatewayOptions::default()
    })
    .await
}

async fn import(client: &mut Client, topic: &str, lines: &[Value]) {
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let target = format!("/publish/{topic}?envelope=1");
    let ndjson = [("content-type", "application/x-ndjson")];
    let reply = client
        .request("POST", &target, &ndjson, lines.as_bytes())
        .await
        .ok();
    assert_eq!(reply["failed"], 0, "{reply}");
}

fn seqs(page: &Value) -> Vec<u64> {
    let events = page["events"].as_array().expect("events");
    events
        .iter()
        .map(|event| event["seq"].as_u64().expect("a seq"))
        .collect()
}

#[tokio::test]
async fn a_causal_chain_can_be_followed() {
    let server = serve().await;
    let mut client = server.client().await;
    import(
        &mut client,
        "orders.eu",
        &[
            json!({"payload": 1, "id": "a", "headers": {"correlationId": "x:1", "other": "o"}}),
            json!({"payload": 2, "id": "b", "headers": {"correlationId": "y"}, "caused_by": ["a"]}),
            json!({"payload": 3, "id": "c", "headers": {"correlationId": "x:1"}, "caused_by": ["a", "b"]}),
        ],
    )
    .await;
    let by_header = client
        .get("/find?topic=orders.eu&header=correlationId:x:1")
        .await
        .ok();
    assert_eq!(seqs(&by_header), [1, 3]);
    assert_eq!(by_header["from_seq"], 1);
    assert_eq!(by_header["next"], Value::Null);
    let by_cause = client.get("/find?topic=orders.eu&caused_by=a").await.ok();
    assert_eq!(seqs(&by_cause), [2, 3]);
    let none = client.get("/find?topic=orders.eu&caused_by=c").await.ok();
    assert_eq!(none["count"], 0);
    // What is published later is found too, and in pages.
    import(
        &mut client,
        "orders.eu",
        &[json!({"payload": 4, "headers": {"correlationId": "x:1"}})],
    )
    .await;
    let target = "/find?topic=orders.eu&header=correlationId:x:1&limit=2";
    let first = client.get(target).await.ok();
    assert_eq!((seqs(&first), &first["next"]), (vec![1, 3], &json!(3)));
    let second = client.get(&format!("{target}&after_seq=3")).await.ok();
    assert_eq!((seqs(&second), &second["next"]), (vec![4], &Value::Null));
    // A topic that is made again starts with an empty index.
    server
        .bus()
        .delete_topic("orders.eu")
        .await
        .expect("deleted");
    import(
        &mut client,
        "orders.eu",
        &[json!({"payload": 5, "caused_by": ["z"]})],
    )
    .await;
    let gone = client.get("/find?topic=orders.eu&caused_by=a").await.ok();
    assert_eq!(gone["count"], 0);
    let again = client.get("/find?topic=orders.eu&caused_by=z").await.ok();
    assert_eq!(seqs(&again), [1]);
}

#[tokio::test]
async fn what_is_not_indexed_is_named() {
    let server = serve().await;
    server.fill("orders.eu", 1).await;
    server.fill("plain", 1).await;
    let mut client = server.client().await;
    for (target, status, code) in [
        ("/find?topic=orders.eu", 400, "bad_frame"),
        ("/find?topic=orders.eu&header=a", 400, "bad_frame"),
        ("/find?topic=orders.eu&header=:a", 400, "bad_frame"),
        ("/find?topic=orders.eu&header=other:a", 400, "bad_frame"),
        (
            "/find?topic=orders.eu&header=correlationId:a&caused_by=b",
            400,
            "bad_frame",
        ),
        (
            "/find?topic=orders.eu&caused_by=b&limit=0",
            400,
            "bad_frame",
        ),
        ("/find?topic=plain&caused_by=b", 400, "bad_frame"),
        ("/find?topic=none&caused_by=b", 404, "unknown_topic"),
    ] {
        client.get(target).await.is_error(status, code);
    }
    let closed = Running::with_scopes(GatewayOptions::default()).await;
    let bearer = [("authorization", "Bearer publish:**")];
    let target = "/find?topic=orders.eu&caused_by=a";
    closed
        .client()
        .await
        .request("GET", target, &bearer, b"")
        .await
        .is_error(403, "forbidden");
}
