//! PUBLISH, and ACK with `publish`, to a topic that has a schema.

use crate::support::{publish, serve, settle};
use prombus::RegisterSchema;
use serde_json::json;

#[tokio::test]
async fn what_does_not_fit_is_refused_with_the_path_and_the_connection_stays() {
    let served = serve().await;
    let bus = served.gateway.bus();
    let schema = r#"{"properties":{"n":{"type":"integer"}},"required":["n"]}"#;
    let registered = bus.register_schema("out", schema, RegisterSchema::default());
    registered.await.expect("registered");
    let mut socket = served.connect().await;
    let refused = socket.ask(publish("out", json!({"n": "x"}))).await;
    assert_eq!(
        (&refused["op"], &refused["code"]),
        (&json!("ERR"), &json!("schema_invalid"))
    );
    assert!(
        refused["msg"]
            .as_str()
            .expect("a message")
            .starts_with("/n: "),
        "{refused}"
    );
    let stored = socket.ask(publish("out", json!({"n": 1}))).await;
    assert_eq!(stored["seq"], 1);
    socket.subscribe("in", "g", json!({})).await;
    socket.publish("in", json!(1)).await;
    let event = socket.event().await;
    let mut step = settle("ACK", &event);
    step["publish"] = json!([{"topic": "out", "payload": {}}]);
    assert_eq!(socket.ask(step.clone()).await["code"], "schema_invalid");
    step["publish"] = json!([{"topic": "out", "payload": {"n": 2}}]);
    assert_eq!(socket.ask(step).await["op"], "OK");
    socket
        .subscribe("out", "g", json!({"from": "earliest"}))
        .await;
    for _ in 0..2 {
        let event = socket.event().await;
        assert_eq!(event["event"]["headers"], json!({"x-schema-version": "1"}));
    }
}
