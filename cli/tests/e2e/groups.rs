//! Following topics and looking after groups and dead letters from a shell.

use crate::server::{PATIENCE, Server, prombus, run};
use prombus_client::{Client, ClientOptions, StartAt, SubscribeOptions};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Output, Stdio};

fn text(output: &Output) -> &str {
    assert!(output.status.success(), "{output:?}");
    std::str::from_utf8(&output.stdout).expect("text")
}

/// A server with three events in `jobs`.
fn with_jobs() -> Server {
    let server = Server::start(&["--store", "memory:"]);
    for number in 1..=3 {
        let (status, reply) = server.post("/publish/jobs", &format!(r#"{{"n":{number}}}"#));
        assert_eq!(status, 200, "{reply}");
    }
    server
}

#[test]
fn a_group_follows_and_goes_on_where_it_stopped() {
    let server = with_jobs();
    let all = ["sub", "jobs", "--group", "workers", "--from", "earliest"];
    let first = server.command(&[&all[..], &["-n", "2", "--json"]].concat());
    let seqs: Vec<Value> = text(&first)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["seq"].clone())
        .collect();
    assert_eq!(seqs, [1, 2]);
    let second = server.command(&[&all[..], &["-n", "1"]].concat());
    assert!(text(&second).contains(r#"jobs/3 {"n":3}"#), "{second:?}");
    let listed = server.command(&["group", "ls", "jobs"]);
    assert!(text(&listed).contains("workers"), "{listed:?}");
    let explained = server.command(&["group", "explain", "jobs", "workers"]);
    assert!(text(&explained).contains("workers"), "{explained:?}");
}

#[test]
fn a_person_settles_by_hand() {
    let server = with_jobs();
    let arguments = [
        "sub",
        "jobs",
        "--group",
        "hand",
        "--from",
        "earliest",
        "--ack",
        "manual",
        "-n",
        "2",
        "--json",
        "--url",
        &server.url,
    ];
    let mut child = prombus(server.folder.path(), &arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("its input");
    let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    for (line, order) in lines.zip(["", "nack "]) {
        let event: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let id = event["id"].as_str().expect("an id");
        writeln!(stdin, "{order}{id} not today").expect("it listens");
    }
    drop(stdin);
    assert!(child.wait().expect("its end").success());
    let (_, reply) = server.get("/explain?topic=jobs&group=hand");
    let info: Value = serde_json::from_str(&reply).expect("JSON");
    assert_eq!(info["group"]["counts"]["acked"], 1, "{reply}");
    assert_eq!(info["group"]["counts"]["nacked"], 1, "{reply}");
    assert_eq!(info["group"]["cursor"], 1, "{reply}");
}

#[test]
fn a_cursor_is_moved_after_a_look_at_what_that_does() {
    let server = with_jobs();
    server.command(&["sub", "jobs", "-g", "g", "--from", "earliest", "-n", "3"]);
    let seek = ["group", "seek", "jobs", "g", "--from", "earliest"];
    let dry = server.command(&[&seek[..], &["--dry-run"]].concat());
    assert!(
        text(&dry).contains("would be at 0; 3 events redelivered"),
        "{dry:?}"
    );
    let asked = server.command(&seek);
    assert!(!asked.status.success(), "without --yes");
    let moved = server.command(&[&seek[..], &["--yes", "--json"]].concat());
    assert!(text(&moved).contains(r#""redelivered":3"#), "{moved:?}");
    let again = server.command(&["sub", "jobs", "-g", "g", "-n", "3", "--json"]);
    assert_eq!(text(&again).lines().count(), 3);
    assert!(
        server
            .command(&["group", "rm", "jobs", "g", "--yes"])
            .status
            .success()
    );
    let gone = server.command(&["group", "info", "jobs", "g"]);
    assert!(
        String::from_utf8_lossy(&gone.stderr).contains("unknown_group"),
        "{gone:?}"
    );
}

#[test]
fn a_seek_is_undone_and_a_group_paused() {
    let server = with_jobs();
    server.command(&["sub", "jobs", "-g", "g", "--from", "earliest", "-n", "2"]);
    server.command(&["group", "seek", "jobs", "g", "--from", "latest", "--yes"]);
    let undone = server.command(&["group", "undo", "jobs", "g"]);
    assert!(
        text(&undone).contains("the cursor is at 2; 1 events redelivered, 0 skipped"),
        "{undone:?}"
    );
    let again = server.command(&["group", "undo", "jobs", "g"]);
    assert!(!again.status.success());
    let error = String::from_utf8_lossy(&again.stderr);
    assert!(error.contains("no seek to undo"), "{error}");
    let paused = server.command(&["group", "pause", "jobs", "g"]);
    assert!(text(&paused).contains("paused since 2"), "{paused:?}");
    let explained = server.command(&["group", "explain", "jobs", "g"]);
    assert!(
        text(&explained).contains("prombus group resume jobs g"),
        "{explained:?}"
    );
    let resumed = server.command(&["group", "resume", "jobs", "g", "--json"]);
    assert!(text(&resumed).contains(r#""paused":false"#), "{resumed:?}");
    let third = server.command(&["sub", "jobs", "-g", "g", "-n", "1"]);
    assert!(text(&third).contains("jobs/3"), "{third:?}");
}

#[test]
fn dead_letters_are_listed_shown_and_sent_again() {
    let server = with_jobs();
    // The first event fails as often as it may.
    let pull =
        json!({"topic": "jobs", "group": "g", "from": "earliest", "max": 1, "wait_ms": 5_000});
    for _ in 0..5 {
        let (status, reply) = server.post("/pull", &pull.to_string());
        assert_eq!(status, 200, "{reply}");
        let pulled: Value = serde_json::from_str(&reply).expect("JSON");
        let event = &pulled["events"][0]["event"];
        let (id, is_first) = (&event["id"], event["seq"] == 1);
        let settle =
            json!({"topic": "jobs", "group": "g", "id": id, "delay_ms": 0, "reason": "no"});
        let how = if is_first { "/nack" } else { "/ack" };
        assert_eq!(server.post(how, &settle.to_string()).0, 200);
    }
    drain(&server, &pull.to_string());
    let letters = server.command(&["dlq", "ls", "jobs", "--json"]);
    let letter: Value = serde_json::from_str(text(&letters).trim()).expect("one letter");
    let id = letter["id"].as_str().expect("an id");
    let table = server.command(&["dlq", "ls", "jobs"]);
    assert!(
        text(&table).contains(id) && text(&table).contains("no"),
        "{table:?}"
    );
    let shown = server.command(&["dlq", "show", "jobs", id]);
    assert!(text(&shown).contains("history"), "{shown:?}");
    let dry = server.command(&["dlq", "redrive", "jobs", "--all", "--dry-run"]);
    assert_eq!(text(&dry), "1 dead letters would be redriven\n");
    let sent = server.command(&["dlq", "redrive", "jobs", id]);
    assert_eq!(text(&sent), "1 of 1 redriven\n");
    let replayed = server.command(&["replay", "jobs", "--seq", "4", "--json"]);
    assert!(
        text(&replayed).contains(id),
        "its cause is named: {replayed:?}"
    );
}

/// Goes on until the first event has failed for the last time, whatever order the others came in.
fn drain(server: &Server, pull: &str) {
    let end = std::time::Duration::from_millis(100);
    for _ in 0..PATIENCE.as_millis() / end.as_millis() {
        if server.get("/topics").1.contains("dlq.jobs") {
            return;
        }
        let (_, reply) = server.post("/pull", pull);
        let pulled: Value = serde_json::from_str(&reply).expect("JSON");
        let event = &pulled["events"][0]["event"];
        if event.is_null() {
            continue;
        }
        let mut settle = json!({"topic": "jobs", "group": "g", "id": event["id"]});
        let how = if event["seq"] == 1 { "/nack" } else { "/ack" };
        if how == "/nack" {
            settle["delay_ms"] = json!(0);
            settle["reason"] = json!("no");
        }
        assert_eq!(server.post(how, &settle.to_string()).0, 200);
    }
    panic!("the event never died");
}

#[test]
fn tokens_for_development_open_what_they_say() {
    let config =
        "store = \"memory:\"\n[auth]\njwt_secret = \"a secret for this test, long enough\"\n";
    let folder = std::sync::Arc::new(tempfile::TempDir::new().expect("a folder"));
    std::fs::write(folder.path().join("prombus.toml"), config).expect("it is written");
    let server = Server::start_in(folder, &[]);
    let mint = |scope: &str| {
        let secret = [
            "token",
            "--secret",
            "a secret for this test, long enough",
            "--scope",
            scope,
        ];
        text(&run(server.folder.path(), &secret)).trim().to_owned()
    };
    let publisher = mint("publish:jobs");
    let reply = server.command(&["pub", "jobs", "1", "--token", &publisher]);
    assert!(reply.status.success(), "{reply:?}");
    let refused = server.command(&["replay", "jobs", "--token", &publisher]);
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("forbidden"),
        "{refused:?}"
    );
    let reader = mint("subscribe:jobs");
    let followed = server.command(&[
        "sub", "jobs", "--from", "earliest", "-n", "1", "--token", &reader,
    ]);
    assert!(text(&followed).contains("jobs/1 1"), "{followed:?}");
}

#[test]
fn the_quick_benches_print_what_they_promise() {
    let server = Server::start(&["--store", "memory:"]);
    for side in [&["--store", "memory:"], &["--url", server.url.as_str()]] {
        let publish = [&["bench", "publish", "-n", "500", "--json"][..], side].concat();
        let reply: Value =
            serde_json::from_str(text(&run(server.folder.path(), &publish))).expect("JSON");
        assert_eq!(reply["published"], 500, "{reply}");
        assert!(
            reply["ms"].is_number() && reply["mps"].is_number(),
            "{reply}"
        );
        let subscribe = [&["bench", "subscribe", "-n", "200", "--json"][..], side].concat();
        let reply: Value =
            serde_json::from_str(text(&run(server.folder.path(), &subscribe))).expect("JSON");
        assert_eq!(reply["n"], 200, "{reply}");
        for name in ["p50", "p90", "p99", "max", "avg"] {
            assert!(reply[name].is_number(), "{name} in {reply}");
        }
    }
    let completions = run(server.folder.path(), &["completions", "bash"]);
    assert!(text(&completions).contains("complete -o nospace"));
}

#[tokio::test]
async fn a_limit_that_holds_deliveries_back_is_named() {
    let config =
        "store = \"memory:\"\n[limits]\nconn_delivery = { capacity = 2, refill_per_sec = 1 }\n";
    let folder = std::sync::Arc::new(tempfile::TempDir::new().expect("a folder"));
    std::fs::write(folder.path().join("prombus.toml"), config).expect("it is written");
    let server = Server::start_in(folder, &[]);
    for number in 0..20 {
        assert_eq!(server.post("/publish/jobs", &number.to_string()).0, 200);
    }
    let client = Client::connect(&server.url, ClientOptions::default()).await;
    let client = client.expect("a client");
    let options = SubscribeOptions {
        from: StartAt::Earliest,
        ..SubscribeOptions::default()
    };
    let slow = client.subscribe("jobs", "slow", options).await;
    let slow = slow.expect("a subscription");
    for _ in 0..3 {
        slow.next().await.expect("an event").ack();
    }
    let (_, reply) = server.get("/explain?topic=jobs&group=slow");
    let explained: Value = serde_json::from_str(&reply).expect("JSON");
    assert_eq!(explained["reason"], "rate_limited", "{reply}");
}

#[test]
fn a_shadow_group_is_made_and_fed_again() {
    let server = Server::start(&["--store", "memory:"]);
    for number in 1..=5 {
        server.post("/publish/t", &number.to_string());
    }
    let first = server.command(&["sub", "t", "--group", "g", "--from", "earliest", "-n", "5"]);
    assert!(first.status.success(), "{first:?}");
    let shadow = [
        "group", "shadow", "t", "g", "--seq", "2", "--to", "4", "--pace", "max", "--ttl", "5m",
    ];
    let made = server.command(&shadow);
    assert!(made.status.success(), "{made:?}");
    let name = String::from_utf8(made.stdout).expect("text");
    let name = name.trim();
    assert!(!name.is_empty() && name != "g", "{name}");
    let told = String::from_utf8_lossy(&made.stderr).into_owned();
    assert!(
        told.contains("fed from 2 to 4 of t") && told.contains("5m"),
        "{told}"
    );
    let fed = server.command(&["sub", "t", "--group", name, "-n", "3", "--json"]);
    let payloads: Vec<Value> = String::from_utf8_lossy(&fed.stdout)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a record")["payload"].clone())
        .collect();
    assert_eq!(payloads, [2, 3, 4], "{fed:?}");
    let made = server.command(&["group", "shadow", "t", "g", "--from", "earliest", "--json"]);
    let made: Value = serde_json::from_slice(&made.stdout).expect("JSON");
    assert_eq!(
        (&made["original"], &made["from_seq"]),
        (&json!("g"), &json!(1))
    );
    for (wrong, reason) in [
        (
            &["--pace", "slow"][..],
            "expected original, max or a number",
        ),
        (&["--ttl", "soon"], "as 30m"),
    ] {
        let arguments = [&["group", "shadow", "t", "g"][..], wrong].concat();
        let refused = server.command(&arguments);
        assert!(!refused.status.success(), "{refused:?}");
        let told = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(told.contains(reason), "{told}");
    }
}
