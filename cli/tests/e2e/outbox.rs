//! An outbox that any program writes to, drained by the real binary.

use crate::server::{PATIENCE, Server, prombus, run};
use prombus_sqlite::rusqlite::Connection;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

fn text(output: &Output) -> &str {
    assert!(output.status.success(), "{output:?}");
    std::str::from_utf8(&output.stdout).expect("text")
}

/// A fresh outbox beside the server's data.
fn outbox(server: &Server) -> (PathBuf, Connection) {
    let made = run(server.folder.path(), &["outbox", "init", "--db", "app.db"]);
    assert_eq!(
        text(&made),
        "app.db has an outbox: 0 pending, 0 claimed, 0 sent, 0 failed\n"
    );
    let file = server.folder.path().join("app.db");
    let connection = Connection::open(&file).expect("a database");
    connection.busy_timeout(PATIENCE).expect("a timeout");
    (file, connection)
}

fn add(connection: &Connection, topic: &str, payload: &str) {
    let add = "INSERT INTO prombus_outbox (topic, payload) VALUES (?1, ?2)";
    connection.execute(add, [topic, payload]).expect("a row");
}

/// Ids and payloads of a topic, in order.
fn stored(server: &Server, topic: &str) -> Vec<(String, String)> {
    let replayed = server.command(&["replay", topic, "--json"]);
    let lines = text(&replayed).lines();
    let events = lines.map(|line| {
        let event: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let id = event["id"].as_str().expect("an id").to_owned();
        (id, event["payload"].to_string())
    });
    events.collect()
}

#[test]
fn rows_are_published_under_their_own_ids() {
    let server = Server::start(&[]);
    let (_, connection) = outbox(&server);
    for payload in ["1", "{", "3"] {
        add(&connection, "orders.made", payload);
    }
    add(&connection, "no topic", "4");
    let drained = server.command(&["outbox", "drain", "--db", "app.db", "--once", "--json"]);
    assert_eq!(drained.status.code(), Some(1), "some can never be sent");
    let report: serde_json::Value = serde_json::from_slice(&drained.stdout).expect("JSON");
    assert_eq!((&report["sent"], &report["failed"]), (&2.into(), &2.into()));
    assert_eq!(report["rows"]["sent"], 2);
    let ids: Vec<String> = connection
        .prepare("SELECT id FROM prombus_outbox WHERE state = 'sent' ORDER BY seq")
        .and_then(|mut query| query.query_map([], |row| row.get(0))?.collect())
        .expect("ids");
    let stored = stored(&server, "orders.made");
    let expected = [
        (ids[0].clone(), "1".to_owned()),
        (ids[1].clone(), "3".to_owned()),
    ];
    assert_eq!(stored, expected);

    // As after a crash between publish and mark.
    connection
        .execute(
            "UPDATE prombus_outbox SET state = 'pending' WHERE state = 'sent'",
            [],
        )
        .expect("rows");
    let again = server.command(&["outbox", "drain", "--db", "app.db", "--once"]);
    assert!(text(&again).starts_with("2 sent;"), "{again:?}");
    assert_eq!(self::stored(&server, "orders.made").len(), 2);
    assert!(
        text(&run(
            server.folder.path(),
            &["outbox", "init", "--db", "app.db"]
        ))
        .contains("2 sent, 2 failed")
    );
}

#[test]
fn what_is_no_outbox_is_said_to_be_none() {
    let server = Server::start(&["--store", "memory:"]);
    let complaint = |db: &str| {
        let output = server.command(&["outbox", "drain", "--db", db, "--once"]);
        assert!(!output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let reply = complaint("none.db");
    assert!(reply.contains("there is no file none.db"), "{reply}");
    Connection::open(server.folder.path().join("plain.db"))
        .and_then(|plain| plain.execute_batch("CREATE TABLE t (x)"))
        .expect("a database");
    let reply = complaint("plain.db");
    assert!(reply.contains("prombus outbox init"), "{reply}");
    let (_, _connection) = outbox(&server);
    let folder = server.folder.path();
    let arguments = [
        "outbox",
        "drain",
        "--db",
        "app.db",
        "--once",
        "--url",
        "http://127.0.0.1:1",
    ];
    let output = run(folder, &arguments);
    let reply = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && reply.contains("127.0.0.1:1"),
        "{reply}"
    );
}

fn drain(server: &Server, folder: &Path, worker: &str) -> Child {
    let arguments = [
        "outbox",
        "drain",
        "--db",
        "app.db",
        "--worker",
        worker,
        "--lease",
        "1s",
        "--url",
        &server.url,
    ];
    prombus(folder, &arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts")
}

#[allow(
    clippy::disallowed_methods,
    reason = "another process is waited for, and it tells nobody when it has written"
)]
fn wait_until_sent(connection: &Connection, count: u32) {
    let started = Instant::now();
    let sent = "SELECT count(*) FROM prombus_outbox WHERE state = 'sent'";
    while started.elapsed() < PATIENCE {
        let found: u32 = connection
            .query_row(sent, [], |row| row.get(0))
            .expect("a count");
        if found >= count {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("not all {count} rows were sent");
}

#[test]
fn two_drainers_that_are_killed_over_and_over_publish_every_row_once() {
    const ROUNDS: u32 = 6;
    const ROWS: u32 = 40;
    let server = Server::start(&[]);
    let folder = server.folder.path().to_owned();
    let (_, connection) = outbox(&server);
    for round in 0..ROUNDS {
        let mut children = [
            drain(&server, &folder, "one"),
            drain(&server, &folder, "two"),
        ];
        for number in 0..ROWS {
            add(
                &connection,
                "orders.made",
                &(round * ROWS + number).to_string(),
            );
        }
        // Killed somewhere in the middle, at another place each time.
        wait_until_sent(&connection, round * ROWS + round * ROWS / ROUNDS);
        for child in &mut children {
            child.kill().expect("it is killed");
            child.wait().expect("it ended");
        }
    }
    let mut last = drain(&server, &folder, "three");
    wait_until_sent(&connection, ROUNDS * ROWS);
    last.kill().expect("it is killed");
    last.wait().expect("it ended");
    let stored = stored(&server, "orders.made");
    let ids: BTreeSet<&String> = stored.iter().map(|(id, _)| id).collect();
    let payloads: BTreeSet<u32> = stored
        .iter()
        .map(|(_, payload)| payload.parse().expect("a number"))
        .collect();
    assert_eq!(stored.len() as u32, ROUNDS * ROWS, "nothing twice");
    assert_eq!(ids.len(), stored.len());
    assert_eq!(payloads, (0..ROUNDS * ROWS).collect(), "nothing missing");
}
