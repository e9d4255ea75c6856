//! Topics and schemas as files: `lint`, `apply` and `codegen`.

use crate::server::{Server, run};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output};

const ORDERS: &str =
    "owner = \"shop\"\nretention = \"30d\"\nschema_file = \"orders.schema.json\"\n";

fn text(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("text")
}

fn error(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("text")
}

fn reply(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Writes `topics/<name>` into a folder.
fn write(folder: &Path, name: &str, content: &str) {
    let topics = folder.join("topics");
    std::fs::create_dir_all(&topics).expect("a folder");
    std::fs::write(topics.join(name), content).expect("written");
}

fn schema(kind: &str) -> String {
    let n = json!({"type": kind});
    json!({"type": "object", "properties": {"n": n}, "additionalProperties": false}).to_string()
}

fn lint(folder: &Path, arguments: &[&str]) -> (Option<i32>, Vec<(String, String)>) {
    let arguments = [&["lint", "topics", "--json"], arguments].concat();
    let output = run(folder, &arguments);
    let found: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {output:?}"));
    let findings = found["findings"].as_array().expect("a list");
    let findings = findings.iter().map(|finding| {
        let text = |name: &str| finding[name].as_str().expect("text").to_owned();
        (text("path").replace('\\', "/"), text("rule"))
    });
    (output.status.code(), findings.collect())
}

fn found(path: &str, rule: &str) -> (String, String) {
    (format!("topics/{path}"), rule.to_owned())
}

#[test]
fn lint_names_the_file_and_the_rule() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write(folder, "orders.toml", ORDERS);
    write(folder, "orders.schema.json", &schema("integer"));
    assert_eq!(lint(folder, &[]), (Some(0), vec![]));
    let shown = run(folder, &["lint", "topics"]);
    assert!(
        error(&shown).contains("1 topic files, 0 findings"),
        "{shown:?}"
    );

    write(folder, "a b.toml", "owner = \"x\"\ncompaction = true\n");
    write(
        folder,
        "again.toml",
        "topic = \"orders\"\nowner = \" \"\nmax_events = 5\n",
    );
    write(folder, "broken.toml", "retention = \n");
    write(
        folder,
        "mode.toml",
        "owner = \"x\"\nmax_bytes = 1000\nschema = \"sideways\"\n",
    );
    write(
        folder,
        "odd.toml",
        "owner = \"x\"\nretention = \"1d\"\nschema_file = \"odd.json\"\n",
    );
    write(folder, "odd.json", r#"{"type":"nothing"}"#);
    write(
        folder,
        "plain.toml",
        "owner = \"x\"\nschema_file = \"gone.json\"\n",
    );
    write(folder, "typo.toml", "ownr = \"x\"\n");
    let (code, findings) = lint(folder, &[]);
    assert_eq!(code, Some(1));
    let expected = [
        found("a b.toml", "topic-name"),
        found("again.toml", "owner-missing"),
        found("broken.toml", "bad-file"),
        found("mode.toml", "bad-setting"),
        found("odd.json", "schema-invalid"),
        found("orders.toml", "duplicate-topic"),
        found("plain.toml", "unbounded"),
        found("plain.toml", "schema-missing"),
        found("typo.toml", "bad-file"),
    ];
    assert_eq!(findings, expected);
    let shown = run(folder, &["lint", "topics"]);
    assert!(
        text(&shown).contains("topics/plain.toml: unbounded: "),
        "{shown:?}"
    );
    let missing = run(folder, &["lint", "elsewhere"]);
    assert!(
        error(&missing).contains("cannot read elsewhere"),
        "{missing:?}"
    );
    assert_eq!(missing.status.code(), Some(1));
}

#[test]
fn lint_compares_with_a_commit() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(folder).args(arguments);
        let output = command.output().expect("git");
        assert!(output.status.success(), "{output:?}");
    };
    write(folder, "orders.toml", ORDERS);
    write(folder, "orders.schema.json", &schema("number"));
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    let name = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
    git(&[&name[..], &["commit", "--quiet", "-m", "first"]].concat());
    assert_eq!(lint(folder, &["--git", "HEAD"]), (Some(0), vec![]));
    write(folder, "orders.schema.json", &schema("integer"));
    let broken = vec![found("orders.schema.json", "schema-breaking")];
    assert_eq!(lint(folder, &["--git", "HEAD"]), (Some(1), broken));
    assert_eq!(lint(folder, &[]), (Some(0), vec![]), "only on request");
    let forward = format!("{ORDERS}schema = \"forward\"\n");
    write(folder, "orders.toml", &forward);
    assert_eq!(lint(folder, &["--git", "HEAD"]), (Some(0), vec![]));
    let unknown = run(folder, &["lint", "topics", "--git", "elsewhere"]);
    assert!(
        error(&unknown).contains("no commit \"elsewhere\""),
        "{unknown:?}"
    );
}

#[test]
fn apply_makes_a_plan_and_then_the_server_what_the_files_say() {
    let server = Server::start(&["--store", "memory:"]);
    let folder = server.folder.path();
    server.post("/publish/other", "1");
    server.post("/publish/orders", r#"{"n":1}"#);
    write(folder, "orders.toml", ORDERS);
    write(folder, "orders.schema.json", &schema("integer"));
    write(
        folder,
        "order.state.toml",
        "owner = \"shop\"\ncompaction = true\n",
    );
    let topics = folder.join("topics");
    let topics = topics.to_str().expect("text");

    let plan = server.command(&["apply", "-f", topics, "--dry-run"]);
    assert!(plan.status.success(), "{plan:?}");
    let lines: Vec<&str> = text(&plan).lines().collect();
    assert_eq!(
        lines,
        [
            "create topic order.state (compaction: true, durability: \"fsync\")",
            "change topic orders (retention: \"30d\")",
            "register schema orders (the first, backward)",
        ]
    );
    assert!(
        !server.get("/topics").1.contains("order.state"),
        "a dry run"
    );
    let unasked = server.command(&["apply", "-f", topics]);
    assert!(error(&unasked).contains("pass --yes"), "{unasked:?}");

    let applied = reply(&server.command(&["apply", "-f", topics, "--yes", "--json"]));
    assert_eq!(applied["applied"], true);
    assert_eq!(applied["steps"][1]["action"], "change topic");
    let listed: Value = serde_json::from_str(&server.get("/topics/orders").1).expect("JSON");
    assert_eq!(listed["config"]["retention"], "30d");
    assert_eq!(server.post("/publish/orders", r#"{"n":"x"}"#).0, 400);
    assert!(
        server.get("/topics").1.contains("\"other\""),
        "nothing is removed"
    );

    let again = reply(&server.command(&["apply", "-f", topics, "--yes", "--json"]));
    assert_eq!(again, json!({"steps": [], "applied": false}));
    let lint = server.command(&["lint", topics, "--server"]);
    assert!(lint.status.success(), "{lint:?}");
}

#[test]
fn apply_changes_nothing_where_a_schema_would_be_refused() {
    let server = Server::start(&["--store", "memory:"]);
    let folder = server.folder.path();
    write(folder, "orders.toml", ORDERS);
    write(folder, "orders.schema.json", &schema("number"));
    let topics = folder.join("topics");
    let topics = topics.to_str().expect("text");
    assert!(
        server
            .command(&["apply", "-f", topics, "--yes"])
            .status
            .success()
    );

    write(folder, "orders.schema.json", &schema("integer"));
    write(folder, "another.toml", "owner = \"x\"\n");
    let refused = server.command(&["apply", "-f", topics, "--yes"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        error(&refused).contains("the schema of orders would be refused"),
        "{refused:?}"
    );
    assert!(!server.get("/topics").1.contains("another"));
    let lint = server.command(&["lint", topics, "--server", "--json"]);
    assert!(text(&lint).contains("schema-incompatible"), "{lint:?}");

    write(folder, "orders.toml", "topic = \"another\"\n");
    let twice = server.command(&["apply", "-f", topics, "--yes"]);
    assert!(error(&twice).contains("declared twice"), "{twice:?}");
}

#[test]
fn codegen_writes_types_of_a_server_or_of_files() {
    let server = Server::start(&["--store", "memory:"]);
    let folder = server.folder.path();
    write(folder, "orders.toml", ORDERS);
    write(folder, "orders.schema.json", &schema("integer"));
    write(
        folder,
        "flags.toml",
        "owner = \"x\"\nschema_file = \"flags.schema.json\"\n",
    );
    write(folder, "flags.schema.json", r#"{"type":"boolean"}"#);
    write(folder, "plain.toml", "owner = \"x\"\n");
    let topics = folder.join("topics");
    let topics = topics.to_str().expect("text");
    let of_files = server.command(&["codegen", "--lang", "ts", "--from", topics]);
    assert!(of_files.status.success(), "{of_files:?}");
    assert!(
        text(&of_files).contains("  flags: Flags;\n  orders: Orders;\n"),
        "{of_files:?}"
    );
    assert!(
        server
            .command(&["apply", "-f", topics, "--yes"])
            .status
            .success()
    );
    let of_server = server.command(&["codegen", "--lang", "ts"]);
    assert_eq!(text(&of_server), text(&of_files));

    let file = folder.join("topics.rs");
    let out = file.to_str().expect("text");
    let arguments = [
        "codegen", "--lang", "rust", "--topic", "orders", "--out", out,
    ];
    let written = server.command(&arguments);
    assert!(error(&written).contains("types of 1 topics"), "{written:?}");
    let rust = std::fs::read_to_string(&file).expect("a file");
    assert!(
        rust.contains("pub struct Orders {") && !rust.contains("Flags"),
        "{rust}"
    );
    let unknown = server.command(&["codegen", "--lang", "cobol"]);
    assert!(
        error(&unknown).contains("expected ts or rust"),
        "{unknown:?}"
    );
    assert_eq!(unknown.status.code(), Some(2));
}
