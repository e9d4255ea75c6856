//! PUBLISH, and ACK with `publish`, to a topic that has a schema.

use crate::support::{publish, serve, settle};
use prombus::{Compatibility, RegisterSchema};
use serde_json::{Value, json};

#[tokio::test]
async fn events_of_earlier_versions_come_as_ones_of_the_latest_to_who_asks_for_it() {
    let served = serve().await;
    let bus = served.gateway.bus();
    let options = RegisterSchema {
        compatibility: Some(Compatibility::None),
    };
    let v1 = r#"{"properties":{"name":{"type":"string"}},"required":["name"]}"#;
    let v2 = r#"{"required":["title"],"x-upcast":[{"rename":{"from":"/name","to":"title"}}]}"#;
    let mut socket = served.connect().await;
    let registered = bus.register_schema("t", v1, options).await;
    registered.expect("registered");
    socket.publish("t", json!({"name": "x"})).await;
    let registered = bus.register_schema("t", v2, options).await;
    registered.expect("registered");
    for (group, upcast, payload) in [
        ("plain", json!({"from": "earliest"}), json!({"name": "x"})),
        (
            "lifted",
            json!({"from": "earliest", "upcast": true}),
            json!({"title": "x"}),
        ),
    ] {
        socket.subscribe("t", group, upcast).await;
        let event = socket.event().await;
        assert_eq!(event["group"], group);
        assert_eq!(event["event"]["payload"], payload);
        assert_eq!(socket.ask(settle("ACK", &event)).await["op"], "OK");
    }
}

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

#[tokio::test]
async fn an_event_is_published_in_two_versions_or_in_none() {
    let served = serve().await;
    let bus = served.gateway.bus();
    let schema = r#"{"properties":{"n":{"type":"integer"}},"required":["n"]}"#;
    let registered = bus.register_schema("new", schema, RegisterSchema::default());
    registered.await.expect("registered");
    let mut socket = served.connect().await;
    let dual = |id: &str, n: Value| {
        let also = json!([{"topic": "new", "payload": {"n": n}}]);
        json!({"op":"PUBLISH","topic":"old","payload":[n],"corr":"c",
            "opts":{"id":id,"key":"k","headers":{"h":"v"},"expect_seq":0,"also_publish":also}})
    };
    // The second is refused, and the first is not stored.
    let refused = socket.ask(dual("a", json!("x"))).await;
    assert_eq!(refused["code"], "schema_invalid");
    let message = refused["msg"].as_str().expect("a message");
    assert!(message.starts_with("also_publish[0]: /n: "), "{message}");
    let stored = socket.ask(dual("a", json!(1))).await;
    assert!(stored["ts"].is_u64(), "{stored}");
    assert_eq!(
        (&stored["op"], &stored["id"], &stored["seq"]),
        (&json!("OK"), &json!("a"), &json!(1))
    );
    let published = json!([{"topic": "new", "id": "a", "seq": 1}]);
    assert_eq!(stored["published"], published);
    let again = socket.ask(dual("a", json!(1))).await;
    assert_eq!(
        (&again["duplicate"], &again["published"][0]["duplicate"]),
        (&json!(true), &json!(true))
    );
    let behind = socket.ask(dual("b", json!(2))).await;
    assert_eq!(
        (&behind["code"], &behind["actual"]),
        (&json!("seq_mismatch"), &json!(1))
    );
    for (topic, payload) in [("old", json!([1])), ("new", json!({"n": 1}))] {
        socket
            .subscribe(topic, "g", json!({"from": "earliest"}))
            .await;
        let event = socket.event().await["event"].clone();
        assert_eq!(
            (&event["payload"], &event["key"], &event["headers"]["h"]),
            (&payload, &json!("k"), &json!("v"))
        );
        let topic_tail = bus.store().topic(topic).map(|info| info.tail_seq);
        assert_eq!(topic_tail, Some(1), "nothing else was stored in {topic}");
    }
}

#[tokio::test]
async fn other_versions_are_neither_scheduled_nor_many_nor_part_of_a_step() {
    let served = serve().await;
    let mut socket = served.connect().await;
    let also = |count: usize| vec![json!({"topic": "u", "payload": 1}); count];
    let dual = |opts: Value| json!({"op":"PUBLISH","topic":"t","payload":1,"corr":"c","opts":opts});
    for opts in [
        json!({"also_publish": also(17)}),
        json!({"also_publish": also(1), "delay_ms": 5}),
        json!({"also_publish": [{"topic": "u"}]}),
        json!({"also_publish": [{"topic": "u", "payload": 1, "opts": {}}]}),
    ] {
        let refused = socket.ask(dual(opts.clone())).await;
        assert_eq!(refused["code"], "bad_frame", "{opts}");
    }
    let bad_name = json!({"also_publish": [{"topic": "u..", "payload": 1}]});
    assert_eq!(socket.ask(dual(bad_name)).await["code"], "bad_topic");
    let bad_json = json!({"op":"PUBLISH","topic":"t","payload":1,"corr":"c"}).to_string();
    let bad_json = bad_json.replace(
        '}',
        r#","opts":{"also_publish":[{"topic":"u","payload":tru}]}}"#,
    );
    socket.send_text(&bad_json).await;
    let code = socket.reply().await["code"].clone();
    assert!(code == "bad_json" || code == "bad_frame", "{code}");
    assert!(served.gateway.bus().store().topic("t").is_none());
    socket.subscribe("in", "g", json!({})).await;
    socket.publish("in", json!(1)).await;
    let event = socket.event().await;
    let mut step = settle("ACK", &event);
    let opts = json!({"also_publish": also(1)});
    step["publish"] = json!([{"topic": "t", "payload": 1, "opts": opts}]);
    assert_eq!(socket.ask(step).await["code"], "bad_frame");
    let most = socket.ask(dual(json!({"also_publish": also(16)}))).await;
    assert_eq!(most["published"].as_array().map(Vec::len), Some(16));
}
