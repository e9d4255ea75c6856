//! Many topics in one subscription.

use crate::support::{serve, settle};
use serde_json::json;

#[tokio::test]
async fn a_pattern_follows_topics_that_are_and_that_will_be() {
    let served = serve().await;
    let mut socket = served.connect().await;
    socket.publish("a.one", json!(1)).await;
    socket.publish("b.one", json!(2)).await;
    socket
        .subscribe("a.**", "g", json!({"from":"earliest"}))
        .await;
    let first = socket.event().await;
    assert_eq!(
        (&first["topic"], &first["event"]["topic"]),
        (&json!("a.**"), &json!("a.one"))
    );
    socket.publish("a.two.deep", json!(3)).await;
    let second = socket.event().await;
    assert_eq!(second["event"]["topic"], "a.two.deep");
    // By the pattern, and by the event's own topic.
    assert_eq!(socket.ask(settle("ACK", &first)).await["op"], "OK");
    let mut own = settle("ACK", &second);
    own["topic"] = json!("a.two.deep");
    assert_eq!(socket.ask(own).await["op"], "OK");
    for topic in ["a.one", "a.two.deep"] {
        let lag = served
            .gateway
            .bus()
            .group(topic, "g")
            .await
            .expect("a group")
            .lag;
        assert_eq!(lag, 0, "{topic}");
    }
    assert_eq!(
        socket.ask(settle("ACK", &first)).await["op"],
        "OK",
        "settled already"
    );
    let mut foreign = settle("ACK", &first);
    foreign["topic"] = json!("b.one");
    assert_eq!(socket.ask(foreign).await["code"], "not_subscribed");
    let mut unknown = settle("ACK", &first);
    unknown["id"] = json!("nobody's");
    assert_eq!(socket.ask(unknown).await["code"], "unknown_id");
}

#[tokio::test]
async fn a_list_of_topics_comes_in_through_one_subscription() {
    let served = serve().await;
    let mut socket = served.connect().await;
    socket
        .subscribe("x", "g", json!({"topics":["y","z.*"]}))
        .await;
    let mut ids = Vec::new();
    for topic in ["x", "y", "z.1", "w"] {
        socket.publish(topic, json!(topic)).await;
    }
    let mut topics = Vec::new();
    for _ in 0..3 {
        let event = socket.event().await;
        assert_eq!(event["topic"], "x");
        topics.push(event["event"]["topic"].as_str().expect("text").to_owned());
        ids.push(event["event"]["id"].clone());
    }
    topics.sort();
    assert_eq!(topics, ["x", "y", "z.1"]);
    socket.silence(50).await;
    let all = json!({"op":"ACK","topic":"x","group":"g","ids":ids,"corr":"all"});
    assert_eq!(socket.ask(all).await, json!({"op":"OK","corr":"all"}));
    for topic in ["x", "y", "z.1"] {
        let lag = served
            .gateway
            .bus()
            .group(topic, "g")
            .await
            .expect("a group")
            .lag;
        assert_eq!(lag, 0, "{topic}");
    }
}

#[tokio::test]
async fn many_subscriptions_of_one_socket_all_have_their_turn() {
    let served = serve().await;
    let mut socket = served.connect().await;
    for number in 0..64 {
        let topic = format!("t{number}");
        socket
            .subscribe(&topic, "g", json!({"maxInFlight":1000}))
            .await;
    }
    let mut publisher = served.connect().await;
    for round in 0..20 {
        let frames: Vec<_> = (0..64)
            .map(|number| crate::support::publish(&format!("t{number}"), json!(round)))
            .collect();
        publisher.send(json!(frames)).await;
    }
    let mut counts = [0; 64];
    for _ in 0..64 * 20 {
        let event = socket.event().await;
        let topic = event["topic"].as_str().expect("text");
        counts[topic[1..].parse::<usize>().expect("a number")] += 1;
    }
    assert_eq!(counts, [20; 64]);
}
