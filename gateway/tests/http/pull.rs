//! Consuming without a socket: `/pull`, `/ack`, `/nack` and `/modack`.

use super::client::Client;
use super::server::Running;
use prombus::{StartAt, SubscribeOptions};
use prombus_gateway::GatewayOptions;
use prombus_gateway::limits::{LimitsConfig, Rate};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

async fn pull(client: &mut Client, more: Value) -> Value {
    let mut body = json!({"topic": "t", "group": "g", "from": "earliest", "wait_ms": 10_000});
    let fields = body.as_object_mut().expect("an object");
    fields.extend(more.as_object().expect("an object").clone());
    client.post("/pull", &body.to_string()).await.ok()
}

fn ids(pulled: &Value) -> Vec<String> {
    let events = pulled["events"].as_array().expect("events").iter();
    events
        .map(|event| event["event"]["id"].as_str().expect("an id").to_owned())
        .collect()
}

fn payloads(pulled: &Value) -> Vec<u64> {
    let events = pulled["events"].as_array().expect("events").iter();
    events
        .map(|event| event["event"]["payload"].as_u64().expect("a number"))
        .collect()
}

async fn settle(client: &mut Client, how: &str, ids: &[String], more: Value) -> Value {
    let mut body = json!({"topic": "t", "group": "g", "ids": ids});
    let fields = body.as_object_mut().expect("an object");
    fields.extend(more.as_object().expect("an object").clone());
    client.post(how, &body.to_string()).await.ok()
}

#[tokio::test]
async fn leases_outlive_the_request_and_the_connection() {
    let server = Running::start().await;
    server.fill("t", 10).await;
    let first = pull(
        &mut server.client().await,
        json!({"max": 4, "ackTimeoutMs": 60_000}),
    )
    .await;
    assert_eq!(
        (&first["count"], payloads(&first)),
        (&json!(4), vec![1, 2, 3, 4])
    );
    assert_eq!(
        first["events"][0]["ctx"],
        json!({"attempt": 1, "maxAttempts": 5, "ack_deadline_ms": 60_000})
    );
    let second = pull(&mut server.client().await, json!({"max": 100})).await;
    assert_eq!(
        payloads(&second),
        [5, 6, 7, 8, 9, 10],
        "what is leased does not come again"
    );
    let mut client = server.client().await;
    let all: Vec<String> = ids(&first).into_iter().chain(ids(&second)).collect();
    assert_eq!(
        settle(&mut client, "/ack", &all, json!({})).await,
        json!({"settled": 10})
    );
    let again = settle(&mut client, "/ack", &all, json!({})).await;
    assert_eq!(again["settled"], 10, "what is settled already is fine");
    assert_eq!(client.get("/lag?topic=t&group=g").await.ok()["lag"], 0);
    let nothing = pull(&mut client, json!({"wait_ms": 0})).await;
    assert_eq!(nothing["count"], 0);
}

#[tokio::test]
async fn a_pull_waits_for_what_is_published() {
    let server = Running::start().await;
    server.fill("t", 1).await;
    let mut client = server.client().await;
    pull(&mut client, json!({})).await;
    let (pulled, ()) = tokio::join!(pull(&mut client, json!({"max": 5})), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        server.fill("t", 1).await;
    });
    assert_eq!(pulled["count"], 1);
}

#[tokio::test]
async fn a_lease_that_runs_out_brings_the_event_back() {
    let server = Running::start().await;
    server.fill("t", 2).await;
    let mut client = server.client().await;
    let first = pull(&mut client, json!({"max": 2, "ackTimeoutMs": 100})).await;
    settle(&mut client, "/ack", &ids(&first)[..1], json!({})).await;
    let again = pull(&mut client, json!({"max": 2})).await;
    assert_eq!(ids(&again), ids(&first)[1..]);
    assert_eq!(again["events"][0]["ctx"]["attempt"], 2);
    // A pull may say anew how long leases are.
    settle(&mut client, "/nack", &ids(&again), json!({"delay_ms": 0})).await;
    let third = pull(&mut client, json!({"ackTimeoutMs": 45_000})).await;
    assert_eq!(
        third["events"][0]["ctx"],
        json!({"attempt": 3, "maxAttempts": 5, "ack_deadline_ms": 45_000})
    );
}

#[tokio::test]
async fn a_nack_brings_it_back_and_a_modack_keeps_it() {
    let server = Running::start().await;
    server.fill("t", 2).await;
    let mut client = server.client().await;
    let first = pull(&mut client, json!({"max": 2, "ackTimeoutMs": 300})).await;
    let [kept, failed] = <[String; 2]>::try_from(ids(&first)).expect("two");
    let extended = settle(
        &mut client,
        "/modack",
        std::slice::from_ref(&kept),
        json!({"extend_ms": 60_000}),
    )
    .await;
    assert_eq!(extended["settled"], 1);
    let reply = settle(
        &mut client,
        "/nack",
        std::slice::from_ref(&failed),
        json!({"reason": "no", "delay_ms": 1}),
    )
    .await;
    assert_eq!(reply["settled"], 1);
    let again = pull(&mut client, json!({"max": 2})).await;
    assert_eq!(ids(&again), [failed], "the other one is still held");
    tokio::time::sleep(Duration::from_millis(400)).await;
    let mut one = json!({"topic": "t", "group": "g", "id": kept});
    client.post("/ack", &one.to_string()).await.ok();
    one["extend_ms"] = json!(5_000);
    client
        .post("/modack", &one.to_string())
        .await
        .is_error(404, "unknown_id");
}

#[tokio::test]
async fn what_another_member_holds_is_not_settled() {
    let server = Running::start().await;
    server.fill("t", 1).await;
    let mut client = server.client().await;
    let pulled = pull(&mut client, json!({"ackTimeoutMs": 100})).await;
    let member = server
        .bus()
        .subscribe("t", "g", SubscribeOptions::default())
        .await
        .expect("subscribed");
    let held = member.next().await.expect("the event comes to the other");
    let one = json!({"topic": "t", "group": "g", "id": ids(&pulled)[0]}).to_string();
    client.post("/ack", &one).await.is_error(409, "lease_lost");
    let many = settle(&mut client, "/ack", &ids(&pulled), json!({})).await;
    assert_eq!(
        (&many["settled"], &many["failed"][0]["code"]),
        (&json!(0), &json!("lease_lost"))
    );
    held.ack_confirmed().await.expect("it is the other's");
}

#[tokio::test]
async fn a_group_that_is_pulled_does_not_starve_its_other_members() {
    let server = Running::start().await;
    server.fill("t", 200).await;
    let mut client = server.client().await;
    let mine = pull(&mut client, json!({"max": 5, "ackTimeoutMs": 60_000})).await;
    assert_eq!(mine["count"], 5);
    let options = SubscribeOptions {
        from: StartAt::Earliest,
        ..SubscribeOptions::default()
    };
    let member = server
        .bus()
        .subscribe("t", "g", options)
        .await
        .expect("subscribed");
    let mut seen: BTreeSet<u64> = payloads(&mine).into_iter().collect();
    for _ in 0..195 {
        let next = tokio::time::timeout(super::client::PATIENCE, member.next()).await;
        let delivery = next.expect("in time").expect("a delivery");
        assert_eq!(
            delivery.context.attempt, 1,
            "nothing was taken that was not asked for"
        );
        let payload = delivery.event.payload().parse().expect("a number");
        assert!(seen.insert(payload), "{payload} came twice");
        delivery.ack();
    }
    assert_eq!(seen.len(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_pull_at_once_and_each_event_comes_to_one() {
    const EVENTS: usize = 2_000;
    let server = Running::start().await;
    server.fill("t", EVENTS).await;
    let mut pulling = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let mut client = server.client().await;
        pulling.spawn(async move {
            let mut mine = Vec::new();
            for _ in 0..1_000 {
                let pulled = pull(
                    &mut client,
                    json!({"max": 37, "wait_ms": 500, "ackTimeoutMs": 60_000}),
                )
                .await;
                if pulled["count"] == 0 {
                    return mine;
                }
                mine.extend(payloads(&pulled));
                settle(&mut client, "/ack", &ids(&pulled), json!({})).await;
            }
            mine
        });
    }
    let mut all = Vec::new();
    while let Some(mine) = pulling.join_next().await {
        all.extend(mine.expect("no panic"));
    }
    all.sort_unstable();
    let expected: Vec<u64> = (1..=EVENTS as u64).collect();
    assert!(all == expected, "{} of {EVENTS}", all.len());
}

#[tokio::test]
async fn a_client_that_hangs_up_while_it_waits_leaves_nothing_behind() {
    let server = Running::start().await;
    server.fill("t", 1).await;
    let mut client = server.client().await;
    let pulled = pull(&mut client, json!({})).await;
    settle(&mut client, "/ack", &ids(&pulled), json!({})).await;
    let body = r#"{"topic":"t","group":"g","wait_ms":60000}"#;
    let mut gone = server.client().await;
    let length = body.len().to_string();
    gone.send(super::client::head("POST", "/pull", &[("content-length", &length)]).as_bytes())
        .await;
    gone.send(body.as_bytes()).await;
    let paused = |info: prombus::GroupInfo| info.members.iter().all(|member| member.paused);
    wait_for(&server, |info| !paused(info)).await;
    drop(gone);
    wait_for(&server, paused).await;
    server.fill("t", 1).await;
    assert_eq!(pull(&mut client, json!({})).await["count"], 1);
}

async fn wait_for(server: &Running, is_so: impl Fn(prombus::GroupInfo) -> bool) {
    for _ in 0..1_000 {
        if is_so(server.bus().group("t", "g").await.expect("a group")) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came about");
}

#[tokio::test]
async fn whoever_is_done_is_let_go() {
    let server = Running::start().await;
    server.fill("t", 1).await;
    let mut client = server.client().await;
    let pulled = pull(&mut client, json!({"ackTimeoutMs": 50})).await;
    settle(&mut client, "/ack", &ids(&pulled), json!({})).await;
    wait_for(&server, |info| info.members.is_empty()).await;
    let late = settle(&mut client, "/ack", &ids(&pulled), json!({})).await;
    assert_eq!(late["settled"], 1);
}

#[tokio::test]
async fn a_group_that_was_removed_can_be_pulled_anew() {
    let server = Running::start().await;
    server.fill("t", 3).await;
    let mut client = server.client().await;
    assert_eq!(pull(&mut client, json!({})).await["count"], 3);
    client
        .request("DELETE", "/groups?topic=t&group=g", &[], b"")
        .await;
    assert_eq!(pull(&mut client, json!({})).await["count"], 3);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let server = Running::start().await;
    server.fill("t", 1).await;
    let mut client = server.client().await;
    for (target, body, status, code) in [
        ("/pull", r#"{"topic":"t"}"#, 400, "bad_frame"),
        (
            "/pull",
            r#"{"topic":"t","group":"g","max":0}"#,
            400,
            "bad_frame",
        ),
        (
            "/pull",
            r#"{"topic":"t","group":"g","ackTimeoutMs":0}"#,
            400,
            "bad_frame",
        ),
        ("/pull", r#"{"topic":"t.*","group":"g"}"#, 400, "bad_topic"),
        ("/pull", r#"{"topic":"t","group":"a b"}"#, 400, "bad_group"),
        (
            "/pull",
            r#"{"topic":"t","group":"g","from":"afterId","afterId":"x"}"#,
            404,
            "unknown_id",
        ),
        ("/pull", "[]", 400, "bad_frame"),
        ("/pull", "", 400, "bad_json"),
        (
            "/ack",
            r#"{"topic":"t","group":"none","id":"x"}"#,
            404,
            "unknown_group",
        ),
        (
            "/ack",
            r#"{"topic":"none","group":"g","id":"x"}"#,
            404,
            "unknown_topic",
        ),
        ("/ack", r#"{"topic":"t","group":"g"}"#, 400, "bad_frame"),
        (
            "/modack",
            r#"{"topic":"t","group":"g","extend_ms":1}"#,
            400,
            "bad_frame",
        ),
    ] {
        client.post(target, body).await.is_error(status, code);
    }
    pull(&mut client, json!({})).await;
    let unknown = r#"{"topic":"t","group":"g","id":"nobody"}"#;
    client
        .post("/ack", unknown)
        .await
        .is_error(404, "unknown_id");
    client
        .post("/nack", unknown)
        .await
        .is_error(404, "unknown_id");
}

#[tokio::test]
async fn an_acknowledgement_publishes_in_the_same_step() {
    let server = Running::with_scopes(GatewayOptions::default()).await;
    server.fill("t", 3).await;
    let mut client = server.client().await;
    let token = "Bearer publish:out subscribe:t";
    let mut ask = async |target: &str, body: Value| {
        let headers = [("authorization", token)];
        client
            .request("POST", target, &headers, body.to_string().as_bytes())
            .await
    };
    let wanted = json!({"topic": "t", "group": "g", "from": "earliest", "wait_ms": 10_000});
    let ids = ids(&ask("/pull", wanted).await.ok());
    let ack = |ids: &[String], publish: Value| json!({"topic": "t", "group": "g", "ids": ids, "publish": publish});

    let forbidden = json!([{"topic": "out", "payload": 1}, {"topic": "other", "payload": 2}]);
    ask("/ack", ack(&ids[..1], forbidden))
        .await
        .is_error(403, "forbidden");
    let large =
        json!([{"topic": "out", "payload": 1}, {"topic": "out", "payload": "x".repeat(1 << 20)}]);
    ask("/ack", ack(&ids[..1], large))
        .await
        .is_error(413, "too_large");
    assert!(server.bus().topic("out").is_err(), "nothing was published");

    let publish = json!([{"topic": "out", "payload": {"sum": 3}, "opts": {"id": "mine"}}]);
    let reply = ask("/ack", ack(&ids[..2], publish.clone())).await.ok();
    assert_eq!(reply["settled"], 2);
    assert_eq!(
        reply["published"],
        json!([{"topic": "out", "id": "mine", "seq": 1}])
    );
    ask("/ack", ack(&ids[1..], publish.clone()))
        .await
        .is_error(409, "lease_lost");
    let info = server.bus().group("t", "g").await.expect("it exists");
    assert_eq!((info.cursor, info.in_flight), (2, 1));
    let reply = ask("/ack", ack(&ids[2..], publish)).await.ok();
    assert_eq!(
        reply["published"],
        json!([{"topic": "out", "id": "mine", "seq": 1, "duplicate": true}])
    );
    assert_eq!(server.bus().topic("out").expect("it exists").tail_seq, 1);
}

/// A pull that waits for its delivery limit has joined already; the leases that it gets must not end with it.
#[tokio::test]
async fn a_pull_that_had_to_wait_keeps_its_leases() {
    let once_a_second = Rate {
        capacity: 1,
        refill_per_sec: 1,
    };
    let server = Running::with(GatewayOptions {
        limits: LimitsConfig {
            conn_delivery: Some(once_a_second),
            ..LimitsConfig::default()
        },
        ..GatewayOptions::default()
    })
    .await;
    server.fill("t", 3).await;
    let short = || json!({"max": 1, "ackTimeoutMs": 100});
    let mut first = server.client().await;
    let pulled = pull(&mut first, short()).await;
    settle(&mut first, "/ack", &ids(&pulled), json!({})).await;
    // Half a period of the sweep, so that one comes while the next pull waits.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let mut second = server.client().await;
    let pulled = pull(&mut second, short()).await;
    settle(&mut second, "/ack", &ids(&pulled), json!({})).await;
    let pulled = pull(&mut second, json!({"max": 1, "ackTimeoutMs": 60_000})).await;
    assert_eq!(payloads(&pulled), [3]);
    let mut third = server.client().await;
    let again = pull(&mut third, json!({"max": 1, "wait_ms": 500})).await;
    assert_eq!(payloads(&again), [0; 0], "its lease is live");
    settle(&mut second, "/ack", &ids(&pulled), json!({})).await;
}
