//! `/list`, and `/latest-by-key` as far as it is about states: which keys fit, in pages, with how many in all.

use super::client::Client;
use super::server::Running;
use serde_json::{Value, json};

#[tokio::test]
async fn states_that_fit_in_pages_with_their_total() {
    let server = Running::start().await;
    let mut client = server.client().await;
    fill(&mut client).await;
    let all = client.get("/list/t").await.ok();
    assert_eq!(
        (&all["total"], &all["count"], &all["next"]),
        (&json!(25), &json!(25), &Value::Null)
    );
    let first = &all["items"][0];
    assert_eq!(
        (&first["key"], &first["payload"]["n"]),
        (&json!("k00"), &json!(100))
    );
    assert!(first["id"].is_string() && first["ts"].is_u64() && first["seq"].is_u64());
    for (query, total, keys) in [
        ("?limit=2", 25, &["k00", "k01"][..]),
        ("?limit=2&offset=23", 25, &["k28", "k29"]),
        ("?offset=25", 25, &[]),
        ("?offset=1000", 25, &[]),
        ("?status=odd&limit=2", 15, &["k01", "k03"]),
        ("?status=odd&limit=2&offset=2", 15, &["k05", "k07"]),
        (
            "?owner.name=ann&status=even",
            4,
            &["k04", "k10", "k22", "k28"],
        ),
        ("?n=104", 1, &["k04"]),
        ("?payload.limit=7", 1, &["k07"]),
        ("?status=none", 0, &[]),
        ("?prefix=k2&limit=3", 8, &["k20", "k21", "k22"]),
        (
            "?prefix=k2&status=odd&limit=9",
            5,
            &["k21", "k23", "k25", "k27", "k29"],
        ),
    ] {
        let page = client.get(&format!("/list/t{query}")).await.ok();
        assert_eq!(page["total"], total, "{query}");
        assert_eq!(page["count"], keys.len(), "{query}");
        assert_eq!(keys_of(&page, "items"), keys, "{query}");
    }
    let (mut offset, mut keys) = (json!(0), Vec::new());
    while !offset.is_null() {
        let page = client
            .get(&format!("/list/t?limit=4&status=odd&offset={offset}"))
            .await
            .ok();
        keys.extend(keys_of(&page, "items"));
        offset = page["next"].clone();
        assert!(keys.len() <= 15);
    }
    assert_eq!(keys.len(), 15, "following `next` gives all of them");
}

#[tokio::test]
async fn the_table_as_it_was() {
    let server = Running::start().await;
    let mut client = server.client().await;
    for (key, ts, payload) in [
        ("a", 1_000, "{\"v\":1}"),
        ("b", 2_000, "{\"v\":2}"),
        ("a", 3_000, "{\"v\":3}"),
        ("b", 4_000, "null"),
    ] {
        client
            .post(&format!("/publish/t?key={key}&ts={ts}"), payload)
            .await
            .ok();
    }
    for (query, expected) in [
        ("?at=500", json!([])),
        ("?at=1000", json!([["a", 1]])),
        ("?at=2500", json!([["a", 1], ["b", 2]])),
        ("?at=3500", json!([["a", 3], ["b", 2]])),
        ("?at=3500&v=2", json!([["b", 2]])),
        ("?at=4000", json!([["a", 3]])),
        ("", json!([["a", 3]])),
    ] {
        let page = client.get(&format!("/list/t{query}")).await.ok();
        let items = page["items"].as_array().expect("items").iter();
        let found: Vec<Value> = items
            .map(|item| json!([item["key"], item["payload"]["v"]]))
            .collect();
        assert_eq!(json!(found), expected, "{query}");
        assert_eq!(page["total"], found.len(), "{query}");
    }
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let server = Running::start().await;
    server.fill("t", 1).await;
    let mut client = server.client().await;
    for (target, status, code) in [
        ("/list/none", 404, "unknown_topic"),
        ("/list/t?limit=0", 400, "bad_frame"),
        ("/list/t?limit=x", 400, "bad_frame"),
        ("/list/t?offset=-1", 400, "bad_frame"),
        ("/list/t?at=x", 400, "bad_frame"),
        ("/list/a%20b", 400, "bad_topic"),
    ] {
        client.get(target).await.is_error(status, code);
    }
    assert_eq!(
        client.get("/list/t").await.ok()["total"],
        0,
        "events without a key are no state"
    );
}

#[tokio::test]
async fn large_payloads_make_short_pages() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let large = format!("\"{}\"", "x".repeat(900_000));
    for number in 10..30 {
        client
            .post(&format!("/publish/t?key={number}"), &large)
            .await
            .ok();
    }
    let (mut offset, mut keys, mut pages) = (json!(0), Vec::new(), 0);
    while !offset.is_null() {
        let reply = client.get(&format!("/list/t?offset={offset}")).await;
        assert!(reply.body.len() < 12 << 20);
        let page = reply.ok();
        assert_eq!(page["total"], 20);
        keys.extend(keys_of(&page, "items"));
        offset = page["next"].clone();
        pages += 1;
        assert!(pages <= 20);
    }
    assert!(pages > 1);
    let expected: Vec<String> = (10..30).map(|number| number.to_string()).collect();
    assert_eq!(keys, expected);
}

#[tokio::test]
async fn the_latest_by_key_knows_prefixes_and_no_deleted_keys() {
    let server = Running::start().await;
    let mut client = server.client().await;
    fill(&mut client).await;
    let page = client
        .get("/latest-by-key?topic=t&prefix=k2&limit=3")
        .await
        .ok();
    assert_eq!(keys_of(&page, "events"), ["k20", "k21", "k22"]);
    assert_eq!(page["next"], "k22");
    let page = client
        .get("/latest-by-key?topic=t&prefix=k2&after=k22")
        .await
        .ok();
    assert_eq!(
        keys_of(&page, "events"),
        ["k23", "k25", "k27", "k28", "k29"]
    );
    assert_eq!(page["next"], Value::Null);
    let named = client
        .get("/latest-by-key?topic=t&key=k24&key=k25")
        .await
        .ok();
    assert_eq!(keys_of(&named, "events"), ["k25"]);
}

/// Thirty keys, of which five are deleted again.
async fn fill(client: &mut Client) {
    for number in 0..30 {
        let status = if number % 2 == 0 { "even" } else { "odd" };
        let owner = if number % 6 == 4 { "ann" } else { "bob" };
        let payload =
            json!({"n": number + 100, "status": status, "owner": {"name": owner}, "limit": number});
        let target = format!("/publish/t?key=k{number:02}");
        client.post(&target, &payload.to_string()).await.ok();
    }
    for number in [12, 14, 16, 24, 26] {
        let target = format!("/publish/t?key=k{number:02}");
        client.post(&target, "null").await.ok();
    }
}

fn keys_of(page: &Value, name: &str) -> Vec<String> {
    let items = page[name].as_array().expect("a list").iter();
    items
        .map(|item| item["key"].as_str().expect("a key").to_owned())
        .collect()
}
