//! What hurried people type, and what strangers put into events: addresses without a scheme, closed pipes, control
//! characters, variables of other programs.

use crate::server::{Server, prombus, run};
use crate::terminal::Terminal;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Output, Stdio};
use std::sync::Arc;
use tempfile::TempDir;

fn text(output: &Output) -> &str {
    assert!(output.status.success(), "{output:?}");
    std::str::from_utf8(&output.stdout).expect("text")
}

#[test]
fn addresses_are_taken_as_people_write_them() {
    let server = Server::start(&["--store", "memory:"]);
    let port = server.url.rsplit(':').next().expect("a port");
    let folder = server.folder.path();
    for url in [
        format!("localhost:{port}"),
        format!("127.0.0.1:{port}/"),
        format!("ws://localhost:{port}/ws"),
        format!("http://localhost:{port}"),
    ] {
        let listed = run(folder, &["topic", "ls", "--json", "--url", &url]);
        assert!(text(&listed).contains("topics"), "{url}");
        let published = run(
            folder,
            &["bench", "publish", "-n", "1", "--json", "--url", &url],
        );
        assert!(text(&published).contains("published"), "{url}");
    }
    let wrong = run(folder, &["topic", "ls", "--url", "ftp://localhost"]);
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
}

#[test]
fn a_server_listens_on_a_name_and_ignores_what_kubernetes_sets() {
    let folder = Arc::new(TempDir::new().expect("a folder"));
    let mut command = prombus(
        folder.path(),
        &["serve", "--listen", "localhost:0", "--store", "memory:"],
    );
    command
        .env("PROMBUS_PORT", "tcp://10.0.0.1:8090")
        .env("PROMBUS_SERVICE_HOST", "10.0.0.1")
        .env("PROMBUS_PORT_8090_TCP_ADDR", "10.0.0.1");
    let server = Server::ready(command, folder.clone());
    assert_eq!(server.get("/livez").0, 200);
    drop(server);
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("its address").port();
    drop(free);
    let mut command = prombus(folder.path(), &["serve", "--store", "memory:"]);
    command.env("WS_PORT", port.to_string());
    let server = Server::ready(command, folder);
    assert_eq!(server.url, format!("http://127.0.0.1:{port}"));
}

#[test]
fn a_reader_that_goes_away_ends_a_command_quietly() {
    let server = Server::start(&["--store", "memory:"]);
    let fill = format!("\"{}\"\n", "x".repeat(1_000)).repeat(2_000);
    let stored = server.post("/publish/big", "1");
    assert_eq!(stored.0, 200);
    std::fs::write(server.folder.path().join("lines"), fill).expect("a file");
    let lines = std::fs::File::open(server.folder.path().join("lines")).expect("the file");
    let published = prombus(server.folder.path(), &["pub", "big", "--url", &server.url])
        .stdin(lines)
        .output()
        .expect("it runs");
    assert!(published.status.success(), "{published:?}");
    for arguments in [
        &["completions", "bash"][..],
        &["replay", "big", "--url", &server.url],
        &["export", "big", "--url", &server.url],
        &["sub", "big", "--from", "earliest", "--url", &server.url],
        &["topic", "ls", "--url", &server.url],
    ] {
        let mut child = prombus(server.folder.path(), arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut first = String::new();
        let mut stdout = BufReader::with_capacity(64, child.stdout.take().expect("its output"));
        stdout.read_line(&mut first).expect("a line");
        drop(stdout);
        if arguments[0] == "sub" {
            // It notices with the next event.
            assert_eq!(server.post("/publish/big", "2").0, 200);
        }
        let output = child.wait_with_output().expect("its end");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
        assert!(output.stderr.is_empty(), "{arguments:?}: {output:?}");
    }
}

#[test]
fn control_characters_do_not_reach_a_terminal() {
    let server = Server::start(&["--store", "memory:"]);
    let nasty = "\"\u{7f}\u{9b}31mred\u{202e}\"";
    let published = server.command(&["pub", "t", nasty, "--key", "\u{1b}]0;title\u{7}"]);
    assert!(published.status.success(), "{published:?}");
    let is_clean = |shown: &str| {
        let steers =
            |character: char| character.is_control() && character != '\n' && character != '\r';
        !shown
            .chars()
            .any(|character| steers(character) || character == '\u{202e}')
    };
    let replayed = server.command(&["replay", "t"]);
    assert!(is_clean(text(&replayed)), "{replayed:?}");
    assert!(
        text(&replayed).contains("\\u001b]0;title\\u0007"),
        "{replayed:?}"
    );
    let pull = r#"{"topic":"t","group":"g","from":"earliest","max":1,"wait_ms":5000}"#;
    for _ in 0..20 {
        let (_, reply) = server.post("/pull", pull);
        let reply: Value = serde_json::from_str(&reply).expect("JSON");
        let Some(id) = reply["events"][0]["event"]["id"].as_str() else {
            break;
        };
        let nack = serde_json::json!({"topic": "t", "group": "g", "id": id, "delay_ms": 0, "reason": "\u{1b}[2J"});
        assert_eq!(server.post("/nack", &nack.to_string()).0, 200);
        if server.get("/topics").1.contains("dlq.t") {
            break;
        }
    }
    let listed = server.command(&["dlq", "ls", "t"]);
    assert!(is_clean(text(&listed)), "{listed:?}");
    assert!(text(&listed).contains("\\u001b[2J"), "{listed:?}");
}

#[test]
fn errors_are_json_where_that_is_asked_for() {
    let server = Server::start(&["--store", "memory:"]);
    let unknown = server.command(&["replay", "nothing", "--json"]);
    assert_eq!(unknown.status.code(), Some(1));
    let error: Value = serde_json::from_slice(&unknown.stderr).expect("JSON");
    assert_eq!(error["code"], "unknown_topic");
    let local = server.command(&["pub", "t", "not json", "--json"]);
    let error: Value = serde_json::from_slice(&local.stderr).expect("JSON");
    assert_eq!(error["code"], "cli_error");
    server.command(&["pub", "t", "1"]);
    for arguments in [
        &["topic", "purge", "t", "--yes", "--json"][..],
        &["group", "ls", "--json"],
        &["topic", "rm", "t", "--yes", "--json"],
    ] {
        let done = server.command(arguments);
        serde_json::from_str::<Value>(text(&done)).expect("JSON");
    }
}

#[test]
fn a_terminal_gets_colours_and_a_pipe_does_not() {
    let server = Server::start(&["--store", "memory:"]);
    server.command(&["pub", "t", "1"]);
    let piped = server.command(&["topic", "ls"]);
    assert!(!text(&piped).contains('\u{1b}'), "{piped:?}");
    let arguments = ["topic", "ls", "--url", &server.url];
    let terminal = Terminal::start(server.folder.path(), &arguments);
    terminal.wait_for("\u{1b}[1mtopic");
    assert!(terminal.wait().success());
}
