//! ACK, NACK and MODACK: once, late, by the wrong one, and when the socket is gone.

use crate::support::{Served, publish, serve, settle};
use serde_json::{Value, json};

#[tokio::test]
async fn an_acknowledgement_with_corr_is_answered_and_one_without_is_not() {
    let served = serve().await;
    let mut socket = served.connect().await;
    socket.subscribe("t", "g", json!({})).await;
    for number in 1..=6 {
        socket.publish("t", json!(number)).await;
    }
    let mut ids = Vec::new();
    for _ in 0..6 {
        ids.push(socket.event().await["event"]["id"].clone());
    }
    let ack = |ids: &[Value]| json!({"op":"ACK","topic":"t","group":"g","ids":ids});
    socket.send(ack(&ids[..3])).await;
    socket
        .send(json!({"op":"ACK","topic":"t","group":"g","id":ids[3]}))
        .await;
    let mut answered = ack(&ids[4..]);
    answered["corr"] = json!("a");
    assert_eq!(socket.ask(answered).await, json!({"op":"OK","corr":"a"}));
    let again = ack(&ids);
    socket.send(again).await;
    socket.silence(50).await;
    let lag = served
        .gateway
        .bus()
        .group("t", "g")
        .await
        .expect("it is there")
        .lag;
    assert_eq!(lag, 0);
}

#[tokio::test]
async fn a_nack_brings_the_event_back() {
    let served = serve().await;
    let mut socket = served.connect().await;
    socket.subscribe("t", "g", json!({"maxAttempts":3})).await;
    socket.publish("t", json!(1)).await;
    for attempt in 1..=3 {
        let event = socket.event().await;
        assert_eq!(event["ctx"]["attempt"], attempt);
        let mut nack = settle("NACK", &event);
        nack["reason"] = json!("not today");
        nack["delay_ms"] = json!(0);
        assert_eq!(socket.ask(nack).await, json!({"op":"OK","corr":"NACK"}));
    }
    socket
        .subscribe("dlq.t", "g", json!({"from":"earliest"}))
        .await;
    let dead = socket.event().await;
    let letter = &dead["event"]["payload"];
    assert_eq!(
        (&letter["attempts"], &letter["err"]),
        (&json!(3), &json!("not today"))
    );
    let member = letter["history"][0]["member"].as_str().expect("a name");
    assert!(member.starts_with("ws@127.0.0.1:"), "{member}");
}

#[tokio::test]
async fn ids_that_nobody_knows_are_told_apart() {
    let served = serve().await;
    let mut socket = served.connect().await;
    socket.subscribe("t", "g", json!({})).await;
    socket.publish("t", json!(1)).await;
    let event = socket.event().await;
    for op in ["ACK", "NACK", "MODACK"] {
        let mut frame = json!({"op":op,"topic":"t","group":"g","id":"nobody's"});
        assert_eq!(
            socket.ask(frame.clone()).await["code"],
            "unknown_id",
            "{op}"
        );
        frame["group"] = json!("other");
        assert_eq!(socket.ask(frame).await["code"], "not_subscribed", "{op}");
    }
    let mut extended = settle("MODACK", &event);
    extended["extend_ms"] = json!(60_000);
    assert_eq!(socket.ask(extended.clone()).await["op"], "OK");
    let some = json!({"op":"ACK","topic":"t","group":"g","ids":[event["event"]["id"],"no","no"],"corr":"m"});
    let reply = socket.ask(some).await;
    assert_eq!(
        (&reply["code"], &reply["corr"]),
        (&json!("unknown_id"), &json!("m"))
    );
    assert!(
        reply["msg"]
            .as_str()
            .is_some_and(|msg| msg.starts_with("2 of 3 ids")),
        "{reply}"
    );
    assert_eq!(
        socket.ask(settle("ACK", &event)).await["op"],
        "OK",
        "settled already"
    );
    assert_eq!(
        socket.ask(settle("NACK", &event)).await["op"],
        "OK",
        "settled already"
    );
    assert_eq!(
        socket.ask(extended).await["code"],
        "unknown_id",
        "nobody holds it"
    );
}

#[tokio::test]
async fn a_late_ack_is_refused_where_another_holds_the_event() {
    let served = serve().await;
    let (mut slow, mut quick) = (served.connect().await, served.connect().await);
    let options = json!({"ackTimeoutMs":100,"maxInFlight":1});
    slow.subscribe("t", "g", options.clone()).await;
    slow.publish("t", json!(1)).await;
    let event = slow.event().await;
    slow.ask(json!({"op":"PAUSE","topic":"t","group":"g"}))
        .await;
    quick
        .subscribe("t", "g", json!({"ackTimeoutMs":60_000}))
        .await;
    let again = quick.event().await;
    assert_eq!(
        (&again["event"]["id"], &again["ctx"]["attempt"]),
        (&event["event"]["id"], &json!(2))
    );
    assert_eq!(slow.ask(settle("ACK", &event)).await["code"], "lease_lost");
    let mut silent = settle("ACK", &event);
    silent.as_object_mut().expect("an object").remove("corr");
    slow.send(silent).await;
    let error = slow.reply().await;
    assert_eq!(
        (&error["code"], error.get("corr")),
        (&json!("lease_lost"), None)
    );
    assert_eq!(quick.ask(settle("ACK", &again)).await["op"], "OK");
    assert_eq!(
        slow.ask(settle("ACK", &event)).await["op"],
        "OK",
        "settled is fine"
    );
}

#[tokio::test]
async fn a_late_ack_settles_where_nobody_holds_the_event() {
    let served = serve().await;
    let mut socket = served.connect().await;
    socket
        .subscribe("t", "g", json!({"ackTimeoutMs":50,"maxInFlight":1}))
        .await;
    socket.publish("t", json!(1)).await;
    let event = socket.event().await;
    socket
        .ask(json!({"op":"PAUSE","topic":"t","group":"g"}))
        .await;
    let waits = |info: prombus::GroupInfo| info.in_flight == 0;
    until_group(&served, waits).await;
    assert_eq!(socket.ask(settle("ACK", &event)).await["op"], "OK");
    until_group(&served, |info| info.lag == 0).await;
}

#[tokio::test]
async fn a_lost_connection_frees_its_leases_at_once() {
    let served = serve().await;
    let (mut one, mut two) = (served.connect().await, served.connect().await);
    one.subscribe("t", "g", json!({"ackTimeoutMs":600_000,"maxInFlight":10}))
        .await;
    for number in 0..10 {
        one.publish("t", json!(number)).await;
    }
    for _ in 0..10 {
        one.event().await;
    }
    two.subscribe("t", "g", json!({})).await;
    two.silence(50).await;
    drop(one);
    for _ in 0..10 {
        assert_eq!(two.event().await["ctx"]["attempt"], 2);
    }
}

#[tokio::test]
async fn what_was_acknowledged_before_the_end_is_settled() {
    let served = serve().await;
    for round in 0..20 {
        let mut socket = served.connect().await;
        // An event that came back would be dead at once.
        socket
            .subscribe("t", "g", json!({"from":"earliest","maxAttempts":1}))
            .await;
        socket.publish("t", json!(round)).await;
        let event = socket.event().await;
        assert_eq!(event["event"]["payload"], round);
        let mut ack = settle("ACK", &event);
        ack.as_object_mut().expect("an object").remove("corr");
        socket.send(ack).await;
    }
    until_group(&served, |info| info.lag == 0).await;
    let info = served
        .gateway
        .bus()
        .group("t", "g")
        .await
        .expect("it is there");
    assert_eq!(info.counts.dead_lettered, 0);
}

#[tokio::test]
async fn unsubscribing_frees_leases_and_settles_what_was_acknowledged() {
    let served = serve().await;
    let (mut one, mut two) = (served.connect().await, served.connect().await);
    one.subscribe("t", "g", json!({"maxAttempts":1})).await;
    one.publish("t", json!(1)).await;
    let event = one.event().await;
    one.send(
        json!([settle("ACK", &event), {"op":"UNSUBSCRIBE","topic":"t","group":"g","corr":"u"}]),
    )
    .await;
    assert_eq!(one.reply().await, json!({"op":"OK","corr":"ACK"}));
    assert_eq!(one.reply().await, json!({"op":"OK","corr":"u"}));
    assert_eq!(
        one.ask(settle("ACK", &event)).await["code"],
        "not_subscribed"
    );
    two.subscribe("t", "g", json!({})).await;
    two.ask(publish("t", json!(2))).await;
    assert_eq!(two.event().await["event"]["payload"], 2);
}

async fn until_group(served: &Served, is_so: impl Fn(prombus::GroupInfo) -> bool) {
    for _ in 0..2_000 {
        let info = served.gateway.bus().group("t", "g").await;
        if is_so(info.expect("the group is there")) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("it never came to be");
}

#[tokio::test]
async fn an_acknowledgement_that_finds_no_group_has_failed() {
    let served = serve().await;
    let mut socket = served.connect().await;
    socket.subscribe("x", "g", json!({"topics":["gone"]})).await;
    socket.publish("gone", json!(1)).await;
    let event = socket.event().await;
    let bus = served.gateway.bus();
    bus.delete_topic("gone").await.expect("it is deleted");
    assert_eq!(
        socket.ask(settle("ACK", &event)).await["code"],
        "ack_failed"
    );
    socket.publish("x", json!(2)).await;
    assert_eq!(socket.event().await["event"]["payload"], 2);
}
