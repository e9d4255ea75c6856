//! A server whose store is a MongoDB database: killed, restarted on an empty folder, and left without MongoDB.

use crate::mongo_server::Server as MongoServer;
use crate::server::{PATIENCE, Server, run};
use prombus_mongo::mongodb::bson::{Document, doc};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const EVENTS: usize = 24;

fn start(url: &str, folder: Arc<TempDir>) -> Server {
    let joint = if url.contains('?') { '&' } else { '?' };
    let store = format!("{url}{joint}copy=copy");
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

/// The ids of the readable copy, in the order of positions.
fn readable(url: &str) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        let database = prombus_mongo::open(url).await.expect("a database");
        let events = database.collection::<Document>("events");
        let find = events.find(doc! { "topic": "orders" });
        let mut cursor = find.sort(doc! { "seq": 1 }).await.expect("documents");
        let mut ids = Vec::new();
        while cursor.advance().await.expect("a document") {
            let found: Document = cursor.deserialize_current().expect("a document");
            ids.push(found.get_str("id").expect("an id").to_owned());
        }
        ids
    })
}

#[test]
fn a_killed_server_goes_on_with_everything_also_elsewhere() {
    let mongo = MongoServer::start();
    let url = mongo.fresh_url();
    let mut server = start(&url, Arc::new(TempDir::new().expect("a folder")));
    let mut published = Vec::new();
    let mut consumed = BTreeSet::new();
    for round in 0..3 {
        for number in 0..EVENTS / 3 {
            let id = format!("{round}-{number}");
            assert_eq!(publish(&server, &id), 200);
            published.push(id);
        }
        consumed.extend((0..EVENTS / 6).filter_map(|_| consume_one(&server)));
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
        server = start(&url, folder);
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
    wait_until("the readable copy has everything", || {
        readable(&url) == published
    });
}

#[test]
fn without_mongodb_publishing_fails_reading_goes_on_and_it_comes_back() {
    let mut mongo = MongoServer::start_stand_in();
    let url = mongo.fresh_url();
    let server = start(&url, Arc::new(TempDir::new().expect("a folder")));
    let (_, status) = server.get("/status");
    assert!(status.contains("w:majority, j:true"), "{status}");
    assert!(
        server.logged().contains("survives the loss of none"),
        "a warning at start"
    );
    assert_eq!(publish(&server, "a"), 200);
    mongo.kill();
    // Whether it was stored is unknown, so the same event is published again under its id later.
    let (status, said) = server.post("/publish/orders?id=b", &json!({"n": 1}).to_string());
    assert_eq!(status, 503, "{said}");
    assert!(said.contains("publish_failed"), "{said}");
    assert_eq!(server.get("/readyz").0, 503);
    assert_eq!(stored(&server), ["a"]);
    mongo.restart();
    wait_until("it is ready", || server.get("/readyz").0 == 200);
    assert_eq!(publish(&server, "b"), 200);
    assert_eq!(stored(&server), ["a", "b"]);
}

#[test]
fn a_server_that_cannot_open_the_database_says_why_and_shows_no_password() {
    let folder = TempDir::new().expect("a folder");
    for (store, said) in [
        (
            "mongodb://me:secret@127.0.0.1:1/orders?serverSelectionTimeoutMS=200",
            "cannot open the log in MongoDB",
        ),
        ("mongodb://127.0.0.1:1/a.b", "a database's name"),
        (
            "mongodb://me:secret@127.0.0.1:1/orders?readable=x",
            "readable is yes or no",
        ),
    ] {
        let output = run(
            folder.path(),
            &["serve", "--listen", "127.0.0.1:0", "--store", store],
        );
        assert!(!output.status.success());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(said), "{errors}");
        assert!(!errors.contains("secret"), "{errors}");
    }
}
