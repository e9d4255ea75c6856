//! The dashboard's files, and the routes that it gets its figures from.

use super::client::Client;
use super::server::Running;
use prombus::{BusOptions, ProcessProjector, PublishOptions};
use prombus_gateway::GatewayOptions;
use prombus_gateway::auth::Authenticator;
use serde_json::{Value, json};
use std::sync::Arc;

const BROWSER: (&str, &str) = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");

/// The path of the page's program, as the page names it.
fn script(page: &str) -> String {
    let from = page.find("/ui/").expect("the page names its files");
    let path = page[from..].split('"').next().expect("a path");
    let version: Vec<&str> = path.splitn(4, '/').collect();
    format!("/ui/{}/app/main.js", version[2])
}

#[tokio::test]
async fn the_page_is_at_the_root_for_browsers_and_at_ui() {
    let server = Running::with_scopes(GatewayOptions::default()).await;
    let mut client = server.client().await;
    let page = client.request("GET", "/", &[BROWSER], b"").await;
    assert_eq!(page.head.status, 200);
    assert_eq!(
        page.head.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert_eq!(page.head.header("cache-control"), Some("no-cache"));
    let policy = page
        .head
        .header("content-security-policy")
        .expect("a policy");
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert!(!page.text().contains("@VERSION@"));
    let same = client.get("/ui").await;
    assert_eq!(same.body, page.body);
    client.get("/").await.is_error(404, "not_found");
    let head = client.request("HEAD", "/ui", &[], b"").await;
    let length = page.body.len().to_string();
    assert_eq!(head.head.header("content-length"), Some(length.as_str()));
    let posted = client.request("POST", "/ui", &[], b"").await;
    assert_eq!(posted.head.status, 404);
}

#[tokio::test]
async fn files_are_cached_for_good_compressed_and_not_sent_twice() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let path = script(&client.get("/ui").await.text());
    let plain = client.get(&path).await;
    assert_eq!(plain.head.status, 200, "{path}");
    assert_eq!(
        plain.head.header("content-type"),
        Some("text/javascript; charset=utf-8")
    );
    let caching = plain.head.header("cache-control");
    assert_eq!(caching, Some("public, max-age=31536000, immutable"));
    let gzip = [("accept-encoding", "br, gzip")];
    let packed = client.request("GET", &path, &gzip, b"").await;
    assert_eq!(packed.head.header("content-encoding"), Some("gzip"));
    assert_eq!(packed.body[..2], [0x1f, 0x8b]);
    let tag = plain.head.header("etag").expect("a tag").to_owned();
    let again = client
        .request("GET", &path, &[("if-none-match", &tag)], b"")
        .await;
    assert_eq!((again.head.status, again.body.len()), (304, 0));
    assert_ne!(packed.head.header("etag"), Some(tag.as_str()));
    for absent in [
        "/ui/nothing",
        "/ui/0000000000000000/app/main.js",
        "/ui/../topics",
    ] {
        client.get(absent).await.is_error(404, "not_found");
    }
}

#[tokio::test]
async fn a_server_that_has_its_store_for_itself_lists_no_nodes() {
    let server = Running::start().await;
    let listed = server.client().await.get("/nodes").await.ok();
    assert_eq!(listed["nodes"], json!([]));
    assert!(listed["now_ms"].is_u64(), "{listed}");
}

/// Waits until the history has a sample with an event in it.
async fn until_published(client: &mut Client, published: u64) -> Value {
    for _ in 0..200 {
        let history = client.get("/history").await.ok();
        let counts = history["published"].as_array().expect("a list");
        if counts.iter().filter_map(Value::as_u64).sum::<u64>() >= published {
            return history;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("nothing was recorded");
}

#[tokio::test]
async fn history_is_recorded_and_can_be_followed() {
    let server = Running::start().await;
    let mut client = server.client().await;
    // What was there before the first sample would not count as published since.
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    server.fill("t", 3).await;
    let history = until_published(&mut client, 3).await;
    let columns = history.as_object().expect("an object").values();
    let lengths: Vec<usize> = columns.filter_map(Value::as_array).map(Vec::len).collect();
    assert_eq!(lengths.len(), 14);
    assert!(
        lengths.iter().all(|length| *length == lengths[0]),
        "{lengths:?}"
    );
    let last = history["ts"].as_array().and_then(|ts| ts.last()).cloned();
    let last = last.and_then(|ts| ts.as_u64()).expect("a time");
    let after = client.get(&format!("/history?after={last}")).await.ok();
    assert!(after["ts"].as_array().expect("a list").len() < lengths[0]);
    let mut follower = server.client().await;
    follower
        .send(super::client::head("GET", "/history?follow=1", &[]).as_bytes())
        .await;
    let head = follower.head().await;
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    for _ in 0..2 {
        let chunk = follower.chunk().await.expect("a stream").expect("more");
        assert!(chunk.starts_with(b"data: {\"now_ms\":"), "{chunk:?}");
    }
    let topics = client
        .get("/topics?limit=10&sort=rate&order=desc")
        .await
        .ok();
    assert_eq!(topics["topics"][0]["per_minute"], 3);
    assert_eq!(
        topics["topics"][0]["recent"].as_array().map(Vec::len),
        Some(1)
    );
}

#[tokio::test]
async fn topics_come_in_pages_sorted_and_filtered() {
    let server = Running::start().await;
    for (topic, events) in [("a.one", 3), ("a.two", 1), ("b.one", 2), ("dlq.a.one", 1)] {
        server.fill(topic, events).await;
    }
    let mut client = server.client().await;
    let names = |page: &Value| -> Vec<String> {
        let rows = page["topics"].as_array().expect("rows").iter();
        rows.map(|row| row["topic"].as_str().expect("a name").to_owned())
            .collect()
    };
    let page = client
        .get("/topics?limit=2&sort=events&order=desc")
        .await
        .ok();
    assert_eq!(
        (names(&page), &page["total"]),
        (vec!["a.one".to_owned(), "b.one".to_owned()], &json!(4))
    );
    assert!(page["topics"][0]["last_ts"].as_u64() > Some(0));
    let page = client
        .get("/topics?limit=2&offset=2&sort=events&order=desc")
        .await
        .ok();
    assert_eq!(names(&page), ["a.two", "dlq.a.one"]);
    let page = client.get("/topics?limit=9&q=ONE&prefix=a.").await.ok();
    assert_eq!(
        (names(&page), &page["total"]),
        (vec!["a.one".to_owned()], &json!(1))
    );
    let page = client.get("/topics?limit=9&offset=99").await.ok();
    assert_eq!((names(&page).len(), &page["total"]), (0, &json!(4)));
    for bad in [
        "limit=0",
        "limit=1&sort=color",
        "limit=1&order=up",
        "limit=x",
    ] {
        let reply = client.get(&format!("/topics?{bad}")).await;
        reply.is_error(400, "bad_frame");
    }
}

#[tokio::test]
async fn groups_of_all_topics_come_in_pages_with_why_they_do_not_flow() {
    let server = Running::start().await;
    server.fill("t", 5).await;
    server.fill("u", 2).await;
    let mut client = server.client().await;
    for (topic, group) in [("t", "slow"), ("t", "late"), ("u", "slow")] {
        let body = json!({"topic": topic, "group": group, "from": "earliest", "max": 1});
        client.post("/pull", &body.to_string()).await.ok();
    }
    let page = client
        .get("/groups?limit=10&sort=lag&order=desc")
        .await
        .ok();
    assert_eq!(page["total"], 3);
    let lags: Vec<&Value> = page["groups"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| &row["lag"])
        .collect();
    assert_eq!(lags, [5, 5, 2]);
    let row = &page["groups"][2];
    assert_eq!(
        (&row["topic"], &row["group"]),
        (&json!("u"), &json!("slow"))
    );
    assert!(
        row["reason"].is_string() && row["sentence"].is_string(),
        "{row}"
    );
    let page = client.get("/groups?limit=10&q=late").await.ok();
    assert_eq!(page["total"], 1);
    for (which, total) in [("topic=t", 2), ("topic=t&group=slow", 1), ("group=slow", 2)] {
        let page = client.get(&format!("/groups?limit=10&{which}")).await.ok();
        assert_eq!(page["total"], total, "{which}");
    }
    client.get("/groups").await.is_error(400, "bad_frame");
}

/// Waits until `/status` says something of its first projector.
async fn until_projector(client: &mut Client, check: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..200 {
        let status = client.get("/status").await.ok();
        if check(&status["projectors"][0]) {
            return status["projectors"][0].clone();
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("it did not come about");
}

#[tokio::test]
async fn projectors_are_in_the_status_and_their_trouble_needs_attention() {
    let server = Running::start().await;
    let mut client = server.client().await;
    assert!(client.get("/status").await.ok().get("projectors").is_none());
    let handle = server
        .bus()
        .run_projector(ProcessProjector::default())
        .expect("it starts");
    let beat = json!({"pid": 1, "name": "api", "host": "web", "cpu_pct": 1, "mem_mb": 2});
    let path = "/publish/heartbeat.received";
    client.post(path, &beat.to_string()).await.ok();
    let told = until_projector(&mut client, |told| told["position"] == 1).await;
    assert_eq!(told["name"], "process");
    assert_eq!(told["output"], "process.state");
    assert_eq!((&told["lag"], &told["standby"]), (&json!(0), &json!(false)));
    let findings = client.get("/attention").await.ok();
    assert_eq!(findings["findings"], json!([]));
    client.post(path, "17").await.ok();
    let told = until_projector(&mut client, |told| told["rejected"] == 1).await;
    assert!(told["last_rejection"].is_string(), "{told}");
    let attention = client.get("/attention").await.ok();
    let finding = &attention["findings"][0];
    assert_eq!(
        (&finding["kind"], &finding["level"], &finding["topic"]),
        (
            &json!("projector"),
            &json!("notice"),
            &json!("heartbeat.received")
        )
    );
    handle.stop().await;
    assert!(client.get("/status").await.ok().get("projectors").is_none());
}

#[tokio::test]
async fn a_member_says_how_long_it_holds_what_it_holds() {
    let server = Running::start().await;
    server.fill("t", 2).await;
    let mut client = server.client().await;
    let body = json!({"topic": "t", "group": "g", "from": "earliest", "max": 1});
    let pulled = client.post("/pull", &body.to_string()).await.ok();
    let mut held_ms = 0;
    for _ in 0..200 {
        let explained = client.get("/explain?topic=t&group=g").await.ok();
        let members = explained["group"]["members"].as_array().expect("members");
        let holds = members.iter().find(|member| member["in_flight"] == 1);
        held_ms = holds.map_or(0, |member| {
            member["oldest_in_flight_ms"].as_u64().expect("a time")
        });
        if held_ms > 0 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(held_ms > 0, "nobody holds {pulled}");
    let id = pulled["events"][0]["event"]["id"].as_str().expect("an id");
    let ack = json!({"topic": "t", "group": "g", "id": id});
    client.post("/ack", &ack.to_string()).await.ok();
    let explained = client.get("/explain?topic=t&group=g").await.ok();
    let members = explained["group"]["members"].as_array().expect("members");
    assert!(
        members
            .iter()
            .all(|member| member["oldest_in_flight_ms"] == 0),
        "{members:?}"
    );
}

#[tokio::test]
async fn a_histogram_counts_every_position_once() {
    let server = Running::start().await;
    let mut client = server.client().await;
    client
        .get("/histogram?topic=t")
        .await
        .is_error(404, "unknown_topic");
    for (ts, count) in [(1_000_u64, 3), (1_500, 2), (1_999, 5)] {
        for _ in 0..count {
            let options = PublishOptions {
                ts: Some(ts),
                ..PublishOptions::default()
            };
            server
                .bus()
                .publish("t", &1, &options)
                .await
                .expect("published");
        }
    }
    let all = client.get("/histogram?topic=t&buckets=10").await.ok();
    let counts: Vec<u64> = all["counts"]
        .as_array()
        .expect("counts")
        .iter()
        .filter_map(Value::as_u64)
        .collect();
    assert_eq!(counts.iter().sum::<u64>(), 10, "{all}");
    assert_eq!(
        (counts.len(), counts[0], counts[5], counts[9]),
        (10, 3, 2, 5),
        "{all}"
    );
    let part = client
        .get("/histogram?topic=t&buckets=1&fromTs=1001&toTs=1998")
        .await
        .ok();
    assert_eq!(part["counts"], json!([2]));
    let none = client
        .get("/histogram?topic=t&fromTs=0&toTs=9007199254740991&buckets=3")
        .await
        .ok();
    let sum: u64 = none["counts"]
        .as_array()
        .expect("counts")
        .iter()
        .filter_map(Value::as_u64)
        .sum();
    assert_eq!(sum, 10, "{none}");
    client
        .get("/histogram?topic=t&buckets=0")
        .await
        .is_error(400, "bad_frame");
    client
        .get("/histogram?topic=t&fromTs=5&toTs=4")
        .await
        .is_error(400, "bad_frame");
}

#[tokio::test]
async fn causes_are_followed_both_ways_and_across_topics() {
    let server = Running::start().await;
    let publish = async |topic: &str, cause: Option<String>| {
        let causes: Vec<String> = cause.into_iter().collect();
        let options = PublishOptions {
            caused_by: &causes,
            ..PublishOptions::default()
        };
        server
            .bus()
            .publish(topic, &1, &options)
            .await
            .expect("published")
            .id
            .to_string()
    };
    let order = publish("orders", None).await;
    let paid = publish("payments", Some(order.clone())).await;
    let sent = publish("mails", Some(paid.clone())).await;
    let lost = publish("mails", Some("gone".to_owned())).await;
    let mut client = server.client().await;
    let chain = client
        .get(&format!("/causes?topic=payments&id={paid}"))
        .await
        .ok();
    assert_eq!(chain["event"]["id"], json!(paid));
    assert_eq!(chain["causes"][0]["id"], json!(order));
    assert_eq!(chain["effects"][0]["id"], json!(sent));
    assert_eq!(
        (&chain["complete"], &chain["unknown"]),
        (&json!(true), &json!([]))
    );
    let chain = client
        .get(&format!("/causes?topic=mails&id={lost}"))
        .await
        .ok();
    assert_eq!(
        (&chain["causes"], &chain["unknown"]),
        (&json!([]), &json!(["gone"]))
    );
    client
        .get("/causes?topic=mails&id=none")
        .await
        .is_error(404, "unknown_id");
}

#[tokio::test]
async fn a_caller_learns_what_its_token_allows_and_no_more() {
    let server = Running::with_scopes(GatewayOptions::default()).await;
    server.fill("open.t", 1).await;
    server.fill("secret.t", 1).await;
    let mut client = server.client().await;
    client.get("/status").await.is_error(401, "unauthorized");
    let mut ask = async |target: &str, scopes: &str| {
        let bearer = format!("Bearer {scopes}");
        client
            .request("GET", target, &[("authorization", &bearer)], b"")
            .await
    };
    let status = ask("/status", "subscribe:open.**").await.ok();
    assert_eq!(status["access"]["subscribe"], "part");
    assert_eq!(status["access"]["admin"], "nothing");
    assert!(status.get("store").is_none(), "{status}");
    assert_eq!(ask("/status", "admin:**").await.ok()["store"]["topics"], 2);
    let access = ask("/access?topic=open.t", "subscribe:open.**").await.ok();
    assert_eq!(
        (&access["subscribe"], &access["publish"]),
        (&json!("all"), &json!("nothing"))
    );
    ask("/access?topic=no%20topic", "subscribe:**")
        .await
        .is_error(400, "bad_topic");
    let page = ask("/topics?limit=9", "subscribe:open.**").await.ok();
    assert_eq!(
        (&page["total"], &page["topics"][0]["topic"]),
        (&json!(1), &json!("open.t"))
    );
    for closed in ["/history", "/history?follow=1", "/nodes"] {
        ask(closed, "subscribe:open.**")
            .await
            .is_error(403, "forbidden");
    }
    for closed in ["/histogram?topic=secret.t", "/causes?topic=secret.t&id=x"] {
        ask(closed, "subscribe:open.**")
            .await
            .is_error(403, "forbidden");
    }
    assert_eq!(
        ask("/attention", "subscribe:open.**").await.ok()["findings"],
        json!([])
    );
}

#[tokio::test]
async fn dead_letters_and_stuck_groups_need_attention() {
    let server = Running::on(
        Arc::new(prombus_store::memory::MemoryStore::new(Arc::new(
            prombus::SystemClock,
        ))),
        BusOptions::default(),
        Authenticator::off(),
        GatewayOptions::default(),
    )
    .await;
    server.fill("dlq.orders", 2).await;
    // An event that is old already makes its group late at once.
    let old = PublishOptions {
        ts: Some(1_000),
        ..PublishOptions::default()
    };
    server
        .bus()
        .publish("t", &1, &old)
        .await
        .expect("published");
    let mut client = server.client().await;
    let pull = json!({"topic": "t", "group": "g", "from": "earliest", "max": 1});
    let pulled = client.post("/pull", &pull.to_string()).await.ok();
    let id = &pulled["events"][0]["event"]["id"];
    let nack = json!({"topic": "t", "group": "g", "id": id, "delay_ms": 600_000});
    client.post("/nack", &nack.to_string()).await.ok();
    let findings = client.get("/attention").await.ok()["findings"].clone();
    let of_kind = |kind: &str| {
        let all = findings.as_array().expect("a list");
        all.iter().find(|finding| finding["kind"] == kind).cloned()
    };
    let letters = of_kind("dead_letters").expect("the letters are told");
    assert_eq!(letters["topic"], "orders");
    assert!(
        letters["sentence"]
            .as_str()
            .expect("words")
            .starts_with("2 events")
    );
    let stuck = of_kind("stuck_group").expect("the group is told");
    assert_eq!(
        (&stuck["topic"], &stuck["group"]),
        (&json!("t"), &json!("g"))
    );
    assert_eq!(stuck["level"], "warning");
}
