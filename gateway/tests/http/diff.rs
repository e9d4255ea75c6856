//! `/diff`: what changed between two times.

use super::server::Running;
use prombus_gateway::GatewayOptions;
use serde_json::{Value, json};

fn keys(items: &Value) -> Vec<&str> {
    let items = items.as_array().expect("a list").iter();
    items
        .map(|item| item["key"].as_str().expect("a key"))
        .collect()
}

#[tokio::test]
async fn added_changed_and_deleted_keys_come_in_pages() {
    let server = Running::start().await;
    let mut client = server.client().await;
    for (key, ts, payload) in [
        ("changed", 10, "1"),
        ("deleted", 11, r#"{"a":1.50}"#),
        ("same", 12, "1"),
        ("again", 13, "1"),
        ("changed", 20, "2"),
        ("deleted", 21, "null"),
        ("added", 22, "3"),
        ("again", 23, "1"),
        ("changed", 30, "4"),
    ] {
        let target = format!("/publish/t?key={key}&ts={ts}");
        client.post(&target, payload).await.ok();
    }
    let page = client.get("/diff/t?from=15&to=25").await;
    assert!(
        page.text().contains(r#""payload":{"a":1.50}"#),
        "{}",
        page.text()
    );
    let page = page.ok();
    assert_eq!(
        (&page["from"], &page["to"], &page["next"]),
        (&json!(15), &json!(25), &json!(null))
    );
    assert_eq!(keys(&page["added"]), ["added"]);
    assert_eq!(keys(&page["deleted"]), ["deleted"]);
    assert_eq!(keys(&page["changed"]), ["changed"]);
    let changed = &page["changed"][0];
    assert_eq!(
        (&changed["from"]["payload"], &changed["to"]["payload"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(
        (&changed["from"]["ts"], &changed["to"]["seq"]),
        (&json!(10), &json!(5))
    );

    let (mut found, mut after, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = client
            .get(&format!("/diff/t?from=15&to=25&limit=1{after}"))
            .await
            .ok();
        for list in ["added", "changed", "deleted"] {
            found.extend(keys(&page[list]).into_iter().map(str::to_owned));
        }
        pages += 1;
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(
        (found, pages),
        (vec!["added".into(), "changed".into(), "deleted".into()], 5)
    );
    let prefix = client.get("/diff/t?from=0&to=25&prefix=a").await.ok();
    assert_eq!(keys(&prefix["added"]), ["added", "again"]);
    let until_now = client.get("/diff/t?from=25").await.ok();
    assert_eq!(keys(&until_now["changed"]), ["changed"]);
}

#[tokio::test]
async fn bad_requests_and_strangers_are_refused() {
    let server = Running::with_scopes(GatewayOptions::default()).await;
    let mut client = server.client().await;
    let writer = [("authorization", "Bearer publish:t")];
    client
        .request("POST", "/publish/t?key=a", &writer, b"1")
        .await
        .ok();
    let reader = [("authorization", "Bearer subscribe:**")];
    for (target, status, code) in [
        ("/diff/t", 400, "bad_frame"),
        ("/diff/t?from=x", 400, "bad_frame"),
        ("/diff/t?from=2&to=1", 400, "bad_frame"),
        ("/diff/t?from=1&limit=0", 400, "bad_frame"),
        ("/diff/t?from=1&at=1", 400, "bad_frame"),
        ("/diff/none?from=1&to=2", 404, "unknown_topic"),
    ] {
        let reply = client.request("GET", target, &reader, b"").await;
        reply.is_error(status, code);
    }
    let reply = client.request("GET", "/diff/t?from=1", &writer, b"").await;
    reply.is_error(403, "forbidden");
}

#[tokio::test]
async fn what_retention_took_is_gone() {
    let server = Running::start().await;
    let mut client = server.client().await;
    client
        .request("PUT", "/topics/t", &[], br#"{"max_events":1}"#)
        .await
        .ok();
    for ts in [10, 20] {
        client
            .post(&format!("/publish/t?key=k&ts={ts}"), "1")
            .await
            .ok();
    }
    server.bus().store().maintain().await.expect("upkeep");
    let gone = client.get("/diff/t?from=15&to=25").await;
    gone.is_error(410, "history_gone");
}
