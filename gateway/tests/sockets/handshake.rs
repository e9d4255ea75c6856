//! From a request to a socket.

use crate::support::{Socket, serve, serve_with};
use prombus_gateway::GatewayOptions;
use prombus_gateway::auth::Authenticator;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test]
async fn both_paths_become_sockets() {
    let served = serve().await;
    for path in ["/", "/ws", "/ws?token=whatever"] {
        let mut socket = Socket::connect(served.address, path, "").await.expect(path);
        let reply = socket.ask(json!({"op":"AUTH","corr":"a"})).await;
        assert_eq!(reply, json!({"op":"OK","corr":"a"}), "{path}");
    }
    assert!(Socket::connect(served.address, "/other", "").await.is_err());
}

#[tokio::test]
async fn frames_behind_the_request_are_heard() {
    let served = serve().await;
    let mut frames = crate::support::masked(
        0x81,
        br#"{"op":"PUBLISH","topic":"t","payload":1,"corr":"1"}"#,
    );
    frames.extend(crate::support::masked(0x81, br#"{"op":"NO","corr":"2"}"#));
    let mut stream = TcpStream::connect(served.address)
        .await
        .expect("it listens");
    let mut request =
        b"GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            .to_vec();
    request.extend(frames);
    stream.write_all(&request).await.expect("it reads");
    let mut read = Vec::new();
    for _ in 0..100 {
        stream.read_buf(&mut read).await.expect("it answers");
        if String::from_utf8_lossy(&read).contains("unknown_op") {
            return;
        }
    }
    panic!("no answer");
}

#[tokio::test]
async fn a_request_that_is_no_handshake_is_told_so() {
    let served = serve().await;
    for (headers, status) in [
        ("", "426"),
        ("Connection: Upgrade\r\nUpgrade: h2c\r\n", "426"),
        (
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 8\r\n",
            "426",
        ),
        (
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
            "400",
        ),
        (
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n",
            "400",
        ),
        (
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
            "400",
        ),
    ] {
        let mut stream = TcpStream::connect(served.address)
            .await
            .expect("it listens");
        let request = format!("GET /ws HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        stream
            .write_all(request.as_bytes())
            .await
            .expect("it reads");
        let mut answer = vec![0; 12];
        stream.read_exact(&mut answer).await.expect("it answers");
        let answer = String::from_utf8(answer).expect("text");
        assert_eq!(answer, format!("HTTP/1.1 {status}"), "{headers}");
    }
}

#[tokio::test]
async fn pages_of_other_origins_are_not_let_in_unless_they_are_named() {
    let named = GatewayOptions {
        cors_origins: vec!["https://ours.example".to_owned()],
        ..GatewayOptions::default()
    };
    let served = serve_with(Authenticator::off(), named).await;
    for (origin, is_let_in) in [
        ("http://localhost", true),
        ("https://ours.example", true),
        ("https://other.example", false),
        ("null", false),
    ] {
        let headers = format!("Origin: {origin}\r\n");
        let connected = Socket::connect(served.address, "/ws", &headers).await;
        assert_eq!(connected.is_ok(), is_let_in, "{origin}");
        if let Err(answer) = connected {
            assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
        }
    }
}

#[tokio::test]
async fn only_get_of_http_1_1_becomes_a_socket() {
    let served = serve().await;
    for line in ["POST /ws HTTP/1.1", "GET /ws HTTP/1.0", "PUT / HTTP/1.1"] {
        let mut stream = TcpStream::connect(served.address)
            .await
            .expect("it listens");
        let request = format!(
            "{line}\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        let sent = stream.write_all(request.as_bytes()).await;
        sent.expect("it reads");
        let mut read = Vec::new();
        while !read.windows(4).any(|part| part == b"\r\n\r\n") {
            assert!(stream.read_buf(&mut read).await.expect("it answers") > 0);
        }
        let answer = String::from_utf8_lossy(&read).to_lowercase();
        assert!(answer.contains(" 426 "), "{line}: {answer}");
        assert!(answer.contains("upgrade: websocket"), "{line}: {answer}");
        assert!(answer.contains("connection: upgrade"), "{line}: {answer}");
    }
}
