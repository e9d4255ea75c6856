//! Scheduled events in the real server: from the shell, and killed around the time they are due.

use crate::server::{PATIENCE, Server};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Output;
use std::time::{Duration, Instant};

/// How often the server is killed; `PROMBUS_SCHEDULE_KILLS` says otherwise.
const KILLS: u64 = 10;
/// How many events are due around each kill.
const EVENTS: u64 = 40;

fn text(output: &Output) -> &str {
    assert!(output.status.success(), "{output:?}");
    std::str::from_utf8(&output.stdout).expect("text")
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The ids of a topic's events with how often each is there, and their due times.
fn published(server: &Server) -> BTreeMap<String, (u64, u64)> {
    let mut found: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let mut from = 1;
    loop {
        let (status, page) =
            server.get(&format!("/replay?topic=t&from=seq&seq={from}&limit=10000"));
        if status == 404 {
            return found;
        }
        let page = json(&page);
        for event in page["events"].as_array().expect("events") {
            let id = event["id"].as_str().expect("an id").to_owned();
            let entry = found.entry(id).or_default();
            entry.0 += 1;
            entry.1 = event["ts"].as_u64().expect("a time");
        }
        match page["next"].as_u64() {
            Some(next) => from = next,
            None => return found,
        }
    }
}

/// Waits until nothing is scheduled any more.
#[allow(
    clippy::disallowed_methods,
    reason = "another process is waited for, and its time is the machine's"
)]
fn wait_until_all_are_published(server: &Server) {
    let began = Instant::now();
    loop {
        let (status, page) = server.get("/schedules?topic=t&limit=1");
        assert_eq!(status, 200, "{page}");
        let page = json(&page);
        if page["schedules"] == Value::Array(Vec::new()) && page["next"].is_null() {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{page}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn schedules_are_made_listed_and_removed_from_the_shell() {
    let server = Server::start(&[]);
    let made = server.command(&[
        "pub", "t", "1", "--delay", "1h", "--id", "later", "--key", "k",
    ]);
    assert!(text(&made).starts_with("later to t at 20"), "{made:?}");
    let cron = "0 9 * * 1-5 Europe/Berlin";
    let made = server.command(&["pub", "t", "{}", "--every", cron, "--id", "daily", "--json"]);
    let made = json(text(&made));
    assert_eq!(
        (&made["id"], &made["scheduled"]),
        (&"daily".into(), &true.into())
    );
    assert!(made.get("seq").is_none());
    let listed = server.command(&["schedule", "ls", "t"]);
    let listed = text(&listed);
    assert!(
        listed.contains("later") && listed.contains(cron),
        "{listed}"
    );
    let lines = server.command(&["schedule", "ls", "--json"]);
    let ids: Vec<Value> = text(&lines)
        .lines()
        .map(|line| json(line)["id"].clone())
        .collect();
    assert_eq!(ids, ["daily", "later"]);
    let unsure = server.command(&["schedule", "rm", "later"]);
    assert!(!unsure.status.success(), "it asks, and nobody answers");
    let removed = server.command(&["schedule", "rm", "later", "daily", "--yes"]);
    assert_eq!(text(&removed), "removed later of t\nremoved daily of t\n");
    let gone = server.command(&["schedule", "rm", "later", "--yes", "--json"]);
    assert!(
        String::from_utf8_lossy(&gone.stderr).contains("unknown_id"),
        "{gone:?}"
    );
    let bad = server.command(&["pub", "t", "1", "--every", "often"]);
    assert!(
        String::from_utf8_lossy(&bad.stderr).contains("every"),
        "{bad:?}"
    );
    assert_eq!(server.get("/topics").1, r#"{"topics":[]}"#);
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "the server that is killed runs on the machine's clock"
)]
fn killed_around_the_due_time_each_event_is_published_once() {
    let kills = std::env::var("PROMBUS_SCHEDULE_KILLS");
    let kills = kills.map_or(KILLS, |kills| kills.parse().expect("a number"));
    let mut server = Server::start(&[]);
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for kill in 0..kills {
        for number in 0..EVENTS {
            let id = format!("event-{kill}-{number}");
            let path = format!("/publish/t?id={id}&delay_ms={}", 150 + number * 5);
            let (status, reply) = server.post(&path, "1");
            assert_eq!(status, 200, "{reply}");
            expected.insert(id, json(&reply)["due"].as_u64().expect("a time"));
        }
        // At another moment each time: before the first is due, in between, and after the last.
        std::thread::sleep(Duration::from_millis(kill * 37 % 400));
        let folder = server.folder.clone();
        server.signal("KILL");
        drop(server);
        server = Server::start_in(folder, &[]);
    }
    wait_until_all_are_published(&server);
    let found = published(&server);
    let once = expected.into_iter().map(|(id, due)| (id, (1, due)));
    assert_eq!(found, once.collect());
}
