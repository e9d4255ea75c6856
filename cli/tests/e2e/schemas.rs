//! The schemas of topics from a shell.

use crate::server::Server;
use serde_json::{Value, json};
use std::process::Output;

fn text(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("text")
}

fn write(server: &Server, name: &str, schema: &Value) -> String {
    let path = server.folder.path().join(name);
    std::fs::write(&path, schema.to_string()).expect("written");
    path.to_str().expect("text").to_owned()
}

fn closed(properties: Value) -> Value {
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

#[test]
fn schemas_are_registered_checked_compared_and_removed() {
    let server = Server::start(&["--store", "memory:"]);
    let v1 = write(
        &server,
        "v1.json",
        &closed(json!({"n": {"type": "integer"}})),
    );
    let v2 = write(
        &server,
        "v2.json",
        &closed(json!({"n": {"type": "number"}})),
    );
    server.post("/publish/orders", r#"{"n":"x"}"#);

    let dry = server.command(&["schema", "register", "orders", &v1, "--dry-run"]);
    assert!(dry.status.success(), "{dry:?}");
    assert!(
        text(&dry).contains("retained events: 1 of 1 do not fit"),
        "{dry:?}"
    );
    let registered = server.command(&["schema", "register", "orders", &v1]);
    assert!(
        text(&registered).contains("orders version 1 was registered"),
        "{registered:?}"
    );
    let refused = server.command(&["pub", "orders", r#"{"n":"x"}"#, "--json"]);
    assert!(!refused.status.success());
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("schema_invalid"),
        "{refused:?}"
    );

    let check = server.command(&["schema", "check", "orders", &v2]);
    assert!(check.status.success(), "{check:?}");
    let check = server.command(&["schema", "check", "orders", &v2, "--compatibility", "full"]);
    assert_eq!(check.status.code(), Some(1), "{check:?}");
    assert!(
        text(&check).contains("type_narrowed /properties/n/type"),
        "{check:?}"
    );
    let registered = server.command(&["schema", "register", "orders", &v2, "--json"]);
    let registered: Value = serde_json::from_str(text(&registered)).expect("JSON");
    assert_eq!(registered["version"], 2);

    let diff = server.command(&["schema", "diff", "orders"]);
    let shown = text(&diff);
    assert!(
        shown.contains("-       \"type\": \"integer\"\n+       \"type\": \"number\""),
        "{shown}"
    );
    assert!(shown.contains("backward compatible: "), "{shown}");
    assert!(shown.contains("not forward compatible"), "{shown}");
    let diff = server.command(&["schema", "diff", "orders", "--file", &v1, "--json"]);
    let diff: Value = serde_json::from_str(text(&diff)).expect("JSON");
    assert_eq!(
        (&diff["backward"][0]["rule"], &diff["forward"]),
        (&json!("type_narrowed"), &json!([]))
    );

    let got = server.command(&["schema", "get", "orders", "--version", "1"]);
    let got: Value = serde_json::from_str(text(&got)).expect("JSON");
    assert_eq!(got, closed(json!({"n": {"type": "integer"}})));
    let listed = server.command(&["schema", "ls"]);
    assert!(text(&listed).contains("orders"), "{listed:?}");
    assert!(
        server
            .command(&["schema", "rm", "orders", "--version", "2", "--yes"])
            .status
            .success()
    );
    assert!(
        server
            .command(&["schema", "rm", "orders", "--yes"])
            .status
            .success()
    );
    assert!(
        !server
            .command(&["schema", "get", "orders"])
            .status
            .success()
    );
}

#[test]
fn events_of_earlier_versions_are_printed_as_ones_of_the_latest() {
    let server = Server::start(&["--store", "memory:"]);
    let name = json!({"type": "string"});
    let v1 = write(&server, "v1.json", &closed(json!({"name": name})));
    let mut v2 = closed(json!({"title": name}));
    v2["x-upcast"] = json!([{"rename": {"from": "/name", "to": "title"}}]);
    let v2 = write(&server, "v2.json", &v2);
    let register = |file: &str| {
        let arguments = ["schema", "register", "t", file, "--compatibility", "none"];
        let registered = server.command(&arguments);
        assert!(registered.status.success(), "{registered:?}");
    };
    register(&v1);
    server.post("/publish/t", r#"{"name":"x"}"#);
    register(&v2);
    let stored = server.command(&["replay", "t", "--json"]);
    assert!(text(&stored).contains(r#"{"name":"x"}"#), "{stored:?}");
    for command in [
        &["replay", "t", "--upcast", "--json"][..],
        &["export", "t", "--upcast"],
        &[
            "sub", "t", "--from", "earliest", "-n", "1", "--upcast", "--json",
        ],
    ] {
        let printed = server.command(command);
        assert!(printed.status.success(), "{printed:?}");
        let record: Value = serde_json::from_str(text(&printed)).expect("a record");
        assert_eq!(record["payload"], json!({"title": "x"}), "{command:?}");
        assert_eq!(record["headers"]["x-upcast-from"], "1");
    }
}
