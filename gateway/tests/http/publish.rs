//! `POST /publish/:topic` with one payload.

use super::server::Running;
use prombus::BusOptions;
use prombus_gateway::GatewayOptions;
use prombus_gateway::auth::Authenticator;
use prombus_gateway::limits::LimitsConfig;
use prombus_log::FileStore;
use std::sync::Arc;

#[tokio::test]
async fn an_event_is_stored_as_it_was_sent() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let headers = [
        ("X-Trace", "1"),
        ("x-trace", "2"),
        ("traceparent", "00-a-b-01"),
        ("tracestate", "v=1"),
        ("authorization", "Bearer secret"),
        ("cookie", "c=1"),
        ("accept", "*/*"),
    ];
    let target = "/publish/a.b?key=k%20%C3%BC&id=own-1&ts=17&sid=s&tags=%23x,y&tags=z";
    let reply = client
        .request("POST", target, &headers, b"{ \"b\": 1.50, \"a\": [] }")
        .await
        .ok();
    assert_eq!(reply["id"], "own-1");
    assert_eq!(reply["seq"], 1);
    assert_eq!(reply["ts"], 17);
    assert_eq!(reply["topic"], "a.b");
    assert_eq!(reply["durability"], "memory");
    assert!(reply.get("duplicate").is_none());
    let page = client.get("/replay?topic=a.b").await;
    let record = &page.ok()["events"][0];
    assert_eq!(record["key"], "k ü");
    assert_eq!(record["sid"], "s");
    assert_eq!(record["tags"], serde_json::json!(["#x", "y", "z"]));
    let kept =
        serde_json::json!({"x-trace": "1, 2", "traceparent": "00-a-b-01", "tracestate": "v=1"});
    assert_eq!(record["headers"], kept, "and no others");
    assert!(
        page.text().contains(r#""payload":{"b":1.50,"a":[]}"#),
        "{}",
        page.text()
    );
}

#[tokio::test]
async fn the_same_id_is_stored_once() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let key = [("Idempotency-Key", "once")];
    let first = client.request("POST", "/publish/t", &key, b"1").await.ok();
    let again = client.request("POST", "/publish/t", &key, b"1").await.ok();
    assert_eq!(again["duplicate"], true);
    assert_eq!((&again["id"], &again["seq"]), (&first["id"], &first["seq"]));
    let other = client.request("POST", "/publish/t", &key, b"2").await;
    other.is_error(409, "id_conflict");
    let both = client
        .request("POST", "/publish/t?id=other", &key, b"1")
        .await;
    both.is_error(400, "bad_frame");
    assert_eq!(server.bus().topic("t").expect("a topic").tail_seq, 1);
}

#[tokio::test]
async fn what_is_wrong_is_said() {
    let server = Running::start().await;
    let mut client = server.client().await;
    for (target, body, status, code) in [
        ("/publish/t", "{", 400, "bad_json"),
        ("/publish/t", "", 400, "bad_json"),
        ("/publish/a%2Fb", "1", 400, "bad_topic"),
        ("/publish/a..b", "1", 400, "bad_topic"),
        ("/publish/%FF", "1", 400, "bad_topic"),
        ("/publish/%zz", "1", 400, "bad_topic"),
        ("/publish/a+b", "1", 400, "bad_topic"),
        ("/publish/t?ts=soon", "1", 400, "bad_frame"),
        ("/publish/t?id=%0A", "1", 400, "bad_frame"),
        ("/publish/t?id=%20a", "1", 400, "bad_frame"),
        ("/publish/t?id=a+", "1", 400, "bad_frame"),
        ("/publish/t?key=%", "1", 400, "bad_frame"),
    ] {
        client.post(target, body).await.is_error(status, code);
    }
    let long = format!("/publish/t?key={}", "k".repeat(513));
    client.post(&long, "1").await.is_error(413, "too_large");
    let bytes = client.request("POST", "/publish/t", &[], b"\"\xFF\"").await;
    bytes.is_error(400, "bad_json");
    assert!(server.bus().topics().is_empty(), "nothing made a topic");
    client.post("/publish/a%2Eb%2d", "1").await.ok();
    assert!(server.bus().topic("a.b-").is_ok());
}

#[tokio::test]
async fn a_topic_that_may_not_be_made_is_unknown() {
    let store = Arc::new(prombus_store::memory::MemoryStore::new(Arc::new(
        prombus::SystemClock,
    )));
    let bus_options = BusOptions {
        auto_create_topics: false,
        ..BusOptions::default()
    };
    let server = Running::on(
        store,
        bus_options,
        Authenticator::off(),
        GatewayOptions::default(),
    )
    .await;
    let mut client = server.client().await;
    client
        .post("/publish/t", "1")
        .await
        .is_error(404, "unknown_topic");
    client.request("PUT", "/topics/t", &[], b"").await.ok();
    client.post("/publish/t", "1").await.ok();
}

#[tokio::test]
async fn a_payload_that_is_too_large_is_not_read() {
    let limits = LimitsConfig {
        max_payload_bytes: 100,
        ..LimitsConfig::default()
    };
    let server = Running::with(GatewayOptions {
        limits,
        ..GatewayOptions::default()
    })
    .await;
    let mut client = server.client().await;
    let fits = format!("\"{}\"", "x".repeat(98));
    client.post("/publish/t", &fits).await.ok();
    let mut client = server.client().await;
    // Only the length is sent; whoever waits for the body waits for ever.
    let head = super::client::head("POST", "/publish/t", &[("content-length", "101")]);
    client.send(head.as_bytes()).await;
    client.reply(false).await.is_error(413, "too_large");
    let mut client = server.client().await;
    let head = super::client::head("POST", "/publish/t", &[("transfer-encoding", "chunked")]);
    client.send(head.as_bytes()).await;
    client
        .send(format!("65\r\n{}\r\n", "1".repeat(101)).as_bytes())
        .await;
    client.reply(false).await.is_error(413, "too_large");
}

#[tokio::test]
async fn the_reply_says_how_durable_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = FileStore::open(folder.path()).expect("a store");
    let options = GatewayOptions::default();
    let server = Running::on(
        Arc::new(store),
        BusOptions::default(),
        Authenticator::off(),
        options,
    )
    .await;
    let mut client = server.client().await;
    assert_eq!(
        client.post("/publish/a", "1").await.ok()["durability"],
        "fsync"
    );
    let os = br#"{"durability":"os"}"#;
    client.request("PUT", "/topics/b", &[], os).await.ok();
    assert_eq!(
        client.post("/publish/b", "1").await.ok()["durability"],
        "os"
    );
}

#[tokio::test]
async fn a_publish_may_expect_the_last_seq() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let first = client
        .request("POST", "/publish/t?expect_seq=0&id=a", &[], b"1")
        .await;
    assert_eq!(first.ok()["seq"], 1);
    let wrong = client
        .request("POST", "/publish/t?expect_seq=0", &[], b"2")
        .await;
    wrong.is_error(412, "seq_mismatch");
    assert_eq!(wrong.json()["actual"], 1);
    let again = client
        .request("POST", "/publish/t?expect_seq=0&id=a", &[], b"1")
        .await;
    assert_eq!(
        again.ok()["duplicate"],
        true,
        "a retry whose reply was lost"
    );
    let next = client
        .request("POST", "/publish/t?expect_seq=1", &[], b"2")
        .await;
    assert_eq!(next.ok()["seq"], 2);
    for bad in ["expect_seq=-1", "expect_seq=x", "expect_key_seq=0"] {
        let reply = client
            .request("POST", &format!("/publish/t?{bad}"), &[], b"3")
            .await;
        reply.is_error(400, "bad_frame");
    }
}

#[tokio::test]
async fn if_match_takes_the_tag_of_the_snapshot() {
    let server = Running::start().await;
    let mut client = server.client().await;
    client
        .request("POST", "/publish/t?key=other", &[], b"0")
        .await
        .ok();
    let made = client
        .request("POST", "/publish/t?key=k&expect_key_seq=0", &[], b"1")
        .await;
    assert_eq!(made.ok()["seq"], 2);
    let snap = client.get("/snap/t/k").await;
    let tag = snap.head.header("etag").expect("a tag").to_owned();
    client.request("POST", "/publish/t", &[], b"0").await.ok();
    let changed = client
        .request(
            "POST",
            "/publish/t?key=k",
            &[("If-Match", tag.as_str())],
            b"2",
        )
        .await;
    assert_eq!(changed.ok()["seq"], 4);
    let late = client
        .request(
            "POST",
            "/publish/t?key=k",
            &[("If-Match", tag.as_str())],
            b"3",
        )
        .await;
    late.is_error(412, "seq_mismatch");
    assert_eq!(late.json()["actual"], 4);
    let plain = client
        .request("POST", "/publish/t?key=k", &[("If-Match", "\"4\"")], b"3")
        .await;
    assert_eq!(plain.ok()["seq"], 5);
    for bad in [
        "5",
        "*",
        "W/\"5\"",
        "\"\"",
        "\"x\"",
        "\"5-x\"",
        "\"5\", \"6\"",
    ] {
        let reply = client
            .request("POST", "/publish/t?key=k", &[("If-Match", bad)], b"4")
            .await;
        reply.is_error(400, "bad_frame");
    }
    let keyless = client
        .request("POST", "/publish/t", &[("If-Match", "\"5\"")], b"4")
        .await;
    keyless.is_error(400, "bad_frame");
    let lines = [
        ("If-Match", "\"5\""),
        ("content-type", "application/x-ndjson"),
    ];
    let lines = client
        .request("POST", "/publish/t?key=k", &lines, b"4\n")
        .await;
    lines.is_error(400, "bad_frame");
    let info = server.bus().store().topic("t").expect("a topic");
    assert_eq!(info.tail_seq, 5);
}
