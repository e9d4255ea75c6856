//! A topic as a table of an SQLite file, kept by the real binary.

use crate::server::{PATIENCE, Server, prombus, run};
use prombus_sqlite::rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

fn text(output: &Output) -> &str {
    assert!(output.status.success(), "{output:?}");
    std::str::from_utf8(&output.stdout).expect("text")
}

fn publish(server: &Server, key: &str, payload: &str) {
    let path = format!("/publish/orders.state?key={key}");
    assert_eq!(server.post(&path, payload).0, 200);
}

/// Rows as text, columns with bars between.
fn rows(file: &Path, query: &str) -> Vec<String> {
    let opened = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE);
    let connection = opened.expect("a database");
    let mut query = connection.prepare(query).expect("a query");
    let columns = query.column_count();
    let rows = query.query_map([], |row| {
        let cells = (0..columns).map(|at| row.get::<_, Option<String>>(at));
        let cells: Result<Vec<_>, _> = cells.collect();
        Ok(cells?
            .into_iter()
            .map(Option::unwrap_or_default)
            .collect::<Vec<_>>())
    });
    let rows = rows.expect("rows").map(|row| row.expect("a row").join("|"));
    rows.collect()
}

#[test]
fn a_table_is_made_and_goes_on_where_it_was() {
    let server = Server::start(&[]);
    publish(&server, "a", r#"{"total":1,"address":{"city":"Ulm"}}"#);
    publish(&server, "b", r#"{"total":2}"#);
    publish(&server, "a", r#"{"total":3,"address":{"city":"Bonn"}}"#);
    let arguments = [
        "project",
        "--topic",
        "orders.state",
        "--db",
        "orders.db",
        "--table",
        "orders",
        "--column",
        "city=address.city:text",
        "--column",
        "total=total:integer",
        "--index",
        "city",
        "--once",
    ];
    let reply = server.command(&arguments);
    assert_eq!(
        text(&reply),
        "orders is up to orders.state/3: 3 events, 3 rows written, 0 removed\n"
    );
    let file = server.folder.path().join("orders.db");
    let all = "SELECT key, city, CAST(total AS TEXT) FROM orders ORDER BY key";
    assert_eq!(rows(&file, all), ["a|Bonn|3", "b||2"]);
    publish(&server, "b", "null");
    publish(&server, "c", r#"{"total":5}"#);
    let again = server.command(&[&arguments[..], &["--json"]].concat());
    let report: serde_json::Value = serde_json::from_str(text(&again)).expect("JSON");
    assert_eq!(report["position"], 5);
    assert_eq!(
        (&report["events"], &report["deletes"]),
        (&2.into(), &1.into())
    );
    assert_eq!(rows(&file, all), ["a|Bonn|3", "c||5"]);
    let other = server.command(&[
        "project",
        "--topic",
        "orders.state",
        "--db",
        "orders.db",
        "--table",
        "orders",
        "--once",
    ]);
    let reply = String::from_utf8_lossy(&other.stderr);
    assert!(
        !other.status.success() && reply.contains("set up otherwise"),
        "{reply}"
    );
}

#[test]
fn a_version_keeps_what_is_older_out() {
    let server = Server::start(&["--store", "memory:"]);
    for version in [1, 3, 2] {
        publish(&server, "a", &format!(r#"{{"v":{version}}}"#));
    }
    let reply = server.command(&[
        "project",
        "--topic",
        "orders.state",
        "--db",
        "o.db",
        "--table",
        "o",
        "--version-field",
        "v",
        "--once",
    ]);
    assert!(text(&reply).contains("1 were older"), "{reply:?}");
    let file = server.folder.path().join("o.db");
    assert_eq!(rows(&file, "SELECT payload FROM o"), [r#"{"v":3}"#]);
}

#[test]
fn what_cannot_be_done_is_said_before_anything_is_made() {
    let server = Server::start(&["--store", "memory:"]);
    let folder = server.folder.path();
    let project = |db: &str, more: &[&str]| {
        let plain = [
            "project",
            "--topic",
            "orders.state",
            "--db",
            db,
            "--table",
            "t",
            "--once",
        ];
        server.command(&[&plain[..], more].concat())
    };
    let complaint = |output: Output| {
        assert!(!output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let reply = complaint(project("a.db", &[]));
    assert!(reply.contains("prombus topic ls"), "{reply}");
    assert!(!folder.join("a.db").exists(), "nothing was made");
    publish(&server, "a", "1");
    std::fs::write(folder.join("letter.txt"), "dear reader, ".repeat(200)).expect("a file");
    let reply = complaint(project("letter.txt", &[]));
    assert!(
        reply.contains("letter.txt") && reply.contains("not an SQLite database"),
        "{reply}"
    );
    let reply = complaint(project("none/a.db", &[]));
    assert!(reply.contains("cannot open none/a.db"), "{reply}");
    let reply = complaint(project("a.db", &["--column", "x=y:number"]));
    assert!(reply.contains("the types are"), "{reply}");
    let reply = complaint(project("a.db", &["--index", "nothing"]));
    assert!(reply.contains("no such column"), "{reply}");
}

#[test]
fn a_topic_that_was_made_again_stops_it() {
    let server = Server::start(&["--store", "memory:"]);
    let arguments = [
        "project",
        "--topic",
        "orders.state",
        "--db",
        "o.db",
        "--table",
        "o",
        "--once",
    ];
    for payload in ["1", "2"] {
        publish(&server, "a", payload);
    }
    text(&server.command(&arguments));
    assert!(
        server
            .command(&["topic", "rm", "orders.state", "--yes"])
            .status
            .success()
    );
    publish(&server, "a", "1");
    let reply = String::from_utf8_lossy(&server.command(&arguments).stderr).into_owned();
    assert!(reply.contains("tail is at seq 1"), "{reply}");
    publish(&server, "a", "2");
    let reply = String::from_utf8_lossy(&server.command(&arguments).stderr).into_owned();
    assert!(reply.contains("stands there"), "{reply}");
}

fn follow(server: &Server) -> Child {
    let arguments = [
        "project",
        "--topic",
        "orders.state",
        "--db",
        "o.db",
        "--table",
        "o",
        "--url",
        &server.url,
    ];
    prombus(server.folder.path(), &arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts")
}

/// Waits until the table has so many rows.
#[allow(
    clippy::disallowed_methods,
    reason = "another process is waited for, and it tells nobody when it has written"
)]
fn wait_for_rows(file: &Path, count: u32) {
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        // At first there is no file, and then no table.
        let opened = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE);
        let found = opened.and_then(|connection| {
            connection.query_row("SELECT count(*) FROM o", [], |row| row.get::<_, u32>(0))
        });
        if found.is_ok_and(|found| found == count) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("the table has not got {count} rows");
}

#[test]
fn it_follows_through_kills_of_itself_and_stops_when_asked_to() {
    let server = Server::start(&[]);
    let file = server.folder.path().join("o.db");
    publish(&server, "k0", "0");
    for round in 1..4 {
        let mut child = follow(&server);
        for number in 0..5 {
            publish(&server, &format!("k{}", round * 10 + number), "1");
        }
        wait_for_rows(&file, 1 + round * 5);
        child.kill().expect("it is killed");
        child.wait().expect("it ended");
    }
    let child = follow(&server);
    publish(&server, "last", "1");
    wait_for_rows(&file, 17);
    let pid = child.id().to_string();
    let sent = run_kill(&pid);
    assert!(sent, "SIGTERM is sent");
    let output = child.wait_with_output().expect("its end");
    assert_eq!(
        text(&output),
        "o is up to orders.state/17: 1 events, 1 rows written, 0 removed\n"
    );
    let position = rows(&file, "SELECT CAST(seq AS TEXT) FROM prombus_positions");
    assert_eq!(position, ["17"]);
}

fn run_kill(pid: &str) -> bool {
    let sent = std::process::Command::new("kill")
        .args(["-s", "TERM", pid])
        .status();
    sent.expect("kill runs").success()
}

#[test]
fn help_names_what_there_is() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let help = run(folder.path(), &["project", "--help"]);
    for flag in ["--column", "--index", "--version-field", "--once"] {
        assert!(text(&help).contains(flag), "{flag}");
    }
}
