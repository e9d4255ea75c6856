//! Backups of a log that a server is writing to: every event that was acknowledged before is in them, groups too, and a
//! second one copies only what changed.

use crate::damage::stopped;
use crate::server::{Server, run};
use serde_json::Value;
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Publishes until it is stopped; the number of acknowledged events is kept up to date.
fn publish_in_background(
    server: &Arc<Server>,
    acked: &Arc<AtomicU64>,
    stop: &Arc<AtomicBool>,
) -> std::thread::JoinHandle<()> {
    let (server, acked, stop) = (server.clone(), acked.clone(), stop.clone());
    std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            let (status, reply) = server.post("/publish/live", &format!("\"{}\"", "x".repeat(500)));
            assert_eq!(status, 200, "{reply}");
            let reply: Value = serde_json::from_str(&reply).expect("JSON");
            acked.store(reply["seq"].as_u64().expect("a seq"), Ordering::Release);
        }
    })
}

#[test]
fn a_backup_of_a_running_server_has_everything_acknowledged_before() {
    let (folder, _) = stopped();
    let server = Server::start_in(folder.clone(), &[]);
    let pull = r#"{"topic":"t","group":"readers","from":"earliest","max":3}"#;
    let (_, reply) = server.post("/pull", pull);
    let pulled: Value = serde_json::from_str(&reply).expect("JSON");
    for event in pulled["events"].as_array().expect("events") {
        let ack = serde_json::json!({"topic": "t", "group": "readers", "id": event["event"]["id"]});
        assert_eq!(server.post("/ack", &ack.to_string()).0, 200);
    }
    // Acknowledgements are written a little later, and at the latest when the server stops.
    server.signal("TERM");
    assert!(server.wait().success());
    let server = Arc::new(Server::start_in(folder.clone(), &[]));
    let (acked, stop) = (
        Arc::new(AtomicU64::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let publisher = publish_in_background(&server, &acked, &stop);
    let mut before = Vec::new();
    let mut reports = Vec::new();
    for _ in 0..3 {
        before.push(acked.load(Ordering::Acquire));
        reports.push(json(&run(folder.path(), &["backup", "copy", "--json"])));
    }
    stop.store(true, Ordering::Relaxed);
    publisher.join().expect("the publisher");
    assert_eq!(reports[0]["reused_files"], 0, "{reports:?}");
    assert!(reports[1]["reused_files"].as_u64() > Some(0), "{reports:?}");
    let verified = run(folder.path(), &["verify", "copy"]);
    assert!(verified.status.success(), "{verified:?}");

    let restored = json(&run(
        folder.path(),
        &["restore", "copy", "--to", "again", "--json"],
    ));
    assert!(restored["events"].as_u64() > Some(200), "{restored}");
    let again = Server::start_in(folder.clone(), &["--store", "file:./again"]);
    let (_, topic) = again.get("/topics/live");
    let topic: Value = serde_json::from_str(&topic).expect("JSON");
    assert!(
        topic["tail_seq"].as_u64() >= before.last().copied(),
        "{topic} {before:?}"
    );
    assert_eq!(topic["events"], topic["tail_seq"], "no gaps: {topic}");
    let (_, group) = again.get("/explain?topic=t&group=readers");
    let group: Value = serde_json::from_str(&group).expect("JSON");
    assert_eq!(group["group"]["cursor"], 3, "{group}");
    assert_eq!(again.post("/publish/live", "1").0, 200);
    assert_eq!(server.post("/publish/live", "1").0, 200);
}

#[test]
fn nothing_else_is_overwritten() {
    let (folder, _) = stopped();
    let text = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let made = run(folder.path(), &["backup", "copy"]);
    assert!(made.status.success(), "{made:?}");
    std::fs::create_dir(folder.path().join("letters")).expect("a folder");
    std::fs::write(folder.path().join("letters/a.txt"), "dear").expect("a file");
    let other = run(folder.path(), &["backup", "letters"]);
    assert!(text(&other).contains("not a backup"), "{other:?}");
    let (elsewhere, _) = stopped();
    let path = elsewhere.path().join("prombus-data");
    let from = path.to_str().expect("a path");
    let foreign = run(folder.path(), &["backup", "copy", "--from", from]);
    assert!(text(&foreign).contains("another log"), "{foreign:?}");
    let no_log = run(folder.path(), &["backup", "x", "--from", "letters"]);
    assert!(text(&no_log).contains("holds no log"), "{no_log:?}");
    let full = run(folder.path(), &["restore", "copy"]);
    assert!(text(&full).contains("--replace"), "{full:?}");
    let server = Server::start_in(folder.clone(), &[]);
    let in_use = run(folder.path(), &["restore", "copy", "--replace"]);
    assert!(text(&in_use).contains("in use"), "{in_use:?}");
    drop(server);
    let replaced = run(folder.path(), &["restore", "copy", "--replace"]);
    assert!(replaced.status.success(), "{replaced:?}");
    assert!(folder.path().join("prombus-data.old").is_dir());
}

#[test]
fn a_damaged_backup_is_not_restored() {
    let (folder, data) = stopped();
    assert!(run(folder.path(), &["backup", "copy"]).status.success());
    let segment = folder
        .path()
        .join("copy")
        .join(crate::damage::names(&data, ".seg").remove(0));
    let mut bytes = std::fs::read(&segment).expect("a segment");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    std::fs::write(&segment, bytes).expect("it is written");
    let restored = run(folder.path(), &["restore", "copy", "--to", "again"]);
    assert!(!restored.status.success(), "{restored:?}");
    assert!(!folder.path().join("again").exists());
}
