//! SUBSCRIBE with its options, and what is delivered for them.

use crate::support::{publish, serve, settle};
use serde_json::{Value, json};

#[tokio::test]
async fn a_new_group_begins_where_from_says() {
    let served = serve().await;
    let mut socket = served.connect().await;
    let mut ids = Vec::new();
    for number in 1..=5 {
        let frame = json!({"op":"PUBLISH","topic":"t","payload":number,"opts":{"ts":number * 10}});
        ids.push(socket.ask(frame).await["id"].clone());
    }
    for (group, options, first) in [
        ("earliest", json!({"from":"earliest"}), 1),
        ("ts", json!({"from":"ts","ts":25}), 3),
        ("exact", json!({"from":"ts","ts":30}), 3),
        ("after", json!({"from":"afterId","afterId":ids[3]}), 5),
        ("seq", json!({"from":"seq","seq":2}), 2),
        ("bare", json!({"seq":4}), 4),
    ] {
        socket.subscribe("t", group, options).await;
        let event = socket.event().await;
        assert_eq!(event["group"], group);
        assert_eq!(event["event"]["seq"], first, "{group}");
        socket
            .ask(json!({"op":"UNSUBSCRIBE","topic":"t","group":group}))
            .await;
        socket.events.clear();
    }
    socket.subscribe("t", "latest", json!({})).await;
    socket.silence(50).await;
    socket.publish("t", json!("new")).await;
    assert_eq!(socket.event().await["event"]["seq"], 6);
}

#[tokio::test]
async fn an_existing_group_goes_on_from_its_cursor() {
    let served = serve().await;
    let mut socket = served.connect().await;
    for number in 1..=3 {
        socket.publish("t", json!(number)).await;
    }
    socket
        .subscribe("t", "g", json!({"from":"earliest","maxInFlight":1}))
        .await;
    let event = socket.event().await;
    assert_eq!(socket.ask(settle("ACK", &event)).await["op"], "OK");
    assert_eq!(socket.event().await["event"]["seq"], 2);
    drop(socket);
    let mut other = served.connect().await;
    other.subscribe("t", "g", json!({"from":"earliest"})).await;
    let event = other.event().await;
    assert_eq!(
        (&event["event"]["seq"], &event["ctx"]["attempt"]),
        (&json!(2), &json!(2))
    );
}

#[tokio::test]
async fn a_subscription_without_a_group_is_named_and_leaves_nothing() {
    let served = serve().await;
    let mut socket = served.connect().await;
    let reply = socket
        .ask(json!({"op":"SUBSCRIBE","topic":"t","corr":"s"}))
        .await;
    let group = reply["group"].as_str().expect("a name").to_owned();
    socket.publish("t", json!(1)).await;
    let event = socket.event().await;
    assert_eq!(event["group"], json!(group));
    assert_eq!(socket.ask(settle("ACK", &event)).await["op"], "OK");
    let labels = format!("events_acked_total{{topic=\"t\",group=\"{group}\"}}");
    assert_eq!(served.metric(&labels), Some(1.0));
    drop(socket);
    served
        .until("its counts are forgotten", |_| {
            served.metric(&labels).is_none()
        })
        .await;
    let groups = served
        .gateway
        .bus()
        .groups("t")
        .await
        .expect("they are listed");
    assert!(groups.is_empty(), "{groups:?}");
}

#[tokio::test]
async fn wrong_subscriptions_are_refused() {
    let served = serve().await;
    let mut socket = served.connect().await;
    socket.publish("t", json!(1)).await;
    let subscribe = |topic: &str, group: &str, options: Value| json!({"op":"SUBSCRIBE","topic":topic,"group":group,"opts":options,"corr":"c"});
    for (frame, code) in [
        (subscribe("a b", "g", json!({})), "bad_topic"),
        (subscribe("a.**b", "g", json!({})), "bad_topic"),
        (subscribe("t", "g g", json!({})), "bad_group"),
        (subscribe("t", "g", json!({"from":"now"})), "bad_frame"),
        (subscribe("t", "g", json!({"batchSize":0})), "bad_frame"),
        (
            subscribe("t", "g", json!({"ordering":"topic"})),
            "bad_frame",
        ),
        (
            subscribe("t", "g", json!({"filter":{"keys":"x"}})),
            "bad_frame",
        ),
        (
            subscribe("t", "g", json!({"filter":{"key":"a**"}})),
            "bad_frame",
        ),
        (subscribe("t", "g", json!({"afterId":"none"})), "unknown_id"),
        (json!({"op":"SUBSCRIBE","corr":"c"}), "bad_frame"),
        (
            json!({"op":"UNSUBSCRIBE","topic":"t","group":"g","corr":"c"}),
            "not_subscribed",
        ),
        (
            json!({"op":"PAUSE","topic":"t","group":"g","corr":"c"}),
            "not_subscribed",
        ),
        (
            json!({"op":"RESUME","topic":"t","group":"g","corr":"c"}),
            "not_subscribed",
        ),
    ] {
        let reply = socket.ask(frame.clone()).await;
        assert_eq!(
            (&reply["code"], &reply["corr"]),
            (&json!(code), &json!("c")),
            "{frame} {reply}"
        );
    }
    socket.subscribe("t", "g", json!({})).await;
    let reply = socket.ask(subscribe("t", "g", json!({}))).await;
    assert_eq!(reply["code"], "already_subscribed");
    socket.subscribe("t", "h", json!({})).await;
}

#[tokio::test]
async fn no_more_than_max_in_flight_is_out_at_a_time() {
    let served = serve().await;
    let mut socket = served.connect().await;
    for number in 0..150 {
        socket.publish("t", json!(number)).await;
    }
    socket
        .subscribe("t", "default", json!({"from":"earliest"}))
        .await;
    let mut first = Value::Null;
    for _ in 0..100 {
        first = socket.event().await;
    }
    socket.silence(50).await;
    socket.send(settle("ACK", &first)).await;
    socket.reply().await;
    assert_eq!(socket.event().await["event"]["payload"], 100);
    socket.silence(50).await;
    socket
        .subscribe("t", "few", json!({"from":"earliest","maxInFlight":2}))
        .await;
    socket.event().await;
    socket.event().await;
    socket.silence(50).await;
}

#[tokio::test]
async fn a_filter_lets_only_through_what_fits() {
    let served = serve().await;
    let mut socket = served.connect().await;
    let filter = json!({"key":"web-*","headers":{"eu":"1"},"tags":["#a"]});
    socket.subscribe("t", "g", json!({"filter":filter})).await;
    for (payload, options) in [
        ("no key", json!({"headers":{"eu":"1"},"tags":["#a"]})),
        (
            "other tag",
            json!({"key":"web-1","headers":{"eu":"1"},"tags":["#b"]}),
        ),
        (
            "other header",
            json!({"key":"web-1","headers":{"eu":"2"},"tags":["#a"]}),
        ),
        (
            "fits",
            json!({"key":"web-1","headers":{"eu":"1","x":"y"},"tags":["#b","#a"]}),
        ),
    ] {
        socket
            .ask(json!({"op":"PUBLISH","topic":"t","payload":payload,"opts":options}))
            .await;
    }
    assert_eq!(socket.event().await["event"]["payload"], "fits");
    socket.silence(50).await;
}

#[tokio::test]
async fn ordering_by_key_has_one_event_of_a_key_under_way() {
    let served = serve().await;
    let mut socket = served.connect().await;
    socket.subscribe("t", "g", json!({"ordering":"key"})).await;
    for number in 1..=6 {
        let key = ["a", "b"][number % 2];
        socket
            .ask(json!({"op":"PUBLISH","topic":"t","payload":number,"opts":{"key":key}}))
            .await;
    }
    let (first, second) = (socket.event().await, socket.event().await);
    assert_eq!(
        (&first["event"]["payload"], &second["event"]["payload"]),
        (&json!(1), &json!(2))
    );
    socket.silence(50).await;
    let mut nack = settle("NACK", &first);
    nack["delay_ms"] = json!(0);
    socket.ask(nack).await;
    let again = socket.event().await;
    assert_eq!(
        (&again["event"]["payload"], &again["ctx"]["attempt"]),
        (&json!(1), &json!(2))
    );
    for next in [3, 5] {
        let latest = if next == 3 {
            again.clone()
        } else {
            socket.events.pop_front().expect("kept")
        };
        socket.ask(settle("ACK", &latest)).await;
        let event = socket.event().await;
        assert_eq!(event["event"]["payload"], next);
        socket.events.push_back(event);
    }
}

#[tokio::test]
async fn a_paused_subscription_gets_nothing_until_it_is_resumed() {
    let served = serve().await;
    let mut socket = served.connect().await;
    socket.subscribe("t", "g", json!({})).await;
    socket.subscribe("t", "other", json!({})).await;
    let reply = socket
        .ask(json!({"op":"PAUSE","topic":"t","group":"g","corr":"p"}))
        .await;
    assert_eq!(reply, json!({"op":"OK","corr":"p"}));
    socket.publish("t", json!(1)).await;
    assert_eq!(socket.event().await["group"], "other");
    socket.silence(50).await;
    let reply = socket
        .ask(json!({"op":"RESUME","topic":"t","group":"g","corr":"r"}))
        .await;
    assert_eq!(reply, json!({"op":"OK","corr":"r"}));
    assert_eq!(socket.event().await["group"], "g");
}

#[tokio::test]
async fn members_of_a_group_share_and_groups_do_not() {
    let served = serve().await;
    let (mut one, mut two, mut other) = (
        served.connect().await,
        served.connect().await,
        served.connect().await,
    );
    for socket in [&mut one, &mut two] {
        socket
            .subscribe("t", "shared", json!({"maxInFlight":5}))
            .await;
    }
    other.subscribe("t", "own", json!({})).await;
    for number in 0..10 {
        other.send(publish("t", json!(number))).await;
        other.reply().await;
    }
    let mut seen = Vec::new();
    for _ in 0..5 {
        seen.push(one.event().await["event"]["payload"].as_u64());
        seen.push(two.event().await["event"]["payload"].as_u64());
    }
    seen.sort();
    assert_eq!(seen, (0..10).map(Some).collect::<Vec<_>>());
    for number in 0..10 {
        assert_eq!(other.event().await["event"]["payload"], number);
    }
}

#[tokio::test]
async fn a_client_that_asks_for_arrays_gets_them() {
    let served = serve().await;
    let mut socket = served.connect().await;
    socket.ask(json!({"op":"AUTH","batch":true})).await;
    let frames: Vec<Value> = (0..500).map(|number| publish("t", json!(number))).collect();
    socket.send(Value::Array(frames.clone())).await;
    let before = socket.messages;
    for number in 1..=500 {
        assert_eq!(socket.frame().await["seq"], number);
    }
    assert!(
        socket.messages - before < 50,
        "{} messages",
        socket.messages - before
    );
    let mut plain = served.connect().await;
    plain.send(Value::Array(frames)).await;
    let before = plain.messages;
    for number in 501..=1_000 {
        assert_eq!(plain.frame().await["seq"], number);
    }
    assert_eq!(
        plain.messages - before,
        500,
        "no arrays for a client that did not ask"
    );
}

#[tokio::test]
async fn a_subscription_that_ends_by_itself_is_told() {
    let served = serve().await;
    let mut socket = served.connect().await;
    for topic in ["gone", "removed", "stays"] {
        socket.publish(topic, json!(1)).await;
        socket.subscribe(topic, "g", json!({})).await;
    }
    let bus = served.gateway.bus();
    bus.delete_topic("gone").await.expect("it is deleted");
    let frame = socket.frame().await;
    assert_eq!(
        (&frame["op"], &frame["code"]),
        (&json!("ERR"), &json!("unknown_topic"))
    );
    bus.remove_group("removed", "g")
        .await
        .expect("it is removed");
    let frame = socket.frame().await;
    assert_eq!(
        (&frame["op"], &frame["code"]),
        (&json!("ERR"), &json!("not_subscribed"))
    );
    socket.subscribe("removed", "g", json!({})).await;
    socket.publish("stays", json!(2)).await;
    assert_eq!(socket.event().await["topic"], "stays");
}

#[tokio::test]
async fn a_long_stream_comes_once_and_in_order() {
    const EVENTS: u64 = 20_000;
    let served = serve().await;
    let mut publisher = served.connect().await;
    publisher.ask(json!({"op":"AUTH","batch":true})).await;
    for _ in 0..EVENTS / 500 {
        let frames: Vec<Value> = (0..500)
            .map(|_| publish("t", json!("x".repeat(200))))
            .collect();
        publisher.send(Value::Array(frames)).await;
        for _ in 0..500 {
            publisher.frame().await;
        }
    }
    let mut socket = served.connect().await;
    socket.ask(json!({"op":"AUTH","batch":true})).await;
    let options = json!({"from":"earliest","maxInFlight":1000,"batchSize":1000});
    socket.subscribe("t", "g", options).await;
    let mut ids = Vec::new();
    for seq in 1..=EVENTS {
        let event = socket.event().await;
        assert_eq!(event["ctx"]["attempt"], 1, "{seq}");
        assert_eq!(event["event"]["seq"], seq);
        ids.push(event["event"]["id"].clone());
        if !socket.has_read_more() {
            let ids = std::mem::take(&mut ids);
            socket
                .send(json!({"op":"ACK","topic":"t","group":"g","ids":ids}))
                .await;
        }
    }
}
