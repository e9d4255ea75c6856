//! Partitions over the wire: ASSIGN before the events of a partition, REVOKE, and REVOKED as the answer to it.

use crate::support::{Socket, serve, settle};
use prombus::{Bus, TopicConfig};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The next frame of this kind; events that come before it are kept.
async fn frame_of(socket: &mut Socket, op: &str) -> Value {
    loop {
        let frame = socket.frame().await;
        if frame["op"] == op {
            return frame;
        }
        assert_eq!(frame["op"], "EVENT", "{frame}");
        socket.events.push_back(frame);
    }
}

/// Makes a topic of eight partitions and publishes so many events to it, each with a key of its own.
async fn publish_to_partitions(bus: &Bus, socket: &mut Socket, events: u64) {
    let config = TopicConfig {
        partitions: Some(8),
        ..TopicConfig::default()
    };
    bus.create_topic("t", &config).await.expect("made");
    for number in 0..events {
        let frame = json!({"op":"PUBLISH","topic":"t","payload":number,"opts":{"key":format!("k{number}")}});
        assert_eq!(socket.ask(frame).await["op"], "OK");
    }
}

fn numbers(frame: &Value) -> BTreeSet<u64> {
    let partitions = frame["partitions"].as_array().expect("a list");
    partitions.iter().filter_map(Value::as_u64).collect()
}

#[tokio::test]
async fn partitions_are_assigned_before_their_events_and_handed_over_when_confirmed() {
    let served = serve().await;
    let bus = served.gateway.bus();
    let mut one = served.connect().await;
    publish_to_partitions(bus, &mut one, 20).await;
    let options = json!({"from":"earliest","partitioned":true});
    let subscribe = |options: &Value| json!({"op":"SUBSCRIBE","topic":"t","group":"g","opts":options,"corr":"s"});
    one.send(subscribe(&options)).await;
    let mut seen = Vec::new();
    while seen.len() < 2 {
        let frame = one.frame().await;
        seen.push(frame["op"].as_str().expect("text").to_owned());
        if frame["op"] == "ASSIGN" {
            assert_eq!(
                (&frame["topic"], &frame["group"]),
                (&json!("t"), &json!("g"))
            );
            assert_eq!(numbers(&frame), (0..8).collect());
        }
    }
    seen.sort();
    assert_eq!(seen, ["ASSIGN", "OK"], "before any event");
    let mut two = served.connect().await;
    two.subscribe("t", "g", options).await;
    let revoke = frame_of(&mut one, "REVOKE").await;
    let moved = numbers(&revoke);
    assert!(!moved.is_empty() && moved.len() < 8, "{revoke}");
    while one.events.len() < 20 {
        let frame = one.frame().await;
        one.events.push_back(frame);
    }
    // One event of a partition that goes is settled, what else it holds of them is given back.
    let is_moved =
        |event: &Value| moved.contains(&event["event"]["partition"].as_u64().expect("a number"));
    let held: Vec<Value> = one.events.drain(..).collect();
    let done = held
        .iter()
        .find(|event| is_moved(event))
        .expect("one of them");
    assert_eq!(one.ask(settle("ACK", done)).await["op"], "OK");
    let revoked = json!({"op":"REVOKED","topic":"t","group":"g","partitions":revoke["partitions"],"corr":"r"});
    assert_eq!(one.ask(revoked).await, json!({"op":"OK","corr":"r"}));
    let assign = frame_of(&mut two, "ASSIGN").await;
    assert_eq!(numbers(&assign), moved);
    let left = held.iter().filter(|event| is_moved(event)).count() - 1;
    for _ in 0..left {
        let event = two.event().await;
        assert!(is_moved(&event), "{event}");
        assert_ne!(event["event"]["id"], done["event"]["id"], "it was settled");
        assert_eq!(event["ctx"]["attempt"], 1);
        assert_eq!(two.ask(settle("ACK", &event)).await["op"], "OK");
    }
    for event in held.iter().filter(|event| !is_moved(event)) {
        assert_eq!(one.ask(settle("ACK", event)).await["op"], "OK");
    }
    let metrics = bus.group_metrics().await.expect("metrics");
    let counted = metrics.iter().find(|one| *one.group == *"g");
    let counted = counted.map(|one| (one.partitions_held, one.partitions_unassigned));
    assert_eq!(counted, Some((8, 0)));
    let group = bus.group("t", "g").await.expect("a group");
    assert_eq!((group.lag, group.partitions), (0, Some(8)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_settled_before_revoked_is_not_handed_over() {
    let served = serve().await;
    let bus = served.gateway.bus();
    let mut one = served.connect().await;
    publish_to_partitions(bus, &mut one, 90).await;
    let options = json!({"from":"earliest","partitioned":true});
    one.send(json!({"op":"SUBSCRIBE","topic":"t","group":"g","opts":options,"corr":"s"}))
        .await;
    while one.events.len() < 90 {
        let frame = one.frame().await;
        if frame["op"] == "EVENT" {
            one.events.push_back(frame);
        }
    }
    let held: Vec<Value> = one.events.drain(..).collect();
    one.subscribe("u", "g", json!({})).await;
    let mut two = served.connect().await;
    two.subscribe("t", "g", options).await;
    let revoke = frame_of(&mut one, "REVOKE").await;
    // Acknowledgements of one topic share a batch, so others in between make each of these a command of its own.
    let mut frames = Vec::new();
    for event in &held {
        frames.push(settle("ACK", event));
        frames.push(json!({"op":"ACK","topic":"u","group":"g","id":"x"}));
    }
    frames.push(json!({"op":"REVOKED","topic":"t","group":"g","partitions":revoke["partitions"],"corr":"r"}));
    one.send(Value::Array(frames)).await;
    let assign = frame_of(&mut two, "ASSIGN").await;
    assert_eq!(numbers(&assign), numbers(&revoke));
    let group = bus.group("t", "g").await.expect("a group");
    assert_eq!((group.lag, group.counts.delivered), (0, 90));
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let served = serve().await;
    let mut socket = served.connect().await;
    socket.publish("plain", json!(1)).await;
    let subscribe =
        json!({"op":"SUBSCRIBE","topic":"plain","group":"g","opts":{"partitioned":true}});
    let refused = socket.ask(subscribe).await;
    assert_eq!(refused["op"], "ERR", "{refused}");
    assert!(
        refused["msg"]
            .as_str()
            .expect("text")
            .contains("partitions"),
        "{refused}"
    );
    let stranger = json!({"op":"REVOKED","topic":"plain","group":"g","partitions":[1]});
    assert_eq!(socket.ask(stranger).await["code"], "not_subscribed");
    let nothing = json!({"op":"REVOKED","topic":"plain","group":"g"});
    assert_eq!(socket.ask(nothing).await["code"], "bad_frame");
    let odd = json!({"op":"REVOKED","topic":"plain","group":"g","partitions":["a"]});
    assert_eq!(socket.ask(odd).await["code"], "bad_frame");
}
