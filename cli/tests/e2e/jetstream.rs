//! A server whose store is a stream of NATS JetStream: killed, restarted on an empty folder, and left without NATS.

use crate::nats_servers::Servers;
use crate::server::{Server, run};
use crate::shared_store::{lose_and_find, stop_and_kill};
use std::sync::Arc;
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
