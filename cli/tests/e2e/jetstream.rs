//! A server whose store is a stream of NATS JetStream: killed, restarted on an empty folder, and left without NATS.

use crate::nats_servers::Servers;
use crate::server::{PATIENCE, Server, run};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const EVENTS: usize = 40;

fn start(servers: &Servers, folder: Arc<TempDir>) -> Server {
    let store = format!("nats://{}/orders?copy=copy", servers.hosts());
    Server::start_in(folder, &["--store", &store])
}

fn publish(server: &Server, id: &str) -> u16 {
    let body = json!({"n": 1}).to_string();
    server.post(&format!("/publish/orders?id={id}"), &body).0
}

/// Ids of all events, in their order.
fn stored(server: &Server) -> Vec<String> {
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

#[allow(clippy::disallowed_methods, reason = "another process is waited for")]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(
            started.elapsed() < PATIENCE,
            "it never came to this: {what}"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_killed_server_goes_on_with_everything_also_elsewhere() {
    let servers = Servers::start(1, "");
    let mut server = start(&servers, Arc::new(TempDir::new().expect("a folder")));
    let mut published = Vec::new();
    let mut consumed = BTreeSet::new();
    for round in 0..4 {
        for number in 0..EVENTS / 4 {
            let id = format!("{round}-{number}");
            assert_eq!(publish(&server, &id), 200);
            published.push(id);
        }
        consumed.extend((0..EVENTS / 8).filter_map(|_| consume_one(&server)));
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
        server = start(&servers, folder);
        assert_eq!(stored(&server), published, "round {round}");
    }
    // Acknowledgements of the last moments before a kill may be repeated.
    for _ in 0..2 * EVENTS {
        consumed.extend(consume_one(&server));
        if consumed.len() == EVENTS {
            break;
        }
    }
    assert_eq!(consumed.len(), EVENTS, "every event was delivered");
}

#[test]
fn without_nats_publishing_fails_reading_goes_on_and_it_comes_back() {
    let mut servers = Servers::start(1, "");
    let server = start(&servers, Arc::new(TempDir::new().expect("a folder")));
    assert!(
        server.logged().contains("acknowledged commits can be lost"),
        "a warning at start"
    );
    assert_eq!(publish(&server, "a"), 200);
    servers.kill(0);
    // Whether it was stored is unknown, so the same event is published again under its id later.
    let (status, said) = server.post("/publish/orders?id=b", &json!({"n": 1}).to_string());
    assert_eq!(status, 503, "{said}");
    assert!(said.contains("publish_failed"), "{said}");
    assert_eq!(server.get("/readyz").0, 503);
    assert_eq!(stored(&server), ["a"]);
    servers.restart(0);
    wait_until("it is ready", || server.get("/readyz").0 == 200);
    assert_eq!(publish(&server, "b"), 200);
    assert_eq!(stored(&server), ["a", "b"]);
}

#[test]
fn a_server_that_cannot_open_the_stream_says_why() {
    let folder = TempDir::new().expect("a folder");
    for (store, said) in [
        (
            "nats://127.0.0.1:1/orders",
            "no server of nats://127.0.0.1:1/orders answers",
        ),
        ("nats://127.0.0.1:1", "the stream's name is missing"),
        ("nats://127.0.0.1:1/orders?replicas=x", "replicas=x"),
    ] {
        let output = run(
            folder.path(),
            &["serve", "--listen", "127.0.0.1:0", "--store", store],
        );
        assert!(!output.status.success());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(said), "{errors}");
    }
}
