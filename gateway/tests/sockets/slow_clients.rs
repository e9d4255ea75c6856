//! Clients that do not do their part: they get less, and nobody else does.

use crate::support::{PONG, Served, Socket, masked, publish, serve, serve_with};
use prombus::PublishOptions;
use prombus_gateway::GatewayOptions;
use prombus_gateway::auth::Authenticator;
use serde_json::{Value, json};
use std::time::Duration;

/// Fills a topic with large events.
async fn fill(served: &Served, count: usize) {
    let mut socket = served.connect().await;
    for _ in 0..count {
        socket.publish("large", json!("x".repeat(50_000))).await;
    }
}

#[tokio::test]
async fn a_client_that_never_reads_is_not_buffered_for() {
    let served = serve().await;
    let mut deaf = served.connect().await;
    deaf.subscribe(
        "large",
        "deaf",
        json!({"maxInFlight":100_000,"batchSize":1000,"ackTimeoutMs":600_000}),
    )
    .await;
    fill(&served, 1_000).await;
    // Only what fits the system's buffers and ours was delivered; the rest lies with its group.
    let delivered = || served.metric("events_delivered_total{topic=\"large\",group=\"deaf\"}");
    let mut latest = None;
    for _ in 0..200 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        if latest == delivered() {
            break;
        }
        latest = delivered();
    }
    let delivered = delivered().expect("something was");
    assert!(
        (1.0..600.0).contains(&delivered),
        "{delivered} of 1000 events of 50 KB"
    );
    let mut other = served.connect().await;
    other
        .subscribe(
            "large",
            "other",
            json!({"from":"earliest","maxInFlight":1000}),
        )
        .await;
    for seq in 1..=1_000 {
        assert_eq!(other.event().await["event"]["seq"], seq);
    }
    // Once it reads, everything comes.
    for seq in 1..=1_000 {
        assert_eq!(deaf.event().await["event"]["seq"], seq);
    }
}

#[tokio::test]
async fn a_client_that_never_reads_holds_little_and_others_get_the_rest() {
    let served = serve().await;
    let mut deaf = served.connect().await;
    let options = json!({"from":"earliest","maxInFlight":100_000,"ackTimeoutMs":600_000});
    fill(&served, 400).await;
    deaf.send(json!({"op":"SUBSCRIBE","topic":"large","group":"g","opts":options}))
        .await;
    // What waits for it unseen goes back to the group, and only what is on its way to the client stays leased.
    let memory = || served.gateway.bus().delivery_memory().used_bytes();
    served
        .until("its mailbox is empty and its buffer is full", |_| {
            let delivered = served.metric("events_delivered_total{topic=\"large\",group=\"g\"}");
            delivered.is_some_and(|count| count > 1.0) && (200_000..600_000).contains(&memory())
        })
        .await;
    let mut other = served.connect().await;
    other
        .subscribe("large", "g", json!({"from":"earliest","maxInFlight":1000}))
        .await;
    for _ in 0..100 {
        let event = other.event().await;
        assert_eq!(
            event["ctx"]["attempt"], 1,
            "nobody has seen it: {}",
            event["event"]["seq"]
        );
        other.send(crate::support::settle("ACK", &event)).await;
    }
    drop((deaf, other));
    served
        .until("all of it is given back", |_| memory() == 0)
        .await;
}

#[tokio::test]
async fn a_client_that_reads_no_replies_is_not_read_from() {
    let served = serve().await;
    let socket = served.connect().await;
    let flood = masked(0x81, publish("t", json!(1)).to_string().as_bytes()).repeat(200_000);
    let (mut reading, mut writing) = socket.stream.into_split();
    let writer = tokio::spawn(async move {
        tokio::io::AsyncWriteExt::write_all(&mut writing, &flood)
            .await
            .expect("in the end");
        writing
    });
    // The server takes some and then waits for its replies to be read.
    let published = || {
        served
            .metric("events_published_total{topic=\"t\"}")
            .unwrap_or(0.0)
    };
    let mut latest = -1.0;
    for _ in 0..500 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        if latest == published() {
            break;
        }
        latest = published();
    }
    assert!(latest < 200_000.0, "{latest}");
    let mut other = served.connect().await;
    other.publish("u", json!(1)).await;
    // Once it reads, all is taken.
    let mut read = vec![0; 1 << 16];
    let mut total = 0;
    while published() < 200_000.0 {
        let bytes = tokio::io::AsyncReadExt::read(&mut reading, &mut read)
            .await
            .expect("replies");
        assert!(bytes > 0, "it ended after {total}");
        total += bytes;
    }
    writer.await.expect("all was sent");
}

#[tokio::test]
async fn a_client_that_never_acks_keeps_only_what_it_holds() {
    let served = serve().await;
    let mut silent = served.connect().await;
    silent
        .subscribe("t", "g", json!({"ackTimeoutMs":600_000,"maxInFlight":3}))
        .await;
    let mut worker = served.connect().await;
    for number in 0..30 {
        worker.publish("t", json!(number)).await;
    }
    for _ in 0..3 {
        silent.event().await;
    }
    silent.silence(50).await;
    worker.subscribe("t", "g", json!({})).await;
    for _ in 0..27 {
        let event = worker.event().await;
        let ack = json!({"op":"ACK","topic":"t","group":"g","id":event["event"]["id"]});
        worker.send(ack).await;
    }
    worker.silence(50).await;
}

#[tokio::test]
async fn many_connections_publish_and_consume_at_once() {
    const CONNECTIONS: usize = 100;
    const EVENTS: u64 = 50;
    let served = serve().await;
    let mut tasks = Vec::new();
    for number in 0..CONNECTIONS {
        let address = served.address;
        tasks.push(tokio::spawn(async move {
            let mut socket = Socket::connect(address, "/ws", "").await.expect("101");
            let topic = format!("own.{number}");
            socket.subscribe(&topic, "g", json!({})).await;
            if number % 20 == 0 {
                socket
                    .subscribe("all", &format!("g{number}"), json!({}))
                    .await;
            }
            let mut seen = 0;
            for at in 0..EVENTS {
                socket
                    .send(json!([
                        publish(&topic, json!(at)),
                        publish("all", json!(at))
                    ]))
                    .await;
                for _ in 0..2 {
                    assert_eq!(socket.reply().await["op"], "OK");
                }
                while let Some(event) = socket.events.pop_front() {
                    seen += acknowledge(&mut socket, event).await;
                }
            }
            while seen < EVENTS {
                let event = socket.event().await;
                seen += acknowledge(&mut socket, event).await;
            }
        }));
    }
    for task in tasks {
        task.await.expect("each gets its own events");
    }
}

/// Acknowledges an event, and counts it where it is of the connection's own topic.
async fn acknowledge(socket: &mut Socket, event: Value) -> u64 {
    let ack =
        json!({"op":"ACK","topic":event["topic"],"group":event["group"],"id":event["event"]["id"]});
    socket.send(ack).await;
    u64::from(event["topic"] != "all")
}

/// A ping that waits behind other data in the send buffer is not one that was not answered.
#[tokio::test]
async fn a_slow_reader_is_not_closed_for_a_ping_that_it_could_not_see() {
    let options = GatewayOptions {
        // Its buffers are full long before the first ping.
        ping_interval_ms: 1_000,
        pong_timeout_ms: 1_000,
        ..GatewayOptions::default()
    };
    let served = serve_with(Authenticator::off(), options).await;
    let mut batch = served.gateway.bus().batch();
    let payload = format!("\"{}\"", "x".repeat(50_000));
    for _ in 0..1_000 {
        batch.add("large", &payload, &PublishOptions::default());
    }
    let mut slow = served.connect().await;
    let options = json!({"maxInFlight":100_000,"batchSize":1000,"ackTimeoutMs":600_000});
    slow.subscribe("large", "slow", options).await;
    for result in served.gateway.bus().publish_batch(batch).await {
        result.expect("published");
    }
    // Far longer than a ping and its pong may take.
    tokio::time::sleep(Duration::from_millis(4_000)).await;
    for seq in 1..=1_000 {
        assert_eq!(slow.event().await["event"]["seq"], seq);
        slow.send_frame(0x80 | PONG, b"").await;
    }
    // Once it could see the ping, it has to answer.
    let (code, reason) = slow.close().await;
    assert_eq!((code, reason.as_str()), (Some(1002), "pong timeout"));
}
