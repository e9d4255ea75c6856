//! Starting, refusing to start, stopping and coming back.

use crate::server::{Server, prombus, run};
use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;
use tempfile::TempDir;

fn refused(arguments: &[&str], files: &[(&str, &str)]) -> String {
    let folder = TempDir::new().expect("a folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("it is written");
    }
    let output = run(folder.path(), arguments);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn sigterm_drains_and_exits_with_zero() {
    let server = Server::start(&[]);
    assert_eq!(server.get("/readyz").0, 200);
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn what_was_answered_is_there_after_a_crash_and_after_a_stop() {
    let server = Server::start(&[]);
    assert_eq!(server.post("/publish/t", r#"{"n":1}"#).0, 200);
    let server = Server::start_in(server.kill(), &[]);
    assert_eq!(server.post("/publish/t", r#"{"n":2}"#).0, 200);
    let folder = server.folder.clone();
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0));
    let server = Server::start_in(folder, &[]);
    let (status, page) = server.get("/replay?topic=t&from=earliest");
    assert_eq!(status, 200);
    assert!(
        page.contains(r#""payload":{"n":1}"#) && page.contains(r#""payload":{"n":2}"#),
        "{page}"
    );
}

#[test]
fn a_second_server_on_the_same_folder_is_refused() {
    let server = Server::start(&[]);
    let output = run(server.folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    let reply = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{reply}");
    assert!(reply.contains("file:./prombus-data"), "{reply}");
    assert_eq!(server.post("/publish/t", "1").0, 200, "the first goes on");
}

#[test]
fn a_port_in_use_is_said_with_advice() {
    let server = Server::start(&[]);
    let reply = refused(&["serve", "--listen", server.address()], &[]);
    assert!(
        reply.contains(server.address()) && reply.contains("--listen"),
        "{reply}"
    );
}

#[test]
fn the_world_is_not_let_in_without_auth() {
    let reply = refused(&["serve", "--listen", "0.0.0.0:0"], &[]);
    assert!(reply.contains("--token"), "{reply}");
    let folder = Arc::new(TempDir::new().expect("a folder"));
    let arguments = ["serve", "--listen", "0.0.0.0:0", "--token", "secret"];
    let server = Server::ready(prombus(folder.path(), &arguments), folder);
    drop(server);
}

#[test]
fn an_unknown_key_is_named() {
    let file = ("prombus.toml", "stroe = \"memory:\"\n");
    let reply = refused(&["serve"], &[file]);
    assert!(
        reply.contains("stroe") && reply.contains("prombus.toml"),
        "{reply}"
    );
}

#[test]
fn an_unknown_store_is_refused_with_what_there_is() {
    let reply = refused(&["serve", "--store", "redis://x"], &[]);
    assert!(
        reply.contains("memory:") && reply.contains("file:"),
        "{reply}"
    );
}

#[test]
fn a_second_signal_does_not_wait() {
    let server = Server::start(&[]);
    // A request that never ends keeps the first signal waiting.
    let mut half = std::net::TcpStream::connect(server.address()).expect("a connection");
    std::io::Write::write_all(
        &mut half,
        b"POST /publish/t HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n1",
    )
    .expect("it is sent");
    assert_eq!(server.get("/livez").0, 200);
    server.signal("TERM");
    server.signal("INT");
    let status = server.wait();
    assert!(
        status.code() == Some(1) || status.code() == Some(0),
        "{status:?} {:?}",
        status.signal()
    );
}
