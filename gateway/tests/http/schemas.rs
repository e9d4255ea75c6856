//! `/schemas`, and publishing to topics that have one.

use super::client::Client;
use super::server::Running;
use prombus_gateway::GatewayOptions;
use serde_json::{Value, json};

const NDJSON: (&str, &str) = ("content-type", "application/x-ndjson");

fn v1() -> Value {
    json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false})
}

/// One more property that may be left out.
fn v2() -> Value {
    let mut schema = v1();
    schema["properties"]["name"] = json!({"type": "string"});
    schema
}

async fn register(client: &mut Client, schema: &Value) -> Value {
    client.post("/schemas/t", &schema.to_string()).await.ok()
}

#[tokio::test]
async fn versions_are_registered_read_and_removed() {
    let server = Running::start().await;
    let mut client = server.client().await;
    client
        .get("/schemas/t")
        .await
        .is_error(404, "unknown_schema");
    let expected =
        json!({"topic": "t", "version": 1, "unchanged": false, "compatibility": "backward"});
    assert_eq!(register(&mut client, &v1()).await, expected);
    assert_eq!(register(&mut client, &v1()).await["unchanged"], true);
    assert_eq!(register(&mut client, &v2()).await["version"], 2);
    let list = json!({"schemas": [{"topic": "t", "compatibility": "backward", "latest": 2, "versions": [1, 2]}]});
    assert_eq!(client.get("/schemas").await.ok(), list);
    let all = client.get("/schemas/t").await.ok();
    assert_eq!(
        (&all["latest"], &all["versions"][0]["schema"]),
        (&json!(2), &v1())
    );
    assert_eq!(client.get("/schemas/t/1").await.ok()["schema"], v1());
    assert_eq!(client.get("/schemas/t/latest").await.ok()["version"], 2);
    client
        .get("/schemas/t/3")
        .await
        .is_error(404, "unknown_schema");
    for version in ["0", "x", "-1"] {
        let path = format!("/schemas/t/{version}");
        client.get(&path).await.is_error(400, "bad_frame");
    }
    let removed = client.request("DELETE", "/schemas/t/2", &[], b"").await;
    assert_eq!(removed.head.status, 204);
    assert_eq!(client.get("/schemas/t").await.ok()["latest"], 1);
    let removed = client.request("DELETE", "/schemas/t", &[], b"").await;
    assert_eq!(removed.head.status, 204);
    let removed = client.request("DELETE", "/schemas/t", &[], b"").await;
    removed.is_error(404, "unknown_schema");
    assert_eq!(client.get("/schemas").await.ok(), json!({"schemas": []}));
}

#[tokio::test]
async fn what_may_not_be_registered_is_refused_with_the_reason() {
    let server = Running::start().await;
    let mut client = server.client().await;
    register(&mut client, &v2()).await;
    let narrower = v1().to_string();
    let refused = client.post("/schemas/t", &narrower).await;
    assert!(
        refused.text().contains("additional_properties_narrowed"),
        "{}",
        refused.text()
    );
    refused.is_error(409, "schema_incompatible");
    for schema in [
        "{",
        "[]",
        r#"{"$ref":"https://example.com/x"}"#,
        r#"{"type":"text"}"#,
    ] {
        client
            .post("/schemas/t", schema)
            .await
            .is_error(400, "bad_schema");
    }
    client
        .post("/schemas/dlq.t", &narrower)
        .await
        .is_error(400, "bad_frame");
    client
        .post("/schemas/t?compatibility=sideways", &narrower)
        .await
        .is_error(400, "bad_frame");
    client
        .post("/schemas/t?nothing=1", &narrower)
        .await
        .is_error(400, "bad_frame");
    let forward = client
        .post("/schemas/t?compatibility=forward", &narrower)
        .await
        .ok();
    assert_eq!(
        (&forward["version"], &forward["compatibility"]),
        (&json!(2), &json!("forward"))
    );
    assert_eq!(
        client.get("/topics/t").await.ok()["config"]["schema"],
        "forward"
    );
    let kept = client.request("PUT", "/topics/t", &[], b"{}").await.ok();
    assert_eq!(
        kept["config"]["schema"], "forward",
        "older clients do not know it"
    );
    let put = client
        .request("PUT", "/topics/t", &[], br#"{"schema":"full"}"#)
        .await
        .ok();
    assert_eq!(put["config"]["schema"], "full");
    let bad = client
        .request("PUT", "/topics/t", &[], br#"{"schema":"x"}"#)
        .await;
    bad.is_error(400, "bad_frame");
    assert_eq!(client.get("/schemas/t").await.ok()["compatibility"], "full");
}

#[tokio::test]
async fn a_check_and_a_dry_run_register_nothing() {
    let server = Running::start().await;
    let mut client = server.client().await;
    client.post("/publish/t", r#"{"n":1}"#).await.ok();
    let id = client.post("/publish/t", r#"{"n":"x"}"#).await.ok()["id"].clone();
    let dry = client
        .post("/schemas/t?dry_run=1", &v1().to_string())
        .await
        .ok();
    assert_eq!(
        (&dry["compatible"], &dry["findings"]),
        (&json!(true), &json!([]))
    );
    let retained = &dry["retained"];
    assert_eq!(
        (&retained["checked"], &retained["failing"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(retained["first_failing"][0]["id"], id);
    assert_eq!(retained["first_failing"][0]["path"], "/n");
    client
        .get("/schemas/t")
        .await
        .is_error(404, "unknown_schema");
    register(&mut client, &v2()).await;
    let check = client
        .post("/schemas/t/check", &v1().to_string())
        .await
        .ok();
    assert_eq!(
        (&check["compatible"], &check["latest"]),
        (&json!(false), &json!(1))
    );
    assert_eq!(
        check["findings"][0]["rule"],
        "additional_properties_narrowed"
    );
    assert_eq!(check["findings"][0]["proven"], true);
    assert!(
        check["reason"]
            .as_str()
            .expect("a reason")
            .starts_with("not backward compatible with version 1")
    );
    let check = client
        .post("/schemas/t/check?compatibility=none", "true")
        .await
        .ok();
    assert_eq!(check["compatible"], true);
    assert_eq!(client.get("/schemas/t").await.ok()["latest"], 1);
}

#[tokio::test]
async fn published_events_are_held_against_the_schema() {
    let server = Running::start().await;
    let mut client = server.client().await;
    register(&mut client, &v1()).await;
    register(&mut client, &v2()).await;
    client.post("/publish/t", r#"{"n":1}"#).await.ok();
    let refused = client.post("/publish/t", r#"{"n":"x"}"#).await;
    assert!(refused.text().contains("/n: "), "{}", refused.text());
    refused.is_error(400, "schema_invalid");
    let older = [("x-schema-version", "1")];
    let old = client
        .request("POST", "/publish/t", &older, br#"{"n":1}"#)
        .await;
    old.ok();
    let new = client
        .request("POST", "/publish/t", &older, br#"{"n":1,"name":"x"}"#)
        .await;
    new.is_error(400, "schema_invalid");
    let events = client.get("/replay?topic=t").await.ok()["events"].clone();
    let stamps: Vec<&Value> = events
        .as_array()
        .expect("events")
        .iter()
        .map(|event| &event["headers"]["x-schema-version"])
        .collect();
    assert_eq!(stamps, ["2", "1"]);
}

#[tokio::test]
async fn lines_that_do_not_fit_are_told_and_the_others_stored() {
    let server = Running::start().await;
    let mut client = server.client().await;
    register(&mut client, &v1()).await;
    let body = "{\"n\":1}\n{\"n\":\"x\"}\n{\"n\":2}\n";
    let reply = client
        .request("POST", "/publish/t", &[NDJSON], body.as_bytes())
        .await
        .ok();
    assert_eq!(
        (&reply["published"], &reply["failed"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(
        (&reply["errors"][0]["line"], &reply["errors"][0]["code"]),
        (&json!(2), &json!("schema_invalid"))
    );
    let exported = client.get("/export?topic=t").await.text();
    client.post("/schemas/copy", &v1().to_string()).await.ok();
    let records = format!("{exported}{{\"id\":\"bad\",\"payload\":{{}}}}\n");
    let reply = client
        .request("POST", "/import?topic=copy", &[NDJSON], records.as_bytes())
        .await
        .ok();
    assert_eq!(
        (&reply["published"], &reply["failed"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(reply["errors"][0]["code"], "schema_invalid");
}

#[tokio::test]
async fn reading_needs_subscribe_and_changing_needs_admin() {
    let server = Running::with_scopes(GatewayOptions::default()).await;
    let mut client = server.client().await;
    let schema = v1().to_string();
    for (scopes, method, path, expected) in [
        ("subscribe:t", "POST", "/schemas/t", 403),
        ("publish:t", "POST", "/schemas/t", 403),
        ("admin:u", "POST", "/schemas/t", 403),
        ("admin:t", "POST", "/schemas/t", 200),
        ("publish:t", "GET", "/schemas/t", 403),
        ("subscribe:t", "GET", "/schemas/t", 200),
        ("subscribe:u", "GET", "/schemas/t/1", 403),
        ("subscribe:t", "GET", "/schemas/t/1", 200),
        ("subscribe:t", "POST", "/schemas/t/check", 200),
        ("publish:t", "POST", "/schemas/t/check", 403),
        ("subscribe:t", "POST", "/schemas/t?dry_run=1", 403),
        ("subscribe:t", "DELETE", "/schemas/t/1", 403),
        ("subscribe:t", "DELETE", "/schemas/t", 403),
        ("admin:t", "DELETE", "/schemas/t", 204),
    ] {
        let token = format!("Bearer {scopes}");
        let body = if method == "POST" {
            schema.as_bytes()
        } else {
            b""
        };
        let reply = client
            .request(method, path, &[("authorization", &token)], body)
            .await;
        assert_eq!(
            reply.head.status,
            expected,
            "{scopes} {method} {path}: {}",
            reply.text()
        );
    }
    let headers = [("authorization", "Bearer admin:t")];
    client
        .request("POST", "/schemas/t", &headers, schema.as_bytes())
        .await
        .ok();
    let headers = [("authorization", "Bearer subscribe:u")];
    let list = client.request("GET", "/schemas", &headers, b"").await.ok();
    assert_eq!(list, json!({"schemas": []}), "others see nothing of it");
}

#[tokio::test]
async fn an_envelope_publishes_an_event_in_two_versions_or_in_none() {
    let server = Running::start().await;
    let mut client = server.client().await;
    register(&mut client, &v1()).await;
    let envelope = |n: Value| {
        let also = json!([{"topic": "t", "payload": {"n": n}}]);
        json!({"payload": [n], "id": "a", "key": "k", "also_publish": also}).to_string()
    };
    let target = "/publish/old?envelope=1&expect_seq=0";
    let refused = client.post(target, &envelope(json!("x"))).await;
    refused.is_error(400, "schema_invalid");
    let topics = client.get("/topics/old").await;
    topics.is_error(404, "unknown_topic");
    let stored = client.post(target, &envelope(json!(1))).await.ok();
    assert_eq!(
        (&stored["topic"], &stored["seq"]),
        (&json!("old"), &json!(1))
    );
    let also = &stored["published"][0];
    assert_eq!(
        (
            &also["topic"],
            &also["id"],
            &also["seq"],
            &also["durability"]
        ),
        (&json!("t"), &json!("a"), &json!(1), &json!("memory"))
    );
    // Without other versions an envelope is a payload with its options.
    let plain = r#"{"payload": {"n": 2}, "headers": {"h": "v"}}"#;
    let headers = [("x-trace", "z"), ("content-type", "application/json")];
    let plain = client.request(
        "POST",
        "/publish/t?envelope=1&key=q",
        &headers,
        plain.as_bytes(),
    );
    assert_eq!(plain.await.ok()["seq"], 2);
    let events = client.get("/replay?topic=t&from=earliest").await.ok();
    let event = &events["events"][1];
    assert_eq!(
        (
            &event["key"],
            &event["headers"]["h"],
            &event["headers"]["x-trace"]
        ),
        (&json!("q"), &json!("v"), &json!("z"))
    );
    for bad in ["1", "{}", r#"{"payload":1,"opts":{}}"#] {
        let refused = client.post("/publish/old?envelope=1", bad).await;
        refused.is_error(400, "bad_frame");
    }
    let line = envelope(json!(3));
    let lines = client.request(
        "POST",
        "/publish/old?envelope=1",
        &[NDJSON],
        line.as_bytes(),
    );
    let lines = lines.await.ok();
    assert_eq!(lines["errors"][0]["code"], "bad_frame", "{lines}");
}

#[tokio::test]
async fn other_versions_go_only_where_the_token_may_publish() {
    let server = Running::with_scopes(GatewayOptions::default()).await;
    let mut client = server.client().await;
    let body = r#"{"payload":1,"also_publish":[{"topic":"new","payload":1}]}"#;
    let token = [("authorization", "Bearer publish:old")];
    let target = "/publish/old?envelope=1";
    let refused = client.request("POST", target, &token, body.as_bytes());
    refused.await.is_error(403, "forbidden");
    assert!(server.bus().topic("old").is_err(), "nothing was stored");
}
