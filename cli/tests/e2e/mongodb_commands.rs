//! `outbox`, `project` and `changefeed` with a MongoDB database, by the real binary.

use crate::mongo_server::Server as MongoServer;
use crate::server::Server;
use prombus_mongo::mongodb::Database;
use prombus_mongo::mongodb::bson::{Document, doc};
use serde_json::Value;
use std::process::Output;

fn text(output: &Output) -> &str {
    assert!(output.status.success(), "{output:?}");
    std::str::from_utf8(&output.stdout).expect("text")
}

fn json(output: &Output) -> Value {
    serde_json::from_str(text(output)).expect("JSON")
}

/// Does something with the database, from a test that is not asynchronous.
fn with<T>(url: &str, work: impl AsyncFnOnce(Database) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime
        .expect("a runtime")
        .block_on(async { work(prombus_mongo::open(url).await.expect("a database")).await })
}

/// Payloads of a topic, in order.
fn payloads(server: &Server, topic: &str) -> Vec<String> {
    let replayed = server.command(&["replay", topic, "--json"]);
    let payload = |line: &str| {
        let event: Value = serde_json::from_str(line).expect("JSON");
        event["payload"].to_string()
    };
    text(&replayed).lines().map(payload).collect()
}

#[test]
fn the_commands_for_sqlite_work_with_a_url_too() {
    let mongo = MongoServer::start();
    let url = mongo.fresh_url();
    let server = Server::start(&["--store", "memory:"]);

    let refused = server.command(&["outbox", "drain", "--db", &url, "--once"]);
    assert!(!refused.status.success());
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(errors.contains("prombus outbox init"), "{errors}");
    let made = crate::server::run(server.folder.path(), &["outbox", "init", "--db", &url]);
    assert!(text(&made).contains("has an outbox: 0 pending"), "{made:?}");
    with(&url, async |database| {
        let rows = database.collection::<Document>("prombus_outbox");
        let row =
            |n: i32| doc! { "topic": "orders", "key": format!("k{n}"), "payload": { "n": n } };
        rows.insert_many([row(1), row(2)]).await.expect("rows");
    });
    let drained = json(&server.command(&["outbox", "drain", "--db", &url, "--once", "--json"]));
    assert_eq!(
        (&drained["sent"], &drained["failed"]),
        (&2.into(), &0.into())
    );
    assert_eq!(payloads(&server, "orders"), [r#"{"n":1}"#, r#"{"n":2}"#]);

    let project = [
        "project",
        "--topic",
        "orders",
        "--db",
        &url,
        "--collection",
        "orders",
        "--column",
        "n:integer",
        "--once",
        "--json",
    ];
    let projected = json(&server.command(&project));
    assert_eq!(
        (&projected["upserts"], &projected["position"]),
        (&2.into(), &2.into())
    );
    assert_eq!(
        json(&server.command(&project))["events"],
        0,
        "it goes on behind it"
    );
    let mut wrong = project.to_vec();
    wrong.extend(["--key-column", "k"]);
    assert!(!server.command(&wrong).status.success());

    let feed = [
        "changefeed",
        "--db",
        &url,
        "--collection",
        "orders",
        "--topic",
        "orders.changes",
        "--once",
        "--json",
    ];
    assert_eq!(json(&server.command(&feed))["snapshot"], 2);
    with(&url, async |database| {
        let orders = database.collection::<Document>("orders");
        let one = orders.delete_one(doc! { "_id": "k1" }).await;
        assert_eq!(one.expect("gone").deleted_count, 1);
    });
    let fed = json(&server.command(&feed));
    assert_eq!((&fed["snapshot"], &fed["changes"]), (&0.into(), &1.into()));
    let changes = payloads(&server, "orders.changes");
    assert_eq!(changes.len(), 3);
    assert_eq!(changes[2], "null");
}

#[test]
fn a_changefeed_needs_a_mongodb_url() {
    let server = Server::start(&["--store", "memory:"]);
    for (db, said) in [
        ("shop.db", "expected mongodb://HOST:PORT/DATABASE"),
        ("mongodb://127.0.0.1:1", "names no database"),
    ] {
        let arguments = [
            "changefeed",
            "--db",
            db,
            "--collection",
            "a",
            "--topic",
            "t",
        ];
        let output = server.command(&arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && errors.contains(said),
            "{errors}"
        );
    }
}
