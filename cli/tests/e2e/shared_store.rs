//! What the tests of servers on a shared store have in common: orders that are published, read and consumed, and a server
//! that is stopped, killed and started elsewhere.

use crate::server::{PATIENCE, Server};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) fn publish(server: &Server, id: &str) -> u16 {
    let body = json!({"n": 1}).to_string();
    server.post(&format!("/publish/orders?id={id}"), &body).0
}

/// Ids of all events, in their order.
pub(crate) fn stored(server: &Server) -> Vec<String> {
    let (status, said) = server.get("/replay?topic=orders&limit=1000");
    assert_eq!(status, 200, "{said}");
    let page: Value = serde_json::from_str(&said).expect("JSON");
    let events = page["events"].as_array().expect("events");
    let id = |event: &Value| event["id"].as_str().expect("an id").to_owned();
    events.iter().map(id).collect()
}

/// Pulls an event of the group and acknowledges it.
fn consume_one(server: &Server) -> Option<String> {
    let pull =
        json!({"topic": "orders", "group": "g", "max": 1, "from": "earliest", "wait_ms": 500});
    let (status, said) = server.post("/pull", &pull.to_string());
    assert_eq!(status, 200, "{said}");
    let pulled: Value = serde_json::from_str(&said).expect("JSON");
    let id = pulled["events"].get(0)?["event"]["id"].as_str()?.to_owned();
    let ack = json!({"topic": "orders", "group": "g", "id": id}).to_string();
    let (status, said) = server.post("/ack", &ack);
    assert_eq!(status, 200, "{said}");
    Some(id)
}

pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    wait_at_most(PATIENCE, what, is_so);
}

#[allow(clippy::disallowed_methods, reason = "another process is waited for")]
pub(crate) fn wait_at_most(limit: Duration, what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < limit, "it never came to this: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Publishes and consumes in as many rounds as there are ways to go down: by a signal, killed with an empty folder
/// afterwards, and killed. Everything is there after each, and every event is delivered. Returns what was published, and the
/// last server.
pub(crate) fn stop_and_kill(
    rounds: usize,
    events_each: usize,
    start: impl Fn(Arc<TempDir>) -> Server,
) -> (Vec<String>, Server) {
    let mut server = start(Arc::new(TempDir::new().expect("a folder")));
    let mut published = Vec::new();
    let mut consumed = BTreeSet::new();
    for round in 0..rounds {
        for number in 0..events_each {
            let id = format!("{round}-{number}");
            assert_eq!(publish(&server, &id), 200);
            published.push(id);
        }
        consumed.extend((0..events_each / 2).filter_map(|_| consume_one(&server)));
        let folder = match round {
            0 => {
                server.signal("TERM");
                let folder = server.folder.clone();
                assert!(server.wait().success());
                folder
            }
            // Another machine, with nothing.
            1 => {
                drop(server.kill());
                Arc::new(TempDir::new().expect("a folder"))
            }
            _ => server.kill(),
        };
        server = start(folder);
        assert_eq!(stored(&server), published, "round {round}");
    }
    // Acknowledgements of the last moments before a kill may be repeated.
    for _ in 0..2 * published.len() {
        consumed.extend(consume_one(&server));
        if consumed.len() == published.len() {
            break;
        }
    }
    assert_eq!(consumed.len(), published.len(), "every event was delivered");
    (published, server)
}

/// While the store is away publishing fails and reading goes on; `go` takes it away, `back` brings it back.
pub(crate) fn lose_and_find<T>(
    server: &Server,
    store: &mut T,
    go: impl FnOnce(&mut T),
    back: impl FnOnce(&mut T),
) {
    assert_eq!(publish(server, "a"), 200);
    go(store);
    // Whether it was stored is unknown, so the same event is published again under its id later.
    let (status, said) = server.post("/publish/orders?id=b", &json!({"n": 1}).to_string());
    assert_eq!(status, 503, "{said}");
    assert!(said.contains("publish_failed"), "{said}");
    assert_eq!(server.get("/readyz").0, 503);
    assert_eq!(stored(server), ["a"]);
    back(store);
    wait_until("it is ready", || server.get("/readyz").0 == 200);
    assert_eq!(publish(server, "b"), 200);
    assert_eq!(stored(server), ["a", "b"]);
}
