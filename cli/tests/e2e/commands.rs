//! The verbs against a server, as somebody at a shell would use them.

use crate::server::{Server, prombus};
use std::io::Write;
use std::process::{Output, Stdio};

fn text(output: &Output) -> &str {
    assert!(output.status.success(), "{output:?}");
    std::str::from_utf8(&output.stdout).expect("text")
}

#[test]
fn publish_replay_export_and_import() {
    let server = Server::start(&[]);
    let reply = server.command(&[
        "pub",
        "orders.made",
        r#"{"n":1}"#,
        "--key",
        "a",
        "--id",
        "one",
    ]);
    assert_eq!(text(&reply), "one at orders.made/1\n");
    let again = server.command(&["pub", "orders.made", r#"{"n":1}"#, "--id", "one", "--json"]);
    assert!(text(&again).contains(r#""duplicate":true"#), "{again:?}");

    let lines = "{\"n\":2}\nnonsense\n{\"n\":3}\n";
    let mut child = prombus(
        server.folder.path(),
        &["pub", "orders.made", "--url", &server.url],
    )
    .stdin(Stdio::piped())
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .expect("it starts");
    let mut stdin = child.stdin.take().expect("its input");
    stdin.write_all(lines.as_bytes()).expect("lines");
    drop(stdin);
    let output = child.wait_with_output().expect("its end");
    assert_eq!(output.status.code(), Some(1), "a bad line makes it fail");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.contains("line 2") && errors.contains("bad_json"),
        "{errors}"
    );

    let replayed = server.command(&["replay", "orders.made", "--json"]);
    assert_eq!(text(&replayed).lines().count(), 3);
    let pretty = server.command(&["replay", "orders.made", "-n", "1"]);
    assert!(
        text(&pretty)
            .trim_end()
            .ends_with(r#"orders.made/1 a {"n":1}"#),
        "{pretty:?}"
    );

    let export = server.command(&["export", "orders.made", "-o", "orders.ndjson"]);
    assert!(export.status.success(), "{export:?}");
    let other = Server::start(&["--store", "memory:"]);
    let file = server.folder.path().join("orders.ndjson");
    let file = file.to_str().expect("a path");
    let first = other.command(&["import", "orders.made", file]);
    assert!(
        text(&first).starts_with("3 lines: 3 stored, 0 duplicates"),
        "{first:?}"
    );
    let second = other.command(&["import", "orders.made", file]);
    assert!(
        text(&second).starts_with("3 lines: 0 stored, 3 duplicates"),
        "{second:?}"
    );
    let copied = other.command(&["export", "orders.made"]);
    assert_eq!(
        text(&copied),
        std::fs::read_to_string(file).expect("the file")
    );
}

#[test]
fn topics_are_listed_changed_emptied_and_removed() {
    let server = Server::start(&["--store", "memory:"]);
    let set = server.command(&[
        "topic",
        "set",
        "beats",
        "--durability",
        "os",
        "--retention",
        "3d",
    ]);
    assert!(text(&set).contains("os, for 3d"), "{set:?}");
    let kept = server.command(&["topic", "set", "beats", "--max-events", "5"]);
    assert!(text(&kept).contains("os, for 3d, to 5 events"), "{kept:?}");
    server.command(&["pub", "beats", "1"]);
    let listed = server.command(&["topic", "ls"]);
    assert!(text(&listed).contains("beats"), "{listed:?}");
    let asked = server.command(&["topic", "rm", "beats"]);
    assert!(!asked.status.success(), "without --yes");
    assert!(String::from_utf8_lossy(&asked.stderr).contains("--yes"));
    assert!(
        server
            .command(&["topic", "purge", "beats", "--yes"])
            .status
            .success()
    );
    assert_eq!(text(&server.command(&["replay", "beats", "--json"])), "");
    assert!(
        server
            .command(&["topic", "rm", "beats", "--yes"])
            .status
            .success()
    );
    let gone = server.command(&["topic", "info", "beats"]);
    let reply = String::from_utf8_lossy(&gone.stderr);
    assert!(
        !gone.status.success() && reply.contains("prombus topic ls"),
        "{reply}"
    );
}

#[test]
fn a_server_that_is_not_there_is_said_with_what_to_do() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("its address"));
    drop(listener);
    let output = crate::server::run(folder.path(), &["topic", "ls", "--url", &url]);
    let reply = String::from_utf8_lossy(&output.stderr);
    assert!(
        reply.contains(&url) && reply.contains("prombus serve"),
        "{reply}"
    );
}

#[test]
fn a_token_is_asked_for_and_taken() {
    let server = Server::start(&["--store", "memory:", "--token", "open sesame"]);
    let refused = server.command(&["topic", "ls"]);
    let reply = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && reply.contains("--token"),
        "{reply}"
    );
    let wrong = server.command(&["topic", "ls", "--token", "x"]);
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("bad_token"));
    let right = server.command(&["topic", "ls", "--token", "open sesame"]);
    assert!(right.status.success(), "{right:?}");
}

#[test]
fn a_damaged_log_is_found_by_verify() {
    let server = Server::start(&[]);
    for n in 0..20 {
        assert_eq!(server.post("/publish/t", &n.to_string()).0, 200);
    }
    let folder = server.kill();
    let data = folder.path().join("prombus-data");
    let whole = crate::server::run(folder.path(), &["verify"]);
    assert!(text(&whole).contains("intact"), "{whole:?}");
    let segment = std::fs::read_dir(&data)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .max_by_key(|path| path.metadata().map_or(0, |data| data.len()))
        .expect("a segment");
    let mut bytes = std::fs::read(&segment).expect("its bytes");
    // Behind the records of a server that was killed lies room that it has not used.
    let used = bytes.iter().rposition(|&byte| byte != 0);
    let middle = used.expect("records") / 2;
    bytes[middle] ^= 0xff;
    std::fs::write(&segment, bytes).expect("it is written");
    let damaged = crate::server::run(folder.path(), &["verify", "--json"]);
    assert_eq!(damaged.status.code(), Some(1), "{damaged:?}");
    let reply = String::from_utf8_lossy(&damaged.stdout);
    assert!(
        reply.contains(r#""intact":false"#) && reply.contains("t seq"),
        "{reply}"
    );
}

#[test]
fn diff_shows_what_changed_between_two_times() {
    let server = Server::start(&[]);
    for (key, ts, payload) in [
        ("a", "10", "1"),
        ("b", "11", "1"),
        ("a", "20", "2"),
        ("b", "21", "null"),
        ("c", "22", r#""\u0007""#),
    ] {
        let reply = server.command(&["pub", "t", payload, "--key", key, "--ts", ts]);
        assert!(reply.status.success(), "{reply:?}");
    }
    let diff = server.command(&["diff", "t", "--from", "15", "--to", "25"]);
    assert_eq!(text(&diff), "- a 1\n+ a 2\n- b 1\n+ c \"\\u0007\"\n");
    let diff = server.command(&["diff", "t", "--from", "15", "--json"]);
    let changes: Vec<String> = text(&diff)
        .lines()
        .map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
            format!("{} {}", line["change"], line["key"])
        })
        .collect();
    assert_eq!(
        changes,
        [r#""changed" "a""#, r#""deleted" "b""#, r#""added" "c""#]
    );
}

#[test]
fn publishing_may_expect_a_position() {
    let server = Server::start(&[]);
    let first = server.command(&["pub", "t", "1", "--key", "k", "--expect-key-seq", "0"]);
    assert!(text(&first).ends_with("at t/1\n"));
    let late = server.command(&["pub", "t", "2", "--expect-seq", "0", "--json"]);
    let error = String::from_utf8_lossy(&late.stderr);
    assert!(
        !late.status.success() && error.contains("seq_mismatch"),
        "{error}"
    );
    let next = server.command(&["pub", "t", "2", "--expect-seq", "1"]);
    assert!(text(&next).ends_with("at t/2\n"));
}
