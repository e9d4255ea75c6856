//! An OpenTelemetry collector, as far as spans over HTTP need one.

use serde_json::Value;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Far beyond what a slow machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A collector that replies with one status after the other, the last one for ever.
pub(crate) async fn collector(statuses: &'static [u16]) -> (String, mpsc::Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (sender, received) = mpsc::channel(64);
    tokio::spawn(async move {
        let mut statuses = statuses.iter().copied().peekable();
        while let Ok((stream, _)) = listener.accept().await {
            let status = statuses.next().unwrap_or(200);
            let body = take_request(stream, status).await;
            if status == 200 {
                sender.send(body).await.expect("somebody listens");
            }
        }
    });
    (url, received)
}

/// Reads a request, checks that it is what OTLP over HTTP asks for, and replies.
async fn take_request(stream: TcpStream, status: u16) -> Value {
    let mut stream = BufReader::new(stream);
    let (mut line, mut length, mut is_json) = (String::new(), 0, false);
    stream.read_line(&mut line).await.expect("a request line");
    assert_eq!(line.trim_end(), "POST /v1/traces HTTP/1.1");
    loop {
        line.clear();
        stream.read_line(&mut line).await.expect("a header");
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().expect("a length"),
            "content-type" => is_json = value == "application/json",
            _ => {}
        }
    }
    assert!(is_json, "the body is JSON");
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.expect("a body");
    let reply =
        format!("HTTP/1.1 {status} -\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}");
    stream.write_all(reply.as_bytes()).await.expect("replied");
    serde_json::from_slice(&body).expect("JSON")
}

/// Receives until there are so many spans.
pub(crate) async fn receive(received: &mut mpsc::Receiver<Value>, count: usize) -> Vec<Value> {
    let mut spans = Vec::new();
    while spans.len() < count {
        let body = timeout(PATIENCE, received.recv()).await;
        let body = body.expect("in time").expect("a request");
        let resource = &body["resourceSpans"][0];
        let service = &resource["resource"]["attributes"][0];
        assert_eq!(service["key"], "service.name");
        assert_eq!(service["value"]["stringValue"], "prombus");
        let more = resource["scopeSpans"][0]["spans"].as_array();
        spans.extend_from_slice(more.expect("spans"));
    }
    spans
}

pub(crate) fn attribute<'a>(span: &'a Value, key: &str) -> &'a Value {
    let all = span["attributes"].as_array().expect("attributes");
    let found = all.iter().find(|attribute| attribute["key"] == key);
    &found.expect(key)["value"]
}
