//! `/export`: exactly what the store holds, in the order of time, however it is asked for.

use super::client::{Client, Reply};
use super::server::Running;
use flate2::read::GzDecoder;
use prombus::{BusOptions, PublishOptions};
use prombus_gateway::GatewayOptions;
use prombus_gateway::auth::Authenticator;
use prombus_log::FileStore;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An event as a test knows it: ts, seq, key.
type Known = (u64, u64, Option<String>);

async fn publish_all(server: &Running, topic: &str, events: &[(u64, Option<u8>)]) -> Vec<Known> {
    let mut known = Vec::new();
    for some in events.chunks(5_000) {
        let mut batch = server.bus().batch();
        for (ts, key) in some {
            let key = key.map(|key| format!("k{key}"));
            let options = PublishOptions {
                ts: Some(*ts),
                key: key.as_deref(),
                ..PublishOptions::default()
            };
            batch.add(topic, &format!("\"{ts}\""), &options);
        }
        let results = server.bus().publish_batch(batch).await;
        for ((ts, key), result) in some.iter().zip(results) {
            let seq = result.expect("published").seq;
            known.push((*ts, seq, key.map(|key| format!("k{key}"))));
        }
    }
    known.sort();
    known
}

fn found(reply: &Reply) -> Vec<Known> {
    assert_eq!(reply.head.status, 200, "{}", reply.text());
    reply.lines().iter().map(known).collect()
}

fn known(event: &Value) -> Known {
    let number = |name: &str| event[name].as_u64().expect("a number");
    (
        number("ts"),
        number("seq"),
        event["key"].as_str().map(str::to_owned),
    )
}

/// Times that crowd: most events share a few milliseconds.
fn events() -> impl Strategy<Value = Vec<(u64, Option<u8>)>> {
    let ts = prop_oneof![3 => Just(500_u64), 2 => 400_u64..410, 1 => 0_u64..1_000];
    prop::collection::vec((ts, prop::option::of(0_u8..3)), 1..400)
}

#[test]
fn an_export_is_what_the_store_holds() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let folder = tempfile::tempdir().expect("a folder");
    let server = runtime.block_on(async {
        let (store, _) = FileStore::open(folder.path()).expect("a store");
        let options = GatewayOptions::default();
        Running::on(
            Arc::new(store),
            BusOptions::default(),
            Authenticator::off(),
            options,
        )
        .await
    });
    let number = AtomicU64::new(0);
    let mut runner = TestRunner::new(Config::with_cases(24));
    let strategy = (events(), 0_u64..1_000, 0_u64..1_000, 0_usize..400);
    let checked = runner.run(&strategy, |(events, one, other, after)| {
        let topic = format!("t{}", number.fetch_add(1, Ordering::Relaxed));
        runtime.block_on(async {
            let all = publish_all(&server, &topic, &events).await;
            let mut client = server.client().await;
            check(
                &mut client,
                &topic,
                &all,
                one.min(other),
                one.max(other),
                after,
            )
            .await;
        });
        Ok(())
    });
    checked.expect("exports are exact");
    runtime.shutdown_background();
}

async fn check(client: &mut Client, topic: &str, all: &[Known], from: u64, to: u64, after: usize) {
    let whole = client.get(&format!("/export?topic={topic}")).await;
    assert_eq!(found(&whole), all);
    let part = client
        .get(&format!("/export?topic={topic}&fromTs={from}&toTs={to}"))
        .await;
    let inside = |event: &&Known| (from..=to).contains(&event.0);
    let expected: Vec<Known> = all.iter().filter(inside).cloned().collect();
    assert_eq!(found(&part), expected);
    let keyed = client.get(&format!("/export?topic={topic}&key=k1")).await;
    let has_key = |event: &&Known| event.2.as_deref() == Some("k1");
    let expected: Vec<Known> = all.iter().filter(has_key).cloned().collect();
    assert_eq!(found(&keyed), expected);
    let after = after % all.len();
    let id = whole.lines()[after]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let rest = client
        .get(&format!("/export?topic={topic}&afterId={id}"))
        .await;
    assert_eq!(found(&rest), all[after + 1..]);
    let array = client.get(&format!("/export?topic={topic}&ndjson=0")).await;
    assert_eq!(array.head.header("content-type"), Some("application/json"));
    let array = array.ok();
    let array: Vec<Known> = array
        .as_array()
        .expect("an array")
        .iter()
        .map(known)
        .collect();
    assert_eq!(array, all);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_in_one_millisecond_come_once_each() {
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
    let events: Vec<(u64, Option<u8>)> = (0..60_000_u64)
        .map(|number| (if number % 3 == 0 { number } else { 7_777 }, None))
        .collect();
    let all = publish_all(&server, "t", &events).await;
    let mut client = server.client().await;
    let reply = client.get("/export?topic=t").await;
    assert!(found(&reply) == all, "every event once, by ts and then seq");
    let gzip = client
        .request(
            "GET",
            "/export?topic=t",
            &[("accept-encoding", "gzip, br")],
            b"",
        )
        .await;
    assert_eq!(gzip.head.header("content-encoding"), Some("gzip"));
    assert!(gzip.body.len() < reply.body.len() / 3);
    let mut plain = Vec::new();
    GzDecoder::new(&gzip.body[..])
        .read_to_end(&mut plain)
        .expect("gzip");
    assert!(plain == reply.body, "the same events");
    let asked = client.get("/export?topic=t&gzip=1&toTs=10").await;
    assert_eq!(asked.head.header("content-encoding"), Some("gzip"));
}

#[tokio::test]
async fn nothing_is_an_export_too() {
    let server = Running::start().await;
    let mut client = server.client().await;
    client.request("PUT", "/topics/t", &[], b"{}").await.ok();
    assert_eq!(client.get("/export?topic=t").await.text(), "");
    assert_eq!(client.get("/export?topic=t&ndjson=0").await.text(), "[]");
    let gzip = client.get("/export?topic=t&gzip=1&ndjson=0").await;
    let mut plain = String::new();
    GzDecoder::new(&gzip.body[..])
        .read_to_string(&mut plain)
        .expect("gzip");
    assert_eq!(plain, "[]");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_holds_nobody_up() {
    let server = Running::start().await;
    let large = format!("\"{}\"", "x".repeat(10_000));
    let mut batch = server.bus().batch();
    for _ in 0..5_000 {
        batch.add("t", &large, &PublishOptions::default());
    }
    assert!(
        server
            .bus()
            .publish_batch(batch)
            .await
            .iter()
            .all(Result::is_ok)
    );
    let mut stuck = Vec::new();
    for _ in 0..4 {
        let mut client = server.client().await;
        client
            .send(super::client::head("GET", "/export?topic=t", &[]).as_bytes())
            .await;
        assert_eq!(client.head().await.status, 200);
        stuck.push(client);
    }
    let mut client = server.client().await;
    client.post("/publish/t", "1").await.ok();
    assert_eq!(client.get("/export?topic=t").await.lines().len(), 5_001);
    for mut client in stuck {
        let body = client.chunks().await.expect("whole");
        let lines = body.iter().filter(|byte| **byte == b'\n').count();
        assert!((5_000..=5_001).contains(&lines));
    }
}
