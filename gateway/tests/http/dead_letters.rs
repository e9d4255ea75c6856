//! `/dlq` and `/dlq/redrive`.

mod remove;
mod rights;

use super::client::Client;
use super::server::Running;
use prombus::{StartAt, SubscribeOptions};
use serde_json::{Value, json};

/// Lets `count` events of `t` die.
async fn kill(server: &Running, count: u64) {
    let options = SubscribeOptions {
        from: StartAt::Earliest,
        max_attempts: Some(1),
        ..SubscribeOptions::default()
    };
    let subscription = server
        .bus()
        .subscribe("t", "g", options)
        .await
        .expect("subscribed");
    let before = letters(server);
    for _ in 0..count {
        let delivery = subscription.next().await.expect("a delivery");
        delivery.nack_confirmed("broken").await.expect("refused");
    }
    for _ in 0..1_000 {
        if letters(server) >= before + count {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the letters were never written");
}

fn letters(server: &Running) -> u64 {
    server.bus().topic("dlq.t").map_or(0, |info| info.tail_seq)
}

async fn ids(client: &mut Client) -> Vec<Value> {
    let page = client.get("/dlq?topic=t").await.ok();
    let events = page["events"].as_array().expect("events").iter();
    events.map(|event| event["id"].clone()).collect()
}

async fn redrive(client: &mut Client, body: Value) -> Value {
    client.post("/dlq/redrive", &body.to_string()).await.ok()
}

#[tokio::test]
async fn letters_are_listed() {
    let server = Running::start().await;
    let mut client = server.client().await;
    client
        .get("/dlq?topic=t")
        .await
        .is_error(404, "unknown_topic");
    server.fill("t", 3).await;
    assert_eq!(client.get("/dlq?topic=t").await.ok()["count"], 0);
    kill(&server, 2).await;
    let page = client.get("/dlq?topic=t&limit=1").await.ok();
    let letter = &page["events"][0]["payload"];
    assert_eq!((&page["count"], &page["next"]), (&json!(1), &json!(2)));
    assert_eq!(
        (&letter["topic"], &letter["group"], &letter["err"]),
        (&json!("t"), &json!("g"), &json!("broken"))
    );
    assert_eq!(letter["original"]["payload"], 1);
}

#[tokio::test]
async fn letters_are_sent_round_once() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let headers = [("x-trace", "7")];
    client
        .request("POST", "/publish/t?key=k&tags=a", &headers, b"1")
        .await
        .ok();
    server.fill("t", 2).await;
    kill(&server, 3).await;
    let ids = ids(&mut client).await;
    let dry = redrive(&mut client, json!({"topic": "t", "dry_run": true})).await;
    let expected =
        json!({"topic": "t", "dry_run": true, "matched": 3, "redriven": 3, "failed": []});
    assert_eq!(dry, expected);
    assert_eq!(
        server.bus().topic("t").expect("a topic").tail_seq,
        3,
        "nothing was done"
    );
    let one = redrive(&mut client, json!({"topic": "t", "ids": [ids[0]]})).await;
    assert_eq!((&one["matched"], &one["redriven"]), (&json!(1), &json!(1)));
    let again = client.get("/replay?topic=t&from=seq&seq=4").await.ok()["events"][0].clone();
    assert_eq!(
        (&again["payload"], &again["key"], &again["tags"]),
        (&json!(1), &json!("k"), &json!(["a"]))
    );
    assert_eq!(again["headers"], json!({"x-trace": "7"}));
    assert_eq!(again["caused_by"], json!([ids[0]]));
    let all = redrive(
        &mut client,
        json!({"topic": "t", "all": true, "rate": 1_000}),
    )
    .await;
    assert_eq!((&all["matched"], &all["redriven"]), (&json!(3), &json!(2)));
    assert_eq!(
        (&all["failed"][0]["id"], &all["failed"][0]["code"]),
        (&ids[0], &json!("id_conflict"))
    );
    let dry = redrive(&mut client, json!({"topic": "t", "dry_run": true})).await;
    assert_eq!(
        (&dry["redriven"], dry["failed"].as_array().map(Vec::len)),
        (&json!(0), Some(3))
    );
    assert_eq!(server.bus().topic("t").expect("a topic").tail_seq, 6);
    let forced = redrive(
        &mut client,
        json!({"topic": "t", "ids": [ids[0]], "force": true}),
    )
    .await;
    assert_eq!(forced["redriven"], 1);
    assert_eq!(server.bus().topic("t").expect("a topic").tail_seq, 7);
}

#[tokio::test]
async fn what_dies_again_is_not_sent_again() {
    let server = Running::start().await;
    server.fill("t", 1).await;
    kill(&server, 1).await;
    let mut client = server.client().await;
    let first = ids(&mut client).await[0].clone();
    assert_eq!(
        redrive(&mut client, json!({"topic": "t", "ids": [first]})).await["redriven"],
        1
    );
    kill(&server, 1).await;
    let second = ids(&mut client).await[1].clone();
    for dry_run in [true, false] {
        let refused = redrive(
            &mut client,
            json!({"topic": "t", "ids": [second], "dry_run": dry_run}),
        )
        .await;
        assert_eq!(
            (&refused["redriven"], &refused["failed"][0]["id"]),
            (&json!(0), &second)
        );
        let error = refused["failed"][0]["error"].as_str().expect("a reason");
        assert!(error.contains("force"), "{error}");
    }
    let forced = redrive(
        &mut client,
        json!({"topic": "t", "ids": [second], "force": true}),
    )
    .await;
    assert_eq!(forced["redriven"], 1);
    let events = client.get("/replay?topic=t").await.ok()["events"].clone();
    assert_eq!(events[2]["caused_by"], json!([first, second]));
}

#[tokio::test]
async fn a_payload_can_be_mended() {
    let server = Running::start().await;
    server.fill("t", 1).await;
    kill(&server, 1).await;
    let mut client = server.client().await;
    let id = ids(&mut client).await[0].clone();
    let mended = json!({"topic": "t", "ids": [id], "payload": {"mended": true}});
    assert_eq!(redrive(&mut client, mended).await["redriven"], 1);
    let events = client.get("/replay?topic=t").await.ok()["events"].clone();
    assert_eq!(events[1]["payload"], json!({"mended": true}));
    let all = json!({"topic": "t", "payload": 1}).to_string();
    client
        .post("/dlq/redrive", &all)
        .await
        .is_error(400, "bad_frame");
}

#[tokio::test]
async fn letters_that_are_not_there() {
    let server = Running::start().await;
    let mut client = server.client().await;
    client
        .post("/dlq/redrive", r#"{"topic":"none"}"#)
        .await
        .is_error(404, "unknown_topic");
    client
        .post("/dlq/redrive", r#"{"topic":"a b"}"#)
        .await
        .is_error(400, "bad_topic");
    server.fill("t", 1).await;
    assert_eq!(
        redrive(&mut client, json!({"topic": "t"})).await["matched"],
        0
    );
    let unknown = redrive(&mut client, json!({"topic": "t", "ids": ["nobody"]})).await;
    assert_eq!(unknown["failed"][0]["code"], "unknown_id");
    client
        .post("/dlq/redrive", r#"{"topic":"t","rate":0}"#)
        .await
        .is_error(400, "bad_frame");
}
