//! Letters that leave, letters for one group, and what is in a topic of dead letters without being one.

use super::{ids, kill, redrive};
use crate::server::Running;
use prombus::{StartAt, SubscribeOptions};
use serde_json::{Value, json};

#[tokio::test]
async fn what_is_not_a_letter_is_listed_and_not_redriven() {
    let server = Running::start().await;
    let mut client = server.client().await;
    server.fill("t", 1).await;
    kill(&server, 1).await;
    client.post("/publish/dlq.t", r#"{"foreign":1}"#).await.ok();
    let page = client.get("/dlq?topic=t").await.ok();
    assert_eq!(page["count"], 2);
    assert_eq!(page["events"][1]["payload"], json!({"foreign": 1}));
    let all = redrive(&mut client, json!({"topic": "t", "all": true})).await;
    assert_eq!(
        (&all["redriven"], &all["failed"][0]["code"]),
        (&json!(1), &json!("bad_json"))
    );
}

#[tokio::test]
async fn each_letter_says_whether_it_was_redriven_and_goes_when_it_is_removed() {
    let server = Running::start().await;
    let mut client = server.client().await;
    server.fill("t", 4).await;
    kill(&server, 4).await;
    let ids = ids(&mut client).await;
    let sent = redrive(&mut client, json!({"topic": "t", "ids": [ids[1], ids[3]]})).await;
    assert_eq!(sent["redriven"], 2);
    let listed = async |client: &mut crate::client::Client| -> Vec<(Value, bool)> {
        let page = client.get("/dlq?topic=t").await.ok();
        let events = page["events"].as_array().expect("events").clone();
        let marked = |event: &Value| event["redriven"].as_bool().expect("a mark");
        events
            .iter()
            .map(|event| (event["id"].clone(), marked(event)))
            .collect()
    };
    let marks: Vec<bool> = listed(&mut client)
        .await
        .iter()
        .map(|(_, mark)| *mark)
        .collect();
    assert_eq!(marks, [false, true, false, true]);

    client
        .request("DELETE", "/dlq?topic=t", &[], b"")
        .await
        .is_error(400, "bad_frame");
    let removed = client
        .request("DELETE", "/dlq?topic=t&redriven=1", &[], b"")
        .await
        .ok();
    assert_eq!(removed, json!({"topic": "t", "removed": 2, "unknown": []}));
    let left = listed(&mut client).await;
    assert_eq!(left, [(ids[0].clone(), false), (ids[2].clone(), false)]);
    // What was removed is not sent again, and is not there to be removed.
    let gone = ids[1].as_str().expect("an id");
    let refused = redrive(
        &mut client,
        json!({"topic": "t", "ids": [gone], "force": true}),
    )
    .await;
    assert_eq!(refused["failed"][0]["code"], "unknown_id");
    let target = format!(
        "/dlq?topic=t&ids={gone},{}",
        ids[0].as_str().expect("an id")
    );
    let removed = client.request("DELETE", &target, &[], b"").await.ok();
    assert_eq!(
        removed,
        json!({"topic": "t", "removed": 1, "unknown": [gone]})
    );
    // The removed front is freed for good.
    assert_eq!(server.bus().topic("dlq.t").expect("a topic").first_seq, 3);
    let removed = client
        .request("DELETE", "/dlq?topic=t&all=1", &[], b"")
        .await
        .ok();
    assert_eq!(removed["removed"], 1);
    assert_eq!(listed(&mut client).await, []);
    assert_eq!(server.bus().topic("dlq.t").expect("a topic").events, 0);
}

#[tokio::test]
async fn only_the_group_it_died_in_gets_it_again() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let options = || SubscribeOptions {
        from: StartAt::Earliest,
        ..SubscribeOptions::default()
    };
    let subscribed = server.bus().subscribe("t", "succeeds", options()).await;
    let succeeds = subscribed.expect("subscribed");
    server.fill("t", 1).await;
    let delivery = succeeds.next().await.expect("a delivery");
    delivery.ack_confirmed().await.expect("acknowledged");
    kill(&server, 1).await;
    let id = ids(&mut client).await[0].clone();
    let sent = redrive(&mut client, json!({"topic": "t", "ids": [id]})).await;
    assert_eq!(sent["redriven"], 1);
    let subscribed = server.bus().subscribe("t", "g", options()).await;
    let failed = subscribed.expect("subscribed");
    let delivery = failed.next().await.expect("a delivery");
    assert_eq!(delivery.event.seq(), 2);
    delivery.ack_confirmed().await.expect("acknowledged");
    let to_all = json!({"topic": "t", "ids": [id], "force": true, "to": "all"});
    assert_eq!(redrive(&mut client, to_all).await["redriven"], 1);
    for subscription in [&succeeds, &failed] {
        let delivery = subscription.next().await.expect("a delivery");
        assert_eq!(
            delivery.event.seq(),
            3,
            "the one before was not for everybody"
        );
        delivery.ack_confirmed().await.expect("acknowledged");
    }
    let lag = server
        .bus()
        .group("t", "succeeds")
        .await
        .expect("a group")
        .lag;
    assert_eq!(lag, 0);
    client
        .post("/dlq/redrive", r#"{"topic":"t","to":"some"}"#)
        .await
        .is_error(400, "bad_frame");
}

#[tokio::test]
async fn exported_letters_at_the_limits_can_be_imported() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let payload = format!("\"{}\"", "x".repeat((1 << 20) - 2));
    client.post("/publish/t", &payload).await.ok();
    kill(&server, 1).await;
    let exported = client.get("/export?topic=dlq.t&ndjson=1").await;
    let lines = String::from_utf8(exported.body).expect("text");
    let other = Running::start().await;
    let mut client = other.client().await;
    let imported = client
        .request(
            "POST",
            "/import?topic=dlq.t",
            &[("content-type", "application/x-ndjson")],
            lines.as_bytes(),
        )
        .await
        .ok();
    assert_eq!(imported["published"], 1, "{imported}");
}
