//! A server whose store is a MongoDB database: killed, restarted on an empty folder, and left without MongoDB.

use crate::cluster::relay_and_take_over;
use crate::mongo_server::Server as MongoServer;
use crate::server::{Server, run};
use crate::shared_store::{lose_and_find, stop_and_kill, wait_until};
use prombus_mongo::mongodb::bson::{Document, doc};
use std::sync::Arc;
use tempfile::TempDir;

fn start(url: &str, folder: Arc<TempDir>) -> Server {
    let joint = if url.contains('?') { '&' } else { '?' };
    let store = format!("{url}{joint}copy=copy");
    Server::start_in(folder, &["--store", &store])
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
    let (published, _server) = stop_and_kill(3, 8, |folder| start(&url, folder));
    wait_until("the readable copy has everything", || {
        readable(&url) == published
    });
}

#[test]
fn a_group_is_relayed_to_its_server_and_another_takes_over_when_it_is_killed() {
    let mongo = MongoServer::start();
    let url = mongo.fresh_url();
    relay_and_take_over(|folder| start(&url, folder));
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
    lose_and_find(&server, &mut mongo, MongoServer::kill, MongoServer::restart);
}

#[test]
fn a_server_that_cannot_open_the_database_says_why_and_shows_no_password() {
    let folder = TempDir::new().expect("a folder");
    for (store, said) in [
        (
            "mongodb://me:secret@127.0.0.1:1/orders?serverSelectionTimeoutMS=200&wait=0",
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
