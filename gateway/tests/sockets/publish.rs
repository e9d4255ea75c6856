//! PUBLISH: replies in order, duplicates, refusals in the middle, pipelines on a store that waits for the disk.

use crate::support::{publish, serve, serve_store};
use prombus::{BusOptions, SystemClock};
use prombus_gateway::GatewayOptions;
use prombus_gateway::auth::Authenticator;
use prombus_log::FileStore;
use serde_json::{Value, json};
use std::sync::Arc;

#[tokio::test]
async fn a_publish_is_answered_with_id_and_seq() {
    let served = serve().await;
    let mut socket = served.connect().await;
    let frame = json!({"op":"PUBLISH","topic":"t","payload":{"a":1.50},"corr":"1","opts":{
        "id":"own-1","ts":5,"key":"k","headers":{"h":"v"},"tags":["#t"],"caused_by":["c"],"sid":"s"}});
    let reply = socket.ask(frame.clone()).await;
    assert_eq!(
        reply,
        json!({"op":"OK","corr":"1","id":"own-1","seq":1,"ts":5})
    );
    let reply = socket.ask(frame.clone()).await;
    assert_eq!(
        reply,
        json!({"op":"OK","corr":"1","id":"own-1","seq":1,"ts":5,"duplicate":true})
    );
    let mut other = frame;
    other["payload"] = json!(2);
    assert_eq!(socket.ask(other).await["code"], "id_conflict");
    socket.subscribe("t", "g", json!({"from":"earliest"})).await;
    let event = socket.event().await;
    let record = json!({"id":"own-1","sid":"s","ts":5,"topic":"t","seq":1,"key":"k","headers":{"h":"v"},
        "payload":{"a":1.50},"caused_by":["c"],"tags":["#t"]});
    assert_eq!(event["event"], record);
    assert_eq!(
        event["ctx"],
        json!({"attempt":1,"maxAttempts":5,"ack_deadline_ms":30000})
    );
    assert_eq!(
        (&event["topic"], &event["group"]),
        (&json!("t"), &json!("g"))
    );
}

#[tokio::test]
async fn replies_come_in_the_order_sent_also_where_some_are_refused() {
    let served = serve().await;
    let mut socket = served.connect().await;
    let mut frames: Vec<Value> = Vec::new();
    for number in 0..300 {
        let mut frame = match number % 7 {
            3 => publish("not a topic", json!(number)),
            5 => json!({"op":"NOPE"}),
            6 => json!({"op":"ACK","topic":"t","group":"none","id":"x"}),
            _ => publish(["a", "b"][number % 2], json!(number)),
        };
        frame["corr"] = json!(number.to_string());
        frames.push(frame);
    }
    let singles: Vec<u8> = frames[..150]
        .iter()
        .flat_map(|frame| crate::support::masked(0x81, frame.to_string().as_bytes()))
        .collect();
    socket.send_raw(&singles).await;
    socket.send(Value::Array(frames[150..].to_vec())).await;
    for number in 0..300 {
        let reply = socket.reply().await;
        assert_eq!(reply["corr"], json!(number.to_string()), "{reply}");
        match number % 7 {
            3 => assert_eq!(reply["code"], "bad_topic"),
            5 => assert_eq!(reply["code"], "unknown_op"),
            6 => assert_eq!(reply["code"], "not_subscribed"),
            _ => assert_eq!(reply["op"], "OK", "{reply}"),
        }
    }
}

#[tokio::test]
async fn a_pipeline_on_disk_is_answered_in_order_and_all_of_it_is_there() {
    let directory = tempfile::tempdir().expect("a directory");
    let (store, _) = FileStore::open(directory.path()).expect("it opens");
    let off = Authenticator::off();
    let served = serve_store(
        Arc::new(store),
        BusOptions::default(),
        off,
        GatewayOptions::default(),
    )
    .await;
    let mut socket = served.connect().await;
    for number in 1..=2_000 {
        let mut frame = publish("durable", json!(number));
        frame["corr"] = json!(number.to_string());
        socket.send(frame).await;
        // A frame of another kind keeps its place behind those before it.
        if number % 500 == 0 {
            socket
                .send(json!({"op":"AUTH","corr":format!("auth {number}")}))
                .await;
        }
    }
    for number in 1..=2_000 {
        let reply = socket.reply().await;
        assert_eq!(reply["corr"], json!(number.to_string()));
        assert_eq!(reply["seq"], json!(number));
        if number % 500 == 0 {
            let reply = socket.reply().await;
            assert_eq!(reply, json!({"op":"OK","corr":format!("auth {number}")}));
        }
    }
    socket
        .subscribe(
            "durable",
            "g",
            json!({"from":"earliest","maxInFlight":5000}),
        )
        .await;
    for number in 1..=2_000 {
        assert_eq!(socket.event().await["event"]["payload"], json!(number));
    }
}

#[tokio::test]
async fn what_is_wrong_with_an_event_is_told() {
    let served = serve().await;
    let mut socket = served.connect().await;
    let many: serde_json::Map<String, Value> =
        (0..65).map(|at| (format!("h{at}"), json!("v"))).collect();
    for (frame, code) in [
        (json!({"op":"PUBLISH","payload":1}), "bad_frame"),
        (json!({"op":"PUBLISH","topic":"t"}), "bad_frame"),
        (json!({"op":"PUBLISH","topic":"","payload":1}), "bad_topic"),
        (
            json!({"op":"PUBLISH","topic":"a.*","payload":1}),
            "bad_topic",
        ),
        (
            json!({"op":"PUBLISH","topic":"t","payload":1,"opts":{"id":""}}),
            "bad_frame",
        ),
        (
            json!({"op":"PUBLISH","topic":"t","payload":1,"opts":{"ts":-1}}),
            "bad_frame",
        ),
        (
            json!({"op":"PUBLISH","topic":"t","payload":1,"opts":{"headers":many}}),
            "too_large",
        ),
        (
            json!({"op":"PUBLISH","topic":"t","payload":1,"opts":{"key":"k".repeat(513)}}),
            "too_large",
        ),
        (publish("t", json!("x".repeat(1_100_000))), "too_large"),
    ] {
        let reply = socket.ask(frame).await;
        assert_eq!(
            (&reply["op"], &reply["code"]),
            (&json!("ERR"), &json!(code)),
            "{reply}"
        );
    }
    let deep = format!(
        r#"{{"op":"PUBLISH","topic":"t","payload":{}1{}}}"#,
        "[".repeat(129),
        "]".repeat(129)
    );
    socket.send_text(&deep).await;
    assert_eq!(socket.reply().await["code"], "bad_json");
    socket
        .send_text(r#"{"op":"PUBLISH","topic":"t","payload":01}"#)
        .await;
    assert_eq!(socket.reply().await["code"], "bad_json");
    assert_eq!(
        socket.publish("t", json!(1)).await["seq"],
        1,
        "nothing of that was stored"
    );
}

#[tokio::test]
async fn a_topic_that_may_not_be_made_is_unknown() {
    let store = Arc::new(prombus_store::memory::MemoryStore::new(Arc::new(
        SystemClock,
    )));
    let bus_options = BusOptions {
        auto_create_topics: false,
        ..BusOptions::default()
    };
    let options = GatewayOptions::default();
    let served = serve_store(store, bus_options, Authenticator::off(), options).await;
    let mut socket = served.connect().await;
    assert_eq!(
        socket.ask(publish("t", json!(1))).await["code"],
        "unknown_topic"
    );
    let reply = socket
        .ask(json!({"op":"SUBSCRIBE","topic":"t","group":"g"}))
        .await;
    assert_eq!(reply["code"], "unknown_topic");
}

#[tokio::test]
async fn a_store_that_takes_nothing_is_a_failed_publish() {
    let served = serve().await;
    let mut socket = served.connect().await;
    socket.publish("t", json!(1)).await;
    served
        .gateway
        .bus()
        .store()
        .close()
        .await
        .expect("it closes");
    let reply = socket.ask(publish("t", json!(2))).await;
    assert_eq!(reply["code"], "shutting_down", "{reply}");
}

#[tokio::test]
async fn expectations_are_compared_event_by_event() {
    let served = serve().await;
    let mut socket = served.connect().await;
    let frame = |payload: u32, opts: Value| json!({"op":"PUBLISH","topic":"t","payload":payload,"corr":"c","opts":opts});
    // In one message, so that they share a batch.
    let frames = json!([
        frame(1, json!({"key":"a","expect_seq":0})),
        frame(2, json!({"key":"a","expect_key_seq":0})),
        frame(3, json!({"key":"a","expect_key_seq":1})),
        frame(4, json!({"expect_key_seq":1})),
        frame(5, json!({"key":"b","expect_seq":2,"expect_key_seq":0})),
    ]);
    socket.send(frames).await;
    assert_eq!(socket.reply().await["seq"], 1);
    let refused = socket.reply().await;
    assert_eq!(
        (&refused["code"], &refused["actual"]),
        (&json!("seq_mismatch"), &json!(1))
    );
    assert_eq!(socket.reply().await["seq"], 2);
    assert_eq!(socket.reply().await["code"], "bad_frame");
    assert_eq!(socket.reply().await["seq"], 3);
}

#[tokio::test]
async fn a_scheduled_event_is_answered_in_its_turn_and_comes_when_it_is_due() {
    let served = serve().await;
    let mut socket = served.connect().await;
    socket.subscribe("t", "g", json!({})).await;
    let frame =
        |opts: Value| json!({"op":"PUBLISH","topic":"t","payload":1,"corr":"c","opts":opts});
    let frames = json!([
        frame(json!({"id":"first"})),
        frame(json!({"id":"later","delay_ms":1_000_000_000})),
        frame(json!({"id":"soon","deliver_at":5})),
        frame(json!({"every":"often"})),
        frame(json!({"id":"last"})),
    ]);
    socket.send(frames).await;
    assert_eq!(socket.reply().await["id"], "first");
    let later = socket.reply().await;
    assert_eq!(
        (&later["id"], &later["scheduled"]),
        (&json!("later"), &json!(true))
    );
    assert!(
        later["due"].is_u64() && later.get("seq").is_none(),
        "{later}"
    );
    let soon = json!({"op":"OK","corr":"c","id":"soon","scheduled":true,"due":5});
    assert_eq!(socket.reply().await, soon);
    assert_eq!(socket.reply().await["code"], "bad_frame");
    assert_eq!(socket.reply().await["id"], "last");
    let mut ids: Vec<Value> = Vec::new();
    for _ in 0..3 {
        ids.push(socket.event().await["event"]["id"].clone());
    }
    assert!(ids.contains(&json!("soon")), "{ids:?}");
    let event = json!({"topic":"t","payload":1,"opts":{"delay_ms":1}});
    let ack = json!({"op":"ACK","topic":"t","group":"g","id":"first","corr":"a","publish":[event]});
    assert_eq!(socket.ask(ack).await["code"], "bad_frame");
}
