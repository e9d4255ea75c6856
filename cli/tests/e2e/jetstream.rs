//! A server whose store is a stream of NATS JetStream: killed, restarted on an empty folder, and left without NATS.

use crate::nats_servers::Servers;
use crate::server::{PATIENCE, Server, run};
use crate::shared_store::{lose_and_find, publish, stop_and_kill, stored, wait_at_most};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

fn start(servers: &Servers, folder: Arc<TempDir>) -> Server {
    let store = format!("nats://{}/orders?copy=copy", servers.hosts());
    Server::start_in(folder, &["--store", &store])
}

#[test]
fn a_killed_server_goes_on_with_everything_also_elsewhere() {
    let servers = Servers::start(1, "");
    stop_and_kill(4, 10, |folder| start(&servers, folder));
}

#[test]
fn without_nats_publishing_fails_reading_goes_on_and_it_comes_back() {
    let mut servers = Servers::start(1, "");
    let server = start(&servers, Arc::new(TempDir::new().expect("a folder")));
    assert!(
        server.logged().contains("acknowledged commits can be lost"),
        "a warning at start"
    );
    lose_and_find(
        &server,
        &mut servers,
        |servers| servers.kill(0),
        |servers| servers.restart(0),
    );
}

#[test]
fn a_server_that_is_killed_while_it_makes_a_snapshot_goes_on_and_makes_another() {
    let servers = Servers::start(1, "");
    // Until then a snapshot that was begun is waited for; there is no shorter time.
    let growth = "copy=copy&snapshot_bytes=1MiB&absent=30";
    let store = format!("nats://{}/orders?{growth}", servers.hosts());
    let new_folder = || Arc::new(TempDir::new().expect("a folder"));
    let start = |folder| Server::start_in(folder, &["--store", &store]);
    let body = format!("\"{}\"", "x".repeat(30_000));
    let mut published = Vec::new();
    let mut server = start(new_folder());
    let mut was_cut = false;
    while !was_cut {
        assert!(
            published.len() < 200,
            "every snapshot was quicker than a kill"
        );
        while !server.logged().contains("a snapshot is made") {
            let id = published.len().to_string();
            let (status, said) = server.post(&format!("/publish/orders?id={id}"), &body);
            assert_eq!(status, 200, "{said}");
            published.push(id);
        }
        server.signal("KILL");
        was_cut = !server.logged().contains("a snapshot is stored");
        server = start(server.kill());
        assert_eq!(exported(&server), published);
    }
    wait_at_most(3 * PATIENCE, "one is stored", || {
        server.logged().contains("a snapshot is stored")
    });
    let new = start(new_folder());
    assert!(new.logged().contains("the copy is made from a snapshot"));
    assert_eq!(exported(&new), published);
}

/// Ids of all events, in their order, however large they are.
fn exported(server: &Server) -> Vec<String> {
    let (status, said) = server.get("/export?topic=orders&ndjson=1");
    assert_eq!(status, 200, "{said}");
    let id = |line: &str| {
        let event: Value = serde_json::from_str(line).expect("JSON");
        event["id"].as_str().expect("an id").to_owned()
    };
    said.lines().map(id).collect()
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "another process is let to find nothing for a while"
)]
fn a_server_that_starts_before_nats_has_a_leader_waits_for_one() {
    let mut nats = Servers::start(3, "");
    let store = format!("nats://{}/orders?replicas=3&copy=copy", nats.hosts());
    let server = Server::start(&["--store", &store]);
    assert_eq!(publish(&server, "a"), 200);
    let folder = server.kill();
    (0..3).for_each(|at| nats.kill(at));
    let starting = std::thread::spawn(move || Server::start_in(folder, &["--store", &store]));
    std::thread::sleep(Duration::from_secs(2));
    (0..3).for_each(|at| nats.restart(at));
    let server = starting.join().expect("it starts");
    assert!(
        server.logged().contains("trying again"),
        "{}",
        server.logged()
    );
    assert_eq!(stored(&server), ["a"]);
    assert_eq!(publish(&server, "b"), 200);
}

#[test]
fn a_server_that_cannot_open_the_stream_says_why() {
    let folder = TempDir::new().expect("a folder");
    for (store, said) in [
        (
            "nats://127.0.0.1:1/orders?wait=0",
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
