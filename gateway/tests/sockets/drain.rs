//! The server goes down: what was begun is finished, nothing new begins, and everybody is told.

use crate::support::{Message, publish, serve, serve_with, settle};
use prombus_gateway::GatewayOptions;
use prombus_gateway::auth::Authenticator;
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn an_idle_socket_is_closed_and_the_server_ends() {
    let served = serve().await;
    let mut socket = served.connect().await;
    socket.subscribe("t", "g", json!({})).await;
    served.gateway.drain();
    let (code, reason) = socket.close().await;
    assert_eq!((code, reason.as_str()), (Some(1001), "shutting down"));
    assert_eq!(socket.message().await, Message::End);
    drop(socket);
    let serving = tokio::time::timeout(Duration::from_secs(5), served.serving);
    serving
        .await
        .expect("it ends promptly")
        .expect("it ends well");
}

#[tokio::test]
async fn what_is_held_can_still_be_acknowledged_and_nothing_new_begins() {
    let served = serve().await;
    let mut socket = served.connect().await;
    socket.subscribe("t", "g", json!({"maxInFlight":2})).await;
    for number in 0..4 {
        socket.publish("t", json!(number)).await;
    }
    let (one, two) = (socket.event().await, socket.event().await);
    served.gateway.drain();
    socket.send(publish("t", json!("late"))).await;
    assert_eq!(socket.reply().await["code"], "shutting_down");
    let subscribe = json!({"op":"SUBSCRIBE","topic":"t","group":"h"});
    assert_eq!(socket.ask(subscribe).await["code"], "shutting_down");
    assert_eq!(socket.ask(settle("ACK", &one)).await["op"], "OK");
    socket.send(settle("ACK", &two)).await;
    assert_eq!(socket.reply().await["op"], "OK");
    assert_eq!(socket.close().await.0, Some(1001));
    assert_eq!(socket.events.len(), 0, "nothing was leased any more");
    let group = served
        .gateway
        .bus()
        .group("t", "g")
        .await
        .expect("it is there");
    assert_eq!((group.lag, group.in_flight), (2, 0));
}

#[tokio::test]
async fn a_client_that_does_not_go_does_not_hold_the_server() {
    let options = GatewayOptions {
        drain_timeout_ms: 300,
        ..GatewayOptions::default()
    };
    let served = serve_with(Authenticator::off(), options).await;
    let mut socket = served.connect().await;
    socket.subscribe("t", "g", json!({})).await;
    socket.publish("t", json!(1)).await;
    socket.event().await;
    served.gateway.drain();
    let serving = tokio::time::timeout(Duration::from_secs(5), served.serving);
    serving.await.expect("it ends").expect("it ends well");
}
