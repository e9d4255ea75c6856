//! `/replay` and `/latest-by-key`.

use super::server::Running;
use serde_json::{Value, json};

#[tokio::test]
async fn replay_begins_where_it_is_told_and_goes_on() {
    let server = Running::start().await;
    let mut client = server.client().await;
    for number in 1..=25_u64 {
        client
            .post(
                &format!("/publish/t?ts={}&id=e{number}", number * 10),
                &number.to_string(),
            )
            .await
            .ok();
    }
    for (query, first, count, next) in [
        ("", 1, 25, Value::Null),
        ("&from=earliest&limit=10", 1, 10, json!(11)),
        ("&from=seq&seq=11&limit=10", 11, 10, json!(21)),
        ("&seq=21&limit=10", 21, 5, Value::Null),
        ("&from=ts&ts=95", 10, 16, Value::Null),
        ("&from=afterId&afterId=e20", 21, 5, Value::Null),
        ("&limit=25", 1, 25, Value::Null),
        ("&limit=99999", 1, 25, Value::Null),
    ] {
        let page = client.get(&format!("/replay?topic=t{query}")).await.ok();
        assert_eq!(page["count"], count, "{query}");
        assert_eq!(page["events"][0]["payload"], first, "{query}");
        assert_eq!(page["next"], next, "{query}");
        assert_eq!(
            page["events"].as_array().map(Vec::len),
            Some(count as usize)
        );
    }
    for query in [
        "&from=ts&ts=9999",
        "&from=seq&seq=26",
        "&from=afterId&afterId=e25",
    ] {
        let page = client.get(&format!("/replay?topic=t{query}")).await.ok();
        assert_eq!(
            (&page["count"], &page["next"]),
            (&json!(0), &Value::Null),
            "{query}"
        );
    }
}

#[tokio::test]
async fn a_replay_that_makes_no_sense_is_refused() {
    let server = Running::start().await;
    server.fill("t", 1).await;
    let mut client = server.client().await;
    for (target, status, code) in [
        ("/replay", 400, "bad_frame"),
        ("/replay?topic=none", 404, "unknown_topic"),
        ("/replay?topic=a%20b", 400, "bad_topic"),
        (
            "/replay?topic=t&from=afterId&afterId=nobody",
            404,
            "unknown_id",
        ),
        ("/replay?topic=t&from=afterId", 400, "bad_frame"),
        ("/replay?topic=t&from=latest", 400, "bad_frame"),
        ("/replay?topic=t&from=tomorrow", 400, "bad_frame"),
        ("/replay?topic=t&limit=0", 400, "bad_frame"),
        ("/replay?topic=t&limit=-1", 400, "bad_frame"),
        ("/replay?topic=t&from=seq&seq=0", 400, "bad_frame"),
        ("/replay?topic=t&form=earliest", 400, "bad_frame"),
        ("/replay?topic=t&tokens=x", 400, "bad_frame"),
        ("/sse?topic=t&limit=5", 400, "bad_frame"),
        ("/latest-by-key?topic=none", 404, "unknown_topic"),
        ("/export?topic=none", 404, "unknown_topic"),
        ("/export?topic=t&afterId=nobody", 404, "unknown_id"),
        ("/export?topic=t&fromTs=x", 400, "bad_frame"),
        ("/export?topic=t&ndjson=maybe", 400, "bad_frame"),
        (
            "/sse?topic=t&from=afterId&afterId=nobody",
            404,
            "unknown_id",
        ),
        ("/sse?topic=a.*", 400, "bad_topic"),
    ] {
        client.get(target).await.is_error(status, code);
    }
    assert!(
        server.bus().topic("none").is_err(),
        "looking does not make a topic"
    );
}

#[tokio::test]
async fn large_events_make_short_pages() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let large = format!("\"{}\"", "x".repeat(900_000));
    for _ in 0..20 {
        client.post("/publish/t", &large).await.ok();
    }
    let (mut next, mut seen, mut pages) = (json!(1), 0, 0);
    while !next.is_null() {
        pages += 1;
        assert!(pages <= 20);
        let reply = client
            .get(&format!("/replay?topic=t&from=seq&seq={next}"))
            .await;
        assert!(reply.body.len() < 12 << 20);
        let page = reply.ok();
        seen += page["count"].as_u64().expect("a count");
        next = page["next"].clone();
    }
    assert!(pages > 1);
    assert_eq!(seen, 20);
}

#[tokio::test]
async fn the_latest_of_each_key() {
    let server = Running::start().await;
    let mut client = server.client().await;
    for round in 0..3 {
        for key in 0..30 {
            client
                .post(
                    &format!("/publish/t?key=k%2F{key:02}"),
                    &format!("{}", round * 100 + key),
                )
                .await
                .ok();
        }
    }
    client.post("/publish/t", "\"without a key\"").await.ok();
    let page = client
        .get("/latest-by-key?topic=t&key=k%2F07&key=none&key=k%2F03")
        .await
        .ok();
    assert_eq!((&page["count"], &page["next"]), (&json!(2), &Value::Null));
    assert_eq!(page["events"][0]["payload"], 207);
    assert_eq!(page["events"][1]["payload"], 203);
    let (mut after, mut found, mut pages) = (String::new(), Vec::new(), 0);
    loop {
        let page = client
            .get(&format!("/latest-by-key?topic=t&limit=10{after}"))
            .await
            .ok();
        found.extend(page["events"].as_array().expect("events").clone());
        pages += 1;
        match page["next"].as_str() {
            Some(next) if pages < 10 => after = format!("&after={}", next.replace('/', "%2F")),
            _ => break,
        }
    }
    assert_eq!(pages, 3);
    let payloads: Vec<u64> = found
        .iter()
        .map(|event| event["payload"].as_u64().expect("a number"))
        .collect();
    assert_eq!(payloads, (200..230).collect::<Vec<u64>>());
}
