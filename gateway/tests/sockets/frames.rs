//! Messages that are not what they should be: each gets its error, and the connection goes on.

use crate::support::serve;
use serde_json::json;

#[tokio::test]
async fn a_bad_frame_is_told_and_the_connection_stays() {
    let served = serve().await;
    let mut socket = served.connect().await;
    for (text, code) in [
        ("", "bad_json"),
        ("nonsense", "bad_json"),
        ("{", "bad_json"),
        ("{}", "bad_frame"),
        ("[]", "bad_frame"),
        ("42", "bad_frame"),
        ("\"PUBLISH\"", "bad_frame"),
        (r#"{"op":7}"#, "bad_frame"),
        (r#"{"op":"FLY"}"#, "unknown_op"),
        (r#"{"op":"publish","topic":"t","payload":1}"#, "unknown_op"),
        (r#"{"op":"ACK","topic":"t","group":"g"}"#, "bad_frame"),
        (
            r#"{"op":"ACK","topic":"t","group":"g","id":"1","ids":["2"]}"#,
            "bad_frame",
        ),
        (
            r#"{"op":"MODACK","topic":"t","group":"g","extend_ms":1}"#,
            "bad_frame",
        ),
        (r#"{"op":"PUBLISH","topic":"t","payload":1} x"#, "bad_json"),
        ("\u{0}\u{1}", "bad_json"),
    ] {
        socket.send_text(text).await;
        let reply = socket.reply().await;
        assert_eq!(
            (&reply["op"], &reply["code"]),
            (&json!("ERR"), &json!(code)),
            "{text}"
        );
    }
    assert_eq!(socket.publish("t", json!(1)).await["seq"], 1);
}

#[tokio::test]
async fn each_frame_of_an_array_stands_for_itself() {
    let served = serve().await;
    let mut socket = served.connect().await;
    socket
        .send_text(
            r#"[{"op":"PUBLISH","topic":"t","payload":1,"corr":"1"},{"op":"NO","corr":"2"},7,
               {"op":"PUBLISH","topic":"t","payload":2,"corr":"4"}]"#,
        )
        .await;
    for (corr, code) in [
        (Some("1"), None),
        (Some("2"), Some("unknown_op")),
        (None, Some("bad_frame")),
        (Some("4"), None),
    ] {
        let reply = socket.reply().await;
        assert_eq!(reply["corr"].as_str(), corr, "{reply}");
        assert_eq!(reply["code"].as_str(), code, "{reply}");
    }
}

#[tokio::test]
async fn nothing_of_an_array_that_is_not_closed_runs() {
    let served = serve().await;
    let mut socket = served.connect().await;
    let frame = r#"{"op":"PUBLISH","topic":"t","payload":1,"corr":"1"}"#;
    for open in [
        format!("[{frame}"),
        format!("[{frame},"),
        format!("[{frame},{{\"op\":\"PUB"),
    ] {
        socket.send_text(&open).await;
        assert_eq!(socket.reply().await["code"], "bad_json", "{open}");
    }
    assert!(served.gateway.bus().topic("t").is_err());
}

#[tokio::test]
async fn thousands_of_tiny_frames_are_each_answered() {
    let served = serve().await;
    let mut socket = served.connect().await;
    let one = crate::support::masked(0x81, b"{}");
    socket.send_raw(&one.repeat(20_000)).await;
    for _ in 0..20_000 {
        assert_eq!(socket.reply().await["code"], "bad_frame");
    }
    assert_eq!(socket.publish("t", json!(1)).await["seq"], 1);
}
