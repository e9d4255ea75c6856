//! Bodies of many lines: NDJSON publish and import.

use super::client::{Client, Reply, head};
use super::server::Running;
use serde_json::{Value, json};

const NDJSON: (&str, &str) = ("content-type", "application/x-ndjson");

async fn lines(client: &mut Client, target: &str, body: &str) -> Reply {
    client
        .request("POST", target, &[NDJSON], body.as_bytes())
        .await
}

#[tokio::test]
async fn each_line_is_an_event() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let headers = [
        ("content-type", "application/x-ndjson; charset=utf-8"),
        ("x-source", "test"),
    ];
    let body = "{\"a\": 1}\r\n\n  \n[2]\nnull";
    let reply = client
        .request("POST", "/publish/t?key=k&tags=a", &headers, body.as_bytes())
        .await;
    let expected = json!({
        "topic": "t", "lines": 3, "published": 3, "duplicates": 0, "failed": 0, "errors": [],
    });
    assert_eq!(reply.ok(), expected);
    let events = client.get("/replay?topic=t").await.ok()["events"].clone();
    let payloads: Vec<&Value> = events
        .as_array()
        .expect("events")
        .iter()
        .map(|event| &event["payload"])
        .collect();
    assert_eq!(payloads, [&json!({"a": 1}), &json!([2]), &Value::Null]);
    for event in events.as_array().expect("events") {
        assert_eq!(event["key"], "k");
        assert_eq!(event["tags"], json!(["a"]));
        assert_eq!(event["headers"], json!({"x-source": "test"}));
    }
    lines(&mut client, "/publish/t?id=one", "1\n2\n")
        .await
        .is_error(400, "bad_frame");
    assert_eq!(lines(&mut client, "/publish/t", "").await.ok()["lines"], 0);
}

#[tokio::test]
async fn bad_lines_are_told_and_the_others_stored() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let body = [
        r#"{"payload":1,"id":"a","key":"own"}"#,
        r#"{"payload":1,"id":"a"}"#,
        r#"{"payload":2,"id":"a"}"#,
        "nonsense",
        r#"{"key":"k"}"#,
        "",
        r#"{"payload":{"x":},"id":"b"}"#,
        r#"{"payload":3,"headers":{"h":"v"},"caused_by":["a"],"ts":5}"#,
    ]
    .join("\n");
    let reply = lines(&mut client, "/publish/t?envelope=1&key=k", &body)
        .await
        .ok();
    assert_eq!(
        (&reply["lines"], &reply["published"]),
        (&json!(7), &json!(2)),
        "{reply}"
    );
    assert_eq!(
        (&reply["duplicates"], &reply["failed"]),
        (&json!(1), &json!(4))
    );
    let told: Vec<(u64, &str)> = reply["errors"]
        .as_array()
        .expect("errors")
        .iter()
        .map(|error| {
            (
                error["line"].as_u64().expect("a line"),
                error["code"].as_str().expect("a code"),
            )
        })
        .collect();
    let expected = [
        (3, "id_conflict"),
        (4, "bad_json"),
        (5, "bad_frame"),
        (7, "bad_json"),
    ];
    assert_eq!(told, expected);
    let events = client.get("/replay?topic=t").await.ok()["events"].clone();
    assert_eq!(
        (&events[0]["key"], &events[1]["key"]),
        (&json!("own"), &json!("k"))
    );
    assert_eq!(
        (&events[1]["ts"], &events[1]["caused_by"]),
        (&json!(5), &json!(["a"]))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_lines_with_bad_ones_among_them() {
    const LINES: usize = 100_000;
    let server = Running::start().await;
    let mut client = server.client().await;
    let mut body = String::new();
    for number in 1..=LINES {
        match number % 50 {
            0 => body.push_str("{\"broken\":\n"),
            _ => body.push_str(&format!("{{\"n\":{number}}}\n")),
        }
    }
    // In pieces that have nothing to do with lines.
    let headers = [NDJSON, ("transfer-encoding", "chunked")];
    client
        .send(head("POST", "/publish/t", &headers).as_bytes())
        .await;
    for piece in body.as_bytes().chunks(10_007) {
        client
            .send(format!("{:x}\r\n", piece.len()).as_bytes())
            .await;
        client.send(piece).await;
        client.send(b"\r\n").await;
    }
    client.send(b"0\r\n\r\n").await;
    let reply = client.reply(false).await.ok();
    assert_eq!(reply["lines"], LINES);
    assert_eq!(reply["published"], LINES - LINES / 50);
    assert_eq!(reply["failed"], LINES / 50);
    let errors = reply["errors"].as_array().expect("errors");
    assert_eq!(errors.len(), 1_000, "no more than that are told");
    assert_eq!(reply["errors_left_out"], LINES / 50 - 1_000);
    assert!(
        errors
            .iter()
            .all(|error| error["line"].as_u64().is_some_and(|line| line % 50 == 0))
    );
    let exported = client.get("/export?topic=t").await.lines();
    let stored = exported
        .iter()
        .map(|event| event["payload"]["n"].as_u64().expect("a number"));
    let expected = (1..=LINES as u64).filter(|number| number % 50 != 0);
    assert!(stored.eq(expected), "all of them, in their order");
}

#[tokio::test]
async fn a_line_that_is_too_long_is_passed_over() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let body = format!("1\n\"{}\"\n2\n", "x".repeat(3 << 20));
    let reply = lines(&mut client, "/publish/t", &body).await.ok();
    assert_eq!(reply["published"], 2);
    let error = &reply["errors"][0];
    assert_eq!(
        (&error["line"], &error["code"]),
        (&json!(2), &json!("too_large"))
    );
}

#[tokio::test]
async fn lines_are_stored_while_the_body_goes_on() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let headers = [NDJSON, ("transfer-encoding", "chunked")];
    client
        .send(head("POST", "/publish/t", &headers).as_bytes())
        .await;
    for number in 1..=3 {
        client.send(b"2\r\n1\n\r\n").await;
        let mut waited = 0;
        while server.bus().topic("t").map_or(0, |info| info.tail_seq) < number {
            waited += 1;
            assert!(waited < 1_000, "line {number} does not wait for the next");
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }
    client.send(b"0\r\n\r\n").await;
    assert_eq!(client.reply(false).await.ok()["published"], 3);
}

#[tokio::test]
async fn an_import_keeps_id_and_ts_and_can_be_run_again() {
    let server = Running::start().await;
    let mut client = server.client().await;
    for number in 0..500_u32 {
        let target = format!(
            "/publish/from?key=k{}&ts={}&tags=t",
            number % 7,
            1_000 - u64::from(number / 10)
        );
        client.post(&target, &number.to_string()).await.ok();
    }
    let exported = client.get("/export?topic=from").await;
    let first = lines(&mut client, "/import?topic=to", &exported.text())
        .await
        .ok();
    assert_eq!(
        (&first["published"], &first["failed"]),
        (&json!(500), &json!(0))
    );
    let again = lines(&mut client, "/import?topic=to", &exported.text())
        .await
        .ok();
    assert_eq!(
        (&again["published"], &again["duplicates"]),
        (&json!(0), &json!(500))
    );
    let itself = lines(&mut client, "/import?topic=from", &exported.text())
        .await
        .ok();
    assert_eq!(
        (&itself["published"], &itself["duplicates"]),
        (&json!(0), &json!(500))
    );
    let said = |event: &Value| {
        let mut event = event.clone();
        let fields = event.as_object_mut().expect("a record");
        fields.remove("topic");
        fields.remove("seq");
        event
    };
    let before: Vec<Value> = exported.lines().iter().map(said).collect();
    let after: Vec<Value> = client
        .get("/export?topic=to")
        .await
        .lines()
        .iter()
        .map(said)
        .collect();
    assert_eq!(before.len(), 500);
    assert_eq!(before, after);
    let reply = lines(&mut client, "/import?topic=to", "{\"payload\":1}\n")
        .await
        .ok();
    assert_eq!(
        reply["errors"][0]["code"], "bad_frame",
        "without an id it would be stored each time"
    );
    lines(&mut client, "/import", "")
        .await
        .is_error(400, "bad_frame");
    lines(&mut client, "/import?topic=a..b", "")
        .await
        .is_error(400, "bad_topic");
}
