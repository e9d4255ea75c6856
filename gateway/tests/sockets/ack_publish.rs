//! ACK with `publish`: the event is settled and its results are published, both or neither.

use crate::support::{Served, Socket, publish, serve, serve_with, settle};
use prombus::{ReadFrom, ReadLimit};
use prombus_gateway::GatewayOptions;
use prombus_gateway::auth::{AuthError, Authenticator, Grant, Policy};
use prombus_gateway::limits::Rate;
use serde_json::{Value, json};
use std::sync::Arc;

/// An ACK that publishes, with a corr.
fn step(event: &Value, publish: Value) -> Value {
    let mut frame = settle("ACK", event);
    frame["publish"] = publish;
    frame
}

/// A socket that is subscribed to `in` and holds `count` events.
async fn holding(served: &Served, count: usize) -> (Socket, Vec<Value>) {
    let mut socket = served.connect().await;
    socket.subscribe("in", "g", json!({})).await;
    let mut events = Vec::new();
    for number in 0..count {
        socket.publish("in", json!(number)).await;
        events.push(socket.event().await);
    }
    (socket, events)
}

/// The payloads of a topic.
async fn stored(served: &Served, topic: &str) -> Vec<Value> {
    let bus = served.gateway.bus();
    if bus.topic(topic).is_err() {
        return Vec::new();
    }
    let limit = ReadLimit {
        events: 10_000,
        bytes: usize::MAX,
    };
    let page = bus
        .store()
        .read(&topic.into(), ReadFrom::Seq(1), limit)
        .await;
    let events = page.expect("it can be read").events;
    let payloads = events.iter().map(|event| event.payload());
    payloads
        .map(|payload| serde_json::from_str(payload).expect("JSON"))
        .collect()
}

async fn cursor(served: &Served) -> u64 {
    let group = served.gateway.bus().group("in", "g").await;
    group.expect("it is there").cursor
}

#[tokio::test]
async fn both_happen_and_the_reply_says_where_the_events_are() {
    let served = serve().await;
    let (mut socket, events) = holding(&served, 3).await;
    let publish = json!([
        {"topic":"out","payload":{"n":1.5},"opts":{"key":"k","headers":{"a":"b"}}},
        {"topic":"side","payload":null,"opts":{"id":"mine"}},
        {"topic":"side","payload":null,"opts":{"id":"mine"}},
    ]);
    let text = step(&events[0], publish).to_string();
    socket.send_text(&text.replace("1.5", "1.50")).await;
    let reply = socket.reply().await;
    assert_eq!(
        (&reply["op"], &reply["corr"]),
        (&json!("OK"), &json!("ACK"))
    );
    let told = reply["published"].as_array().expect("a list");
    assert_eq!(
        (&told[0]["topic"], &told[0]["seq"]),
        (&json!("out"), &json!(1))
    );
    assert_eq!(told[0].get("duplicate"), None);
    assert_eq!(
        (&told[1], &told[2]),
        (
            &json!({"topic":"side","id":"mine","seq":1}),
            &json!({"topic":"side","id":"mine","seq":1,"duplicate":true})
        )
    );
    let found = served
        .gateway
        .bus()
        .store()
        .latest_event(&"out".into(), "k")
        .await;
    let found = found.expect("it can be read").expect("it is there");
    assert_eq!(found.payload(), r#"{"n":1.50}"#, "as it was written");
    assert_eq!(found.id(), told[0]["id"].as_str().expect("an id"));
    assert_eq!(cursor(&served).await, 1);

    // Without a corr there is no OK; errors always come.
    let mut quiet = step(&events[1], json!([{"topic":"out","payload":2}]));
    let fields = quiet.as_object_mut().expect("an object");
    fields.remove("corr");
    socket.send(quiet.clone()).await;
    let again = socket.ask(quiet).await;
    assert_eq!(
        (&again["op"], &again["code"]),
        (&json!("ERR"), &json!("lease_lost"))
    );
    assert_eq!(stored(&served, "out").await.len(), 2);
    // Nothing to publish is an ordinary ACK.
    let plain = socket.ask(step(&events[2], json!([]))).await;
    assert_eq!(plain, json!({"op":"OK","corr":"ACK"}));
    let metric = |line: &str| served.metric(line);
    assert_eq!(
        metric(r#"events_acked_total{topic="in",group="g"}"#),
        Some(3.0)
    );
    assert_eq!(metric(r#"events_published_total{topic="out"}"#), Some(2.0));
    assert_eq!(metric(r#"events_published_total{topic="side"}"#), Some(1.0));
    assert_eq!(metric(r#"ws_inflight{topic="in",group="g"}"#), Some(0.0));
}

#[tokio::test]
async fn what_is_refused_leaves_everything_as_it_was() {
    let served = serve().await;
    let (mut socket, events) = holding(&served, 2).await;
    socket
        .ask(json!({"op":"PUBLISH","topic":"out","payload":0,"opts":{"id":"taken"}}))
        .await;
    let fine = json!({"topic":"out","payload":1});
    let large = "x".repeat(2 << 20);
    for (bad, code) in [
        (json!({"topic":"a b","payload":1}), "bad_topic"),
        (json!({"topic":"out","payload":large}), "too_large"),
        (
            json!({"topic":"out","payload":2,"opts":{"id":"taken"}}),
            "id_conflict",
        ),
        (
            json!({"topic":"out","payload":2,"opts":{"id":"ä"}}),
            "bad_frame",
        ),
        (json!({"topic":"out"}), "bad_frame"),
    ] {
        let reply = socket.ask(step(&events[0], json!([fine, bad]))).await;
        assert_eq!(reply["code"], code, "{reply}");
    }
    let mut unknown = step(&events[0], json!([fine]));
    unknown["id"] = json!("nobody's");
    assert_eq!(socket.ask(unknown).await["code"], "unknown_id");
    let mut both = step(&events[0], json!([fine]));
    let fields = both.as_object_mut().expect("an object");
    fields.remove("id");
    both["ids"] = json!([events[1]["event"]["id"], "nobody's"]);
    assert_eq!(socket.ask(both.clone()).await["code"], "unknown_id");
    both["ids"] = json!([]);
    assert_eq!(socket.ask(both.clone()).await["code"], "bad_frame");
    both["group"] = json!("h");
    assert_eq!(socket.ask(both).await["code"], "not_subscribed");
    assert_eq!(stored(&served, "out").await, [json!(0)]);
    assert_eq!(cursor(&served).await, 0);
    for event in &events {
        let reply = socket.ask(step(event, json!([fine]))).await;
        assert_eq!(reply["op"], "OK", "the leases are as they were: {reply}");
    }
}

#[tokio::test]
async fn every_topic_has_to_be_allowed() {
    let auth = Authenticator::function(|token| {
        let policy = Policy::from_scopes(token.split(' ')).map_err(AuthError::from)?;
        Ok(Grant {
            policy: Arc::new(policy),
            expires_at_ms: None,
            subject: None,
        })
    });
    let served = serve_with(auth, GatewayOptions::default()).await;
    let mut socket = served.connect().await;
    let ack = json!({"op":"ACK","topic":"in","group":"g","id":"x","publish":[{"topic":"out","payload":1}]});
    assert_eq!(socket.ask(ack).await["code"], "unauthorized");
    let token = "publish:in publish:out subscribe:in";
    socket.ask(json!({"op":"AUTH","token":token})).await;
    socket.subscribe("in", "g", json!({})).await;
    socket.publish("in", json!(1)).await;
    let event = socket.event().await;
    let refused = step(
        &event,
        json!([{"topic":"out","payload":1},{"topic":"secret","payload":2}]),
    );
    let reply = socket.ask(refused).await;
    assert_eq!(
        (&reply["code"], &reply["corr"]),
        (&json!("forbidden"), &json!("ACK"))
    );
    assert!(stored(&served, "out").await.is_empty());
    assert_eq!(cursor(&served).await, 0);
    let allowed = socket
        .ask(step(&event, json!([{"topic":"out","payload":1}])))
        .await;
    assert_eq!(allowed["op"], "OK");
}

#[tokio::test]
async fn publishing_limits_count_for_steps() {
    let rate = Rate {
        capacity: 2,
        refill_per_sec: 1,
    };
    let options = GatewayOptions {
        topic_rates: vec![("out".to_owned(), rate)],
        ..GatewayOptions::default()
    };
    let served = serve_with(Authenticator::off(), options).await;
    let (mut socket, events) = holding(&served, 2).await;
    let two = json!([{"topic":"out","payload":1},{"topic":"out","payload":2}]);
    assert_eq!(socket.ask(step(&events[0], two.clone())).await["op"], "OK");
    let reply = socket.ask(step(&events[1], two)).await;
    assert_eq!(reply["code"], "rate_limited");
    assert!(
        reply["retry_after_ms"].as_u64().is_some_and(|ms| ms > 0),
        "{reply}"
    );
    assert_eq!(stored(&served, "out").await.len(), 2);
    assert_eq!(cursor(&served).await, 1);
}

#[tokio::test]
async fn many_steps_in_one_message_are_answered_in_order_each_for_itself() {
    let served = serve().await;
    let (mut socket, events) = holding(&served, 60).await;
    socket
        .ask(json!({"op":"PUBLISH","topic":"out","payload":0,"opts":{"id":"taken"}}))
        .await;
    let mut frames = Vec::new();
    for (number, event) in events.iter().enumerate() {
        let mut frame = match number {
            30 => step(
                event,
                json!([{"topic":"out","payload":1,"opts":{"id":"taken"}}]),
            ),
            _ => step(event, json!([{"topic":"out","payload":number}])),
        };
        frame["corr"] = json!(format!("s{number}"));
        frames.push(frame);
        if number == 20 {
            let mut between = publish("out", json!("between"));
            between["corr"] = json!("p");
            frames.push(between);
        }
    }
    socket.send(json!(frames)).await;
    for number in 0..60 {
        let reply = socket.reply().await;
        assert_eq!(reply["corr"], format!("s{number}"));
        match number {
            30 => assert_eq!(reply["code"], "id_conflict"),
            _ => assert_eq!(
                reply["published"].as_array().map(Vec::len),
                Some(1),
                "{reply}"
            ),
        }
        if number == 20 {
            assert_eq!(socket.reply().await["corr"], "p");
        }
    }
    assert_eq!(stored(&served, "out").await.len(), 61);
    let info = served
        .gateway
        .bus()
        .group("in", "g")
        .await
        .expect("a group");
    assert_eq!((info.cursor, info.in_flight), (30, 1));
}

#[tokio::test]
async fn events_of_a_pattern_are_named_by_it_or_by_their_topic() {
    let served = serve().await;
    let mut socket = served.connect().await;
    socket.publish("in.a", json!(1)).await;
    socket.publish("in.b", json!(2)).await;
    socket
        .subscribe("in.*", "g", json!({"from":"earliest"}))
        .await;
    let (one, two) = (socket.event().await, socket.event().await);
    let out = json!([{"topic":"out","payload":1}]);
    let mut both = step(&one, out.clone());
    let fields = both.as_object_mut().expect("an object");
    fields.remove("id");
    both["ids"] = json!([one["event"]["id"], two["event"]["id"]]);
    assert_eq!(socket.ask(both).await["code"], "bad_frame", "two groups");
    let mut unknown = step(&one, out.clone());
    unknown["id"] = json!("nobody's");
    assert_eq!(socket.ask(unknown).await["code"], "unknown_id");
    assert_eq!(socket.ask(step(&one, out.clone())).await["op"], "OK");
    let mut own = step(&two, out);
    own["topic"] = two["event"]["topic"].clone();
    assert_eq!(socket.ask(own).await["op"], "OK");
    assert_eq!(stored(&served, "out").await.len(), 2);
}

#[tokio::test]
async fn a_socket_that_goes_away_does_not_undo_its_step() {
    let served = serve().await;
    for number in 0..20 {
        let mut socket = served.connect().await;
        socket
            .subscribe("in", "g", json!({"from":"earliest","ackTimeoutMs":60_000}))
            .await;
        socket.publish("in", json!(number)).await;
        let event = socket.event().await;
        socket
            .send(step(&event, json!([{"topic":"out","payload":number}])))
            .await;
        // Sometimes the step was not even read when the socket goes.
        drop(socket);
    }
    let mut socket = served.connect().await;
    socket.subscribe("in", "g", json!({})).await;
    let bus = served.gateway.bus();
    while bus.group("in", "g").await.expect("a group").lag > 0 {
        let event = socket.event().await;
        let payload = event["event"]["payload"].clone();
        let reply = socket
            .ask(step(&event, json!([{"topic":"out","payload":payload}])))
            .await;
        assert_eq!(reply["op"], "OK", "{reply}");
    }
    let mut outputs: Vec<u64> = stored(&served, "out")
        .await
        .iter()
        .filter_map(Value::as_u64)
        .collect();
    outputs.sort_unstable();
    assert_eq!(outputs, (0..20).collect::<Vec<_>>(), "each once");
}
