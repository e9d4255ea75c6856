//! CloudEvents in and out over HTTP.

mod sdk;

use super::client::{Client, Reply};
use super::server::Running;
use prombus_gateway::GatewayOptions;
use serde_json::{Value, json};

const STRUCTURED: (&str, &str) = ("content-type", "application/cloudevents+json");
const BATCHED: (&str, &str) = ("content-type", "application/cloudevents-batch+json");
const ACCEPT: (&str, &str) = ("accept", "application/cloudevents+json");
const ACCEPT_BATCH: (&str, &str) = ("accept", "application/cloudevents-batch+json");

/// A CloudEvent with an id, a source and the number as its data.
fn event(id: &str, source: &str, data: u64) -> Value {
    json!({
        "specversion": "1.0", "id": id, "source": source, "type": "order.created", "subject": "k",
        "time": "2018-04-05T17:31:00.000Z", "datacontenttype": "application/json", "data": data,
    })
}

async fn send(client: &mut Client, target: &str, body: &Value) -> Reply {
    let header = if body.is_array() { BATCHED } else { STRUCTURED };
    let body = body.to_string();
    client
        .request("POST", target, &[header], body.as_bytes())
        .await
}

#[tokio::test]
async fn the_binary_mode_maps_to_the_record() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let headers = [
        ("ce-specversion", "1.0"),
        ("ce-type", "com.example.someevent"),
        ("ce-time", "2018-04-05T03:56:24Z"),
        ("ce-id", "1234-1234-1234"),
        ("ce-source", "/mycontext/subcontext"),
        ("ce-subject", "sub%20ject"),
        ("traceparent", "00-a-b-01"),
        ("x-tenant", "7"),
        ("authorization", "Bearer secret"),
        ("content-type", "application/json; charset=utf-8"),
    ];
    let target = "/publish/orders?sid=s&tags=new";
    let reply = client.request("POST", target, &headers, b"{ \"a\": 1.50 }");
    let reply = reply.await.ok();
    assert_eq!(reply["id"], "1234-1234-1234");
    assert_eq!(reply["ts"], 1_522_900_584_000_u64);
    assert_eq!(reply["topic"], "orders");
    let page = client.get("/replay?topic=orders").await;
    assert!(page.text().contains(r#""payload":{"a":1.50}"#));
    let record = &page.ok()["events"][0];
    assert_eq!(record["key"], "sub ject");
    assert_eq!(
        (&record["sid"], &record["tags"]),
        (&json!("s"), &json!(["new"]))
    );
    let expected = json!({
        "ce-specversion": "1.0", "ce-type": "com.example.someevent", "ce-source": "/mycontext/subcontext",
        "ce-time": "2018-04-05T03:56:24Z", "ce-datacontenttype": "application/json; charset=utf-8",
        "traceparent": "00-a-b-01", "x-tenant": "7",
    });
    assert_eq!(record["headers"], expected);
}

#[tokio::test]
async fn each_event_goes_to_the_topic_of_its_type() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let reply = send(&mut client, "/cloudevents", &event("1", "/a", 1)).await;
    assert_eq!(reply.ok()["topic"], "order.created");
    let mut other = event("2", "/a", 2);
    other["type"] = json!("order.paid");
    let batch = json!([other, event("3", "/a", 3)]);
    let reply = send(&mut client, "/cloudevents", &batch).await.ok();
    let topics: Vec<&Value> = reply["events"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|event| &event["topic"])
        .collect();
    assert_eq!(topics, ["order.paid", "order.created"]);
    let reply = send(&mut client, "/cloudevents?topic=all", &batch).await;
    assert_eq!(reply.ok()["events"][1]["seq"], 2);
    let mut odd = event("4", "/a", 4);
    odd["type"] = json!("not a topic");
    let reply = send(&mut client, "/cloudevents", &odd).await;
    reply.is_error(400, "bad_topic");
    client
        .post("/cloudevents", "{}")
        .await
        .is_error(400, "bad_frame");
}

#[tokio::test]
async fn a_batch_is_stored_as_a_whole_or_not_at_all() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let good = json!([event("1", "/a", 1), event("2", "/a", 2)]);
    let reply = send(&mut client, "/publish/t", &good).await.ok();
    assert_eq!(reply["events"][1]["seq"], 2);
    let again = send(&mut client, "/publish/t", &good).await.ok();
    assert_eq!(again["events"][0]["duplicate"], true);
    for (second, status, code) in [
        (json!({"specversion": "1.0"}), 400, "bad_frame"),
        (event("1", "/a", 9), 409, "id_conflict"),
    ] {
        let batch = json!([event("new", "/a", 1), second]);
        let reply = send(&mut client, "/publish/t", &batch).await;
        reply.is_error(status, code);
        assert!(reply.text().contains("event 1: "), "{}", reply.text());
    }
    assert_eq!(server.bus().topic("t").expect("a topic").tail_seq, 2);
    let empty = send(&mut client, "/publish/t", &json!([])).await.ok();
    assert_eq!(empty, json!({"events": []}));
}

#[tokio::test]
async fn an_id_of_another_source_is_not_taken_for_a_duplicate() {
    let server = Running::start().await;
    let mut client = server.client().await;
    send(&mut client, "/publish/t", &event("1", "/a", 1))
        .await
        .ok();
    let same = send(&mut client, "/publish/t", &event("1", "/a", 1)).await;
    assert_eq!(same.ok()["duplicate"], true);
    let other = send(&mut client, "/publish/t", &event("1", "/b", 1)).await;
    other.is_error(409, "id_conflict");
    let batch = json!([event("2", "/b", 1), event("1", "/b", 1)]);
    let other = send(&mut client, "/publish/t", &batch).await;
    other.is_error(409, "id_conflict");
}

#[tokio::test]
async fn what_does_not_fit_together_is_refused() {
    let server = Running::with_scopes(GatewayOptions::default()).await;
    let mut client = server.client().await;
    let token = "&token=publish:order.*%20publish:t";
    for target in [
        "/publish/t?key=k",
        "/publish/t?id=k",
        "/publish/t?ts=1",
        "/cloudevents?key=k",
    ] {
        let target = format!("{target}{token}");
        let reply = send(&mut client, &target, &event("1", "/a", 1)).await;
        reply.is_error(400, "bad_frame");
    }
    for query in ["expect_seq=0", "delay_ms=5"] {
        let target = format!("/publish/t?{query}{token}");
        let reply = send(&mut client, &target, &json!([event("1", "/a", 1)])).await;
        reply.is_error(400, "bad_frame");
    }
    let mut secret = event("1", "/a", 1);
    secret["type"] = json!("secret");
    let target = format!("/cloudevents?sid=s{token}");
    let batch = json!([event("1", "/a", 1), secret]);
    let reply = send(&mut client, &target, &batch).await;
    reply.is_error(403, "forbidden");
    assert!(server.bus().topics().is_empty(), "nothing was stored");
    let target = format!("/publish/t?expect_seq=0{token}");
    let reply = send(&mut client, &target, &event("1", "/a", 1)).await;
    assert_eq!(reply.ok()["seq"], 1);
    let reply = send(&mut client, &target, &event("2", "/a", 1)).await;
    reply.is_error(412, "seq_mismatch");
    let target = format!("/publish/t?delay_ms=60000{token}");
    let mut later = event("3", "/a", 1);
    let reply = send(&mut client, &target, &later).await;
    reply.is_error(400, "bad_frame");
    later["time"] = Value::Null;
    let reply = send(&mut client, &target, &later).await;
    assert_eq!(reply.ok()["scheduled"], true);
}

#[tokio::test]
async fn events_come_out_of_replay_and_export() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let events = [event("1", "/a", 1), event("2", "/a", 2)];
    for event in &events {
        send(&mut client, "/publish/t", event).await.ok();
    }
    for accept in [ACCEPT, ACCEPT_BATCH] {
        let page = client
            .request("GET", "/replay?topic=t", &[accept], b"")
            .await;
        assert_eq!(page.ok(), json!(events));
        let content_type = page.head.header("content-type");
        assert_eq!(content_type, Some("application/cloudevents-batch+json"));
        assert_eq!(page.head.header("x-next-seq"), None);
    }
    let target = "/replay?topic=t&limit=1";
    let page = client.request("GET", target, &[ACCEPT], b"").await;
    assert_eq!(page.ok(), json!(events[..1]));
    assert_eq!(page.head.header("x-next-seq"), Some("2"));
    let lines = client
        .request("GET", "/export?topic=t", &[ACCEPT], b"")
        .await;
    assert_eq!(lines.lines(), events);
    let content_type = lines.head.header("content-type");
    assert_eq!(content_type, Some("application/x-ndjson"));
    for (target, accept) in [
        ("/export?topic=t", ACCEPT_BATCH),
        ("/export?topic=t&ndjson=0", ACCEPT),
    ] {
        let list = client.request("GET", target, &[accept], b"").await;
        assert_eq!(list.ok(), json!(events));
        let content_type = list.head.header("content-type");
        assert_eq!(content_type, Some("application/cloudevents-batch+json"));
    }
    let records = client.get("/export?topic=t").await;
    assert_eq!(records.lines()[0]["payload"], 1, "others get records");
}

#[tokio::test]
async fn a_pull_says_what_to_acknowledge() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let sent = event("ü", "/a", 1);
    send(&mut client, "/publish/t", &sent).await.ok();
    let pull = json!({"topic": "t", "group": "g", "from": "earliest"}).to_string();
    let reply = client
        .request("POST", "/pull", &[ACCEPT], pull.as_bytes())
        .await;
    let mut pulled = reply.ok()[0].clone();
    let fields = pulled.as_object_mut().expect("an object");
    let id = fields.remove("prombusid").expect("an id");
    assert_eq!(fields.remove("prombusattempt"), Some(json!(1)));
    assert_eq!(fields.remove("prombusmaxattempts"), Some(json!(5)));
    assert_eq!(fields.remove("prombusackdeadlinems"), Some(json!(30_000)));
    assert_eq!(pulled, sent);
    let ack = json!({"topic": "t", "group": "g", "id": id}).to_string();
    let reply = client.post("/ack", &ack).await;
    assert!(reply.ok().get("failed").is_none(), "{}", reply.text());
    let lag = client.get("/lag?topic=t&group=g").await;
    assert_eq!(lag.ok()["lag"], 0);
}

#[tokio::test]
async fn server_sent_events_are_cloudevents_on_request() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let sent = event("1", "/a", 1);
    send(&mut client, "/publish/t", &sent).await.ok();
    let target = "/sse?topic=t&from=earliest";
    let accept = ("accept", "text/event-stream, application/cloudevents+json");
    client
        .send(super::client::head("GET", target, &[accept]).as_bytes())
        .await;
    let head = client.head().await;
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    let mut text = String::new();
    while !text.contains("\"data\"") {
        let chunk = client.chunk().await.expect("more").expect("more");
        text += std::str::from_utf8(&chunk).expect("text");
    }
    assert!(text.contains("\nid: 1\n"), "{text}");
    let data = text.split("data: ").nth(1).expect("data");
    let data: Value = serde_json::from_str(data.trim()).expect("JSON");
    assert_eq!(data, sent);
}
