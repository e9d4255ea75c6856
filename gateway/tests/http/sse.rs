//! `/sse`.

use super::client::{Client, head};
use super::server::Running;
use prombus_gateway::GatewayOptions;
use serde_json::Value;

/// A stream of server-sent events that is being read.
struct Stream {
    client: Client,
    unread: String,
}

/// What came, by field.
#[derive(Debug, Default)]
struct Message {
    id: String,
    event: String,
    data: String,
}

impl Stream {
    async fn open(server: &Running, target: &str, headers: &[(&str, &str)]) -> Self {
        let mut client = server.client().await;
        client.send(head("GET", target, headers).as_bytes()).await;
        let head = client.head().await;
        assert_eq!(head.status, 200);
        assert_eq!(head.header("content-type"), Some("text/event-stream"));
        let unread = String::new();
        let mut stream = Self { client, unread };
        assert_eq!(stream.part().await.as_deref(), Some(": prombus"));
        stream
    }

    /// What stands before the next empty line; `None` at the end.
    async fn part(&mut self) -> Option<String> {
        loop {
            if let Some((part, rest)) = self.unread.split_once("\n\n") {
                let part = part.to_owned();
                self.unread = rest.to_owned();
                return Some(part);
            }
            let chunk = self.client.chunk().await.expect("not broken off")?;
            self.unread += &String::from_utf8(chunk).expect("text");
        }
    }

    /// The next message; comments are passed over.
    async fn next(&mut self) -> Option<Message> {
        loop {
            let part = self.part().await?;
            let mut message = Message::default();
            for line in part.lines() {
                match line.split_once(": ") {
                    Some(("id", id)) => message.id = id.to_owned(),
                    Some(("event", event)) => message.event = event.to_owned(),
                    Some(("data", data)) => message.data = data.to_owned(),
                    _ => assert!(line.starts_with(':'), "{line}"),
                }
            }
            if !message.data.is_empty() {
                return Some(message);
            }
        }
    }

    async fn payload(&mut self) -> u64 {
        let message = self.next().await.expect("an event");
        let record: Value = serde_json::from_str(&message.data).expect("a record");
        assert_eq!(record["id"], message.id);
        record["payload"].as_u64().expect("a number")
    }
}

#[tokio::test]
async fn events_come_as_they_are_published() {
    let server = Running::start().await;
    server.fill("t", 3).await;
    let mut from_now = Stream::open(&server, "/sse?topic=t", &[]).await;
    let mut from_start = Stream::open(&server, "/sse?topic=t&from=earliest", &[]).await;
    let mut from_third = Stream::open(&server, "/sse?topic=t&from=seq&seq=3", &[]).await;
    server.fill("t", 2).await;
    for expected in [1, 2, 3, 1, 2] {
        assert_eq!(from_start.payload().await, expected);
    }
    for expected in [3, 1, 2] {
        assert_eq!(from_third.payload().await, expected);
    }
    for expected in [1, 2] {
        assert_eq!(from_now.payload().await, expected);
    }
    assert!(
        server.bus().groups("t").await.expect("groups").is_empty(),
        "it leaves nothing behind"
    );
}

#[tokio::test]
async fn a_client_goes_on_where_it_was() {
    let server = Running::start().await;
    server.fill("t", 1_000).await;
    let (mut seen, mut last_id) = (Vec::new(), String::new());
    for _ in 0..4 {
        // The query stays as it was, as it does with a browser.
        let headers = [("last-event-id", last_id.as_str())];
        let mut stream = Stream::open(&server, "/sse?topic=t&from=earliest", &headers).await;
        for _ in 0..250 {
            let message = stream.next().await.expect("an event");
            let record: Value = serde_json::from_str(&message.data).expect("a record");
            seen.push(record["payload"].as_u64().expect("a number"));
            last_id = message.id;
        }
    }
    assert_eq!(seen, (1..=1_000).collect::<Vec<u64>>());
}

/// An error status would make a browser give up for good.
#[tokio::test]
async fn a_last_event_id_that_is_not_there_is_told_in_the_stream() {
    let server = Running::start().await;
    server.fill("t", 3).await;
    let unknown = [("last-event-id", "nobody")];
    let mut stream = Stream::open(&server, "/sse?topic=t", &unknown).await;
    let gap = stream.next().await.expect("a message");
    assert_eq!(gap.event, "gap");
    let body: Value = serde_json::from_str(&gap.data).expect("an error");
    assert_eq!(body["code"], "unknown_id");
    for number in 1..=3 {
        assert_eq!(stream.payload().await, number);
    }
}

#[tokio::test]
async fn a_topic_that_does_not_exist_yet_is_waited_for() {
    let server = Running::with(GatewayOptions {
        ping_interval_ms: 20,
        ..GatewayOptions::default()
    })
    .await;
    let mut latest = Stream::open(&server, "/sse?topic=new", &[]).await;
    let mut earliest = Stream::open(&server, "/sse?topic=new&from=earliest", &[]).await;
    assert_eq!(latest.part().await.as_deref(), Some(":"));
    assert!(
        server.bus().topic("new").is_err(),
        "looking does not make a topic"
    );
    server.fill("new", 2).await;
    for stream in [&mut latest, &mut earliest] {
        assert_eq!(stream.payload().await, 1);
        assert_eq!(stream.payload().await, 2);
    }
    server.bus().delete_topic("new").await.expect("deleted");
    assert_eq!(latest.next().await.expect("the end").event, "end");
}

#[tokio::test]
async fn silence_is_filled_with_comments() {
    let server = Running::with(GatewayOptions {
        ping_interval_ms: 20,
        ..GatewayOptions::default()
    })
    .await;
    server.fill("t", 1).await;
    let mut stream = Stream::open(&server, "/sse?topic=t", &[]).await;
    for _ in 0..3 {
        assert_eq!(stream.part().await.as_deref(), Some(":"));
    }
    server.fill("t", 1).await;
    assert_eq!(stream.payload().await, 1);
}

#[tokio::test]
async fn a_stream_ends_with_the_token_the_topic_and_the_server() {
    let server = Running::with_scopes(GatewayOptions {
        ping_interval_ms: 50,
        ..GatewayOptions::default()
    })
    .await;
    server.fill("t", 1).await;
    server.fill("gone", 1).await;
    let ends = |message: Option<Message>| {
        let message = message.expect("last words");
        assert_eq!(message.event, "end");
        let body: Value = serde_json::from_str(&message.data).expect("an error");
        body["code"].as_str().expect("a code").to_owned()
    };
    let mut expiring =
        Stream::open(&server, "/sse?topic=t&token=subscribe:**%20lives:300", &[]).await;
    assert_eq!(ends(expiring.next().await), "token_expired");
    assert!(expiring.next().await.is_none());
    let bearer = [("authorization", "Bearer subscribe:**")];
    let mut deleted = Stream::open(&server, "/sse?topic=gone", &bearer).await;
    server.bus().delete_topic("gone").await.expect("deleted");
    assert_eq!(ends(deleted.next().await), "unknown_topic");
    let mut drained = Stream::open(&server, "/sse?topic=t", &bearer).await;
    server.gateway.drain();
    assert_eq!(ends(drained.next().await), "shutting_down");
    assert!(drained.next().await.is_none());
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_nothing_but_a_few_pieces() {
    let server = Running::start().await;
    server.fill("t", 1).await;
    let mut stuck = Stream::open(&server, "/sse?topic=t&from=earliest", &[]).await;
    let large = format!("\"{}\"", "x".repeat(100_000));
    let mut client = server.client().await;
    for _ in 0..300 {
        client.post("/publish/t", &large).await.ok();
    }
    assert_eq!(stuck.payload().await, 1);
    for _ in 0..300 {
        assert!(stuck.next().await.is_some());
    }
}
