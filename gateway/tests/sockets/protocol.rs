//! WebSocket frames in pieces, too large, of the wrong kind; pings and closes.

use crate::support::{
    BINARY, CLOSE, Message, PING, PONG, Served, Socket, TEXT, masked, publish, serve, serve_with,
};
use prombus_gateway::GatewayOptions;
use prombus_gateway::auth::Authenticator;
use serde_json::json;
use tokio::io::AsyncWriteExt;

async fn serve_small() -> Served {
    let mut options = GatewayOptions::default();
    options.limits.max_message_bytes = 100_000;
    serve_with(Authenticator::off(), options).await
}

#[tokio::test]
async fn a_message_in_pieces_is_put_together() {
    let served = serve().await;
    let mut socket = served.connect().await;
    let text = publish("t", json!("ä".repeat(1_000))).to_string();
    let (first, rest) = text.as_bytes().split_at(51);
    socket.send_frame(TEXT, first).await;
    socket.send_frame(0x80 | PING, b"in between").await;
    assert_eq!(
        socket.message().await,
        Message::Pong(b"in between".to_vec())
    );
    for piece in rest.chunks(7) {
        socket.send_frame(0, piece).await;
    }
    socket.send_frame(0x80, b"").await;
    assert_eq!(socket.reply().await["seq"], 1);
}

#[tokio::test]
async fn bytes_may_come_one_by_one() {
    let served = serve().await;
    let mut socket = served.connect().await;
    let bytes = masked(
        0x81,
        publish("t", json!("x".repeat(200))).to_string().as_bytes(),
    );
    for byte in bytes {
        socket.send_raw(&[byte]).await;
        socket.stream.flush().await.expect("it is sent");
    }
    assert_eq!(socket.reply().await["seq"], 1);
}

#[tokio::test]
async fn what_breaks_the_protocol_closes_with_a_reason() {
    let served = serve_small().await;
    let unmasked = vec![0x81, 2, b'{', b'}'];
    let announced = [&[0x81, 0xFF][..], &u64::MAX.to_be_bytes()].concat();
    for (what, bytes, code) in [
        ("binary", masked(0x80 | BINARY, b"{}"), 1003),
        ("not UTF-8", masked(0x81, &[0xFF, 0xFE]), 1007),
        ("unmasked", unmasked, 1002),
        ("reserved bits", masked(0xC1, b"{}"), 1002),
        ("an opcode that is none", masked(0x83, b"{}"), 1002),
        ("a control opcode that is none", masked(0x8B, b""), 1002),
        ("a continuation of nothing", masked(0x80, b"{}"), 1002),
        (
            "a message in a message",
            [masked(0x01, b"{"), masked(0x81, b"{}")].concat(),
            1002,
        ),
        (
            "half UTF-8 in pieces",
            [masked(0x01, &[0xC3]), masked(0x80, b"x")].concat(),
            1007,
        ),
        ("a ping in pieces", masked(PING, b""), 1002),
        ("a long ping", masked(0x80 | PING, &[0; 126]), 1002),
        ("truncated close code", masked(0x80 | CLOSE, &[3]), 1002),
        (
            "a close code that is none",
            masked(0x80 | CLOSE, &999_u16.to_be_bytes()),
            1002,
        ),
        (
            "a length written long",
            vec![0x81, 0xFE, 0, 5, 0, 0, 0, 0],
            1002,
        ),
        ("too large", masked(0x81, &[b' '; 100_001]), 1009),
        ("an announced flood", announced, 1009),
        (
            "too large in pieces",
            [masked(0x01, &[b' '; 60_000]), masked(0x00, &[b' '; 60_000])].concat(),
            1009,
        ),
    ] {
        let mut socket = served.connect().await;
        assert_eq!(socket.publish("t", json!(1)).await["op"], "OK");
        // A server that has seen enough may close before it has read all.
        let _ = socket.stream.write_all(&bytes).await;
        let (found, reason) = socket.close().await;
        assert_eq!(found, Some(code), "{what}: {reason}");
        assert!(!reason.is_empty(), "{what}");
        assert_eq!(socket.message().await, Message::End, "{what}");
    }
    assert_eq!(
        served.connect().await.publish("t", json!(2)).await["op"],
        "OK"
    );
}

#[tokio::test]
async fn a_message_at_the_limit_is_heard() {
    let served = serve_small().await;
    let mut socket = served.connect().await;
    let mut text = publish("t", json!("x".repeat(90_000))).to_string();
    text.push_str(&" ".repeat(100_000 - text.len()));
    socket.send_text(&text).await;
    assert_eq!(socket.reply().await["seq"], 1);
}

#[tokio::test]
async fn a_close_is_answered() {
    let served = serve().await;
    let mut socket = served.connect().await;
    socket.send(publish("t", json!(1))).await;
    let close = [&1000_u16.to_be_bytes()[..], b"bye"].concat();
    socket.send_frame(0x80 | CLOSE, &close).await;
    assert_eq!(
        socket.reply().await["seq"],
        1,
        "what was said before is answered"
    );
    assert_eq!(socket.close().await, (Some(1000), String::new()));
    assert_eq!(socket.message().await, Message::End);
    served
        .until("nobody is there", |gateway| {
            gateway.metrics().connections.get() == 0
        })
        .await;
}

#[tokio::test]
async fn a_silent_socket_is_pinged_and_a_dead_one_closed() {
    let options = GatewayOptions {
        ping_interval_ms: 100,
        pong_timeout_ms: 100,
        ..GatewayOptions::default()
    };
    let served = serve_with(Authenticator::off(), options).await;
    let mut alive = served.connect().await;
    let mut dead = served.connect().await;
    for _ in 0..5 {
        assert_eq!(alive.message().await, Message::Ping);
        alive.send_frame(0x80 | PONG, b"").await;
    }
    assert_eq!(dead.message().await, Message::Ping);
    let (code, reason) = dead.close().await;
    assert_eq!((code, reason.as_str()), (Some(1002), "pong timeout"));
    assert_eq!(alive.publish("t", json!(1)).await["seq"], 1);
}

#[tokio::test]
async fn clients_that_come_and_go_leave_nothing() {
    let served = serve().await;
    for round in 0..200 {
        let mut socket = served.connect().await;
        match round % 4 {
            0 => {}
            1 => socket.send_raw(&[0x81]).await,
            2 => socket.subscribe("t", "g", json!({})).await,
            _ => socket.send_frame(0x80 | CLOSE, b"").await,
        }
    }
    served
        .until("nobody is there", |gateway| {
            gateway.metrics().connections.get() == 0
        })
        .await;
    let mut socket = Socket::connect(served.address, "/", "").await.expect("101");
    assert_eq!(socket.publish("t", json!(1)).await["op"], "OK");
}
