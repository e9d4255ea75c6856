//! What people at a terminal use: contexts, `top`, settling by hand, one event from a file or stdin, completion.

use crate::server::{Server, prombus, run};
use crate::terminal::Terminal;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::Arc;
use tempfile::TempDir;

fn text(output: &Output) -> &str {
    assert!(output.status.success(), "{output:?}");
    std::str::from_utf8(&output.stdout).expect("text")
}

fn json(output: &Output) -> Value {
    serde_json::from_str(text(output)).expect("JSON")
}

/// Runs a command with the folder as its user's home.
fn at_home(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = prombus(folder, arguments);
    command.env("HOME", folder).output().expect("it runs")
}

#[test]
fn contexts_choose_the_server_and_its_token() {
    let server = Server::start(&["--store", "memory:", "--token", "open sesame"]);
    let home = server.folder.path();
    let add = [
        "context",
        "add",
        "here",
        "--url",
        &server.url,
        "--token",
        "open sesame",
    ];
    assert!(text(&at_home(home, &add)).contains("here is the current context"));
    let added = at_home(home, &["context", "add", "nowhere", "--url", "localhost:1"]);
    assert!(added.status.success(), "{added:?}");
    let listed = json(&at_home(home, &["context", "ls", "--json"]));
    assert_eq!(listed["contexts"][0]["context"], "here");
    assert_eq!(listed["contexts"][0]["current"], true);
    assert!(!listed.to_string().contains("sesame"), "{listed}");
    assert!(at_home(home, &["pub", "t", "1"]).status.success());
    let other = at_home(home, &["topic", "ls", "--context", "nowhere"]);
    assert!(
        String::from_utf8_lossy(&other.stderr).contains("localhost:1"),
        "{other:?}"
    );
    // A token of a context is not sent to a server that is named by its URL.
    let refused = at_home(home, &["topic", "ls", "--url", &server.url]);
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("unauthorized"),
        "{refused:?}"
    );
    assert!(
        at_home(home, &["context", "use", "nowhere"])
            .status
            .success()
    );
    assert!(!at_home(home, &["topic", "ls"]).status.success());
    assert!(
        at_home(home, &["context", "rm", "nowhere"])
            .status
            .success()
    );
    let gone = at_home(home, &["context", "use", "nowhere"]);
    assert!(
        String::from_utf8_lossy(&gone.stderr).contains("no context"),
        "{gone:?}"
    );
}

#[test]
fn one_event_comes_from_a_file_or_from_all_of_stdin() {
    let server = Server::start(&["--store", "memory:"]);
    let value = json!({"lines": ["a", "b"], "n": 1});
    let pretty = format!("{value:#}");
    std::fs::write(server.folder.path().join("order.json"), &pretty).expect("a file");
    let published = server.command(&["pub", "t", "--file", "order.json", "--id", "one"]);
    assert_eq!(text(&published), "one at t/1\n");
    let mut child = prombus(
        server.folder.path(),
        &["pub", "t", "-", "--url", &server.url],
    )
    .stdin(Stdio::piped())
    .stdout(Stdio::piped())
    .spawn()
    .expect("it starts");
    let mut stdin = child.stdin.take().expect("its input");
    stdin.write_all(pretty.as_bytes()).expect("it reads");
    drop(stdin);
    assert!(child.wait_with_output().expect("its end").status.success());
    let stored = server.command(&["replay", "t", "--json"]);
    let payloads: Vec<Value> = text(&stored)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["payload"].clone())
        .collect();
    assert_eq!(payloads, [value.clone(), value]);
    let missing = server.command(&["pub", "t", "--file", "none.json"]);
    assert!(String::from_utf8_lossy(&missing.stderr).contains("none.json"));
}

#[test]
fn top_shows_rates_and_lag_once_and_live() {
    let server = Server::start(&["--store", "memory:"]);
    for number in 0..5 {
        assert_eq!(server.post("/publish/jobs", &number.to_string()).0, 200);
    }
    let pull = r#"{"topic":"jobs","group":"workers","from":"earliest","max":1}"#;
    assert_eq!(server.post("/pull", pull).0, 200);
    let once = json(&server.command(&["top", "--once", "--interval", "200ms", "--json"]));
    assert_eq!(once["topics"][0]["topic"], "jobs", "{once}");
    assert_eq!(once["groups"][0]["group"], "workers", "{once}");
    assert_eq!(once["groups"][0]["lag"], 5, "{once}");
    let table = server.command(&["top", "--once", "--interval", "200ms"]);
    assert!(text(&table).contains("workers"), "{table:?}");
    let mut live = Terminal::start(server.folder.path(), &["top", "--url", &server.url]);
    live.wait_for("workers");
    live.press("q");
    assert!(live.wait().success());
}

#[test]
fn keys_settle_events_on_a_terminal() {
    let server = Server::start(&["--store", "memory:"]);
    for id in ["one", "two", "three"] {
        let path = format!("/publish/jobs?id={id}");
        assert_eq!(server.post(&path, "1").0, 200);
    }
    let arguments = [
        "sub",
        "jobs",
        "--group",
        "hand",
        "--from",
        "earliest",
        "--ack",
        "manual",
        "--url",
        &server.url,
    ];
    let mut terminal = Terminal::start(server.folder.path(), &arguments);
    terminal.wait_for("one ");
    terminal.press("a");
    terminal.wait_for("two ");
    terminal.press("en");
    terminal.wait_for("nacked");
    terminal.wait_for("three ");
    terminal.press("q");
    assert!(terminal.wait().success());
    let (_, reply) = server.get("/explain?topic=jobs&group=hand");
    let info: Value = serde_json::from_str(&reply).expect("JSON");
    assert_eq!(info["group"]["counts"]["acked"], 1, "{reply}");
    assert_eq!(info["group"]["counts"]["nacked"], 1, "{reply}");
}

#[test]
fn a_person_is_asked_before_something_is_gone() {
    let server = Server::start(&["--store", "memory:"]);
    server.command(&["pub", "t", "1"]);
    let arguments = ["topic", "rm", "t", "--url", &server.url];
    let mut terminal = Terminal::start(server.folder.path(), &arguments);
    terminal.wait_for("[y/N]");
    terminal.press("n\n");
    assert!(!terminal.wait().success());
    let mut terminal = Terminal::start(server.folder.path(), &arguments);
    terminal.wait_for("[y/N]");
    terminal.press("y\n");
    assert!(terminal.wait().success());
    assert_eq!(server.get("/topics/t").0, 404);
}

#[test]
fn shells_complete_topics_and_groups() {
    let server = Server::start(&["--store", "memory:"]);
    server.command(&["pub", "orders.made", "1"]);
    let pull = r#"{"topic":"orders.made","group":"billing","max":1}"#;
    assert_eq!(server.post("/pull", pull).0, 200);
    let complete = |words: &[&str]| {
        let mut all = vec!["--", "prombus"];
        all.extend(words);
        let mut command = prombus(server.folder.path(), &all);
        command
            .env("COMPLETE", "bash")
            .env("PROMBUS_URL", &server.url)
            .env("_CLAP_COMPLETE_INDEX", words.len().to_string())
            .env("_CLAP_IFS", "\n");
        text(&command.output().expect("it runs")).to_owned()
    };
    assert!(complete(&["replay", "ord"]).contains("orders.made"));
    assert!(complete(&["group", "explain", "orders.made", ""]).contains("billing"));
    assert!(complete(&["topi"]).contains("topic"));
    let script = run(server.folder.path(), &["completions", "bash"]);
    assert!(text(&script).contains("COMPLETE"));
}

#[test]
fn groups_of_all_topics_are_listed() {
    let server = Server::start(&["--store", "memory:"]);
    for topic in ["a", "b"] {
        server.command(&["pub", topic, "1"]);
        let pull = format!(r#"{{"topic":"{topic}","group":"of-{topic}","max":1}}"#);
        assert_eq!(server.post("/pull", &pull).0, 200);
    }
    let listed = server.command(&["group", "ls"]);
    assert!(
        text(&listed).contains("of-a") && text(&listed).contains("of-b"),
        "{listed:?}"
    );
    // The flags that name the server may be before the command too.
    let listed = run(server.folder.path(), &["--url", &server.url, "group", "ls"]);
    assert!(text(&listed).contains("of-a"), "{listed:?}");
    let listed = json(&server.command(&["group", "ls", "--json"]));
    assert_eq!(
        listed["groups"].as_array().map(Vec::len),
        Some(2),
        "{listed}"
    );
}

#[test]
fn sizes_and_dates_are_taken_with_units() {
    let server = Server::start(&["--store", "memory:"]);
    let set = server.command(&["topic", "set", "t", "--max-bytes", "1GiB", "--json"]);
    assert_eq!(json(&set)["config"]["max_bytes"], 1_u64 << 30, "{set:?}");
    server.command(&["pub", "t", "1", "--ts", "2026-11-01"]);
    server.command(&["pub", "t", "2", "--ts", "2026-11-03T12:00"]);
    let since = server.command(&["export", "t", "--since", "2026-11-02"]);
    assert_eq!(text(&since).lines().count(), 1);
}

#[test]
fn a_causal_chain_is_published_and_found() {
    let folder = Arc::new(TempDir::new().expect("a folder"));
    let config =
        "store = \"memory:\"\n[[topics]]\nname = \"orders\"\nindex_headers = [\"correlationId\"]\n";
    fs::write(folder.path().join("prombus.toml"), config).expect("written");
    let server = Server::start_in(folder, &[]);
    let first = json(&server.command(&["pub", "orders", "1", "--json"]));
    let id = first["id"].as_str().expect("an id");
    let second = server.command(&[
        "pub",
        "orders",
        r#"{"n": 2}"#,
        "--header",
        "correlationId: abc",
        "-H",
        "X-Team: blue",
        "--caused-by",
        id,
        "--key",
        "k",
    ]);
    assert!(second.status.success(), "{second:?}");
    for query in ["header=correlationId:abc", &format!("caused_by={id}")] {
        let found = server.get(&format!("/find?topic=orders&{query}"));
        let found: Value = serde_json::from_str(&found.1).expect("JSON");
        let event = &found["events"][0];
        assert_eq!(
            (&event["seq"], &event["key"]),
            (&2.into(), &"k".into()),
            "{found}"
        );
        assert_eq!(event["headers"]["x-team"], "blue", "{found}");
    }
    let lines = server.command(&["pub", "orders", "--caused-by", id]);
    assert!(!lines.status.success());
}
