//! The shell commands of the README and of the protocol page, run as they stand, so that they cannot rot.

use crate::server::Server;
use std::process::{Command, Output};

const ADDRESS: &str = "http://127.0.0.1:8090";
/// What follows a topic does not end by itself.
const FOLLOW_SECONDS: &str = "2";

/// The commands that begin with `curl` in the shell blocks of a page.
fn curls(markdown: &str) -> Vec<&str> {
    let mut is_shell = false;
    let mut found = Vec::new();
    for line in markdown.lines() {
        match line.strip_prefix("```") {
            Some(language) => is_shell = language == "sh",
            None if is_shell && line.starts_with("curl ") => found.push(line),
            None => {}
        }
    }
    found
}

fn run(server: &Server, command: &str) -> Output {
    let here = command.replace(ADDRESS, &server.url);
    assert_ne!(here, command, "it goes to the server's usual address");
    let here = match here.strip_prefix("curl -N ") {
        Some(rest) => format!("curl -N --max-time {FOLLOW_SECONDS} {rest}"),
        None => here,
    };
    let shown = here.replacen(
        "curl ",
        "curl --silent --show-error --write-out '%{http_code}' ",
        1,
    );
    let output = Command::new("sh").args(["-c", &shown]).output();
    output.expect("a shell")
}

fn walk(markdown: &str) -> Vec<String> {
    let server = Server::start(&[]);
    let commands = curls(markdown);
    commands
        .iter()
        .map(|command| {
            let output = run(&server, command);
            let reply = String::from_utf8(output.stdout).expect("text");
            assert!(reply.ends_with("200"), "{command}: {reply}");
            reply
        })
        .collect()
}

#[test]
fn the_commands_of_the_readme_work_one_after_the_other() {
    let reply = walk(include_str!("../../../README.md"));
    assert!(reply[0].contains(r#""seq":1"#), "published: {}", reply[0]);
    let events = reply
        .iter()
        .filter(|reply| reply.contains(r#"{"text":"hi"}"#));
    assert!(
        events.count() >= 3,
        "replayed, followed and pulled: {reply:#?}"
    );
}

#[test]
fn the_commands_of_the_protocol_page_work_one_after_the_other() {
    let reply = walk(include_str!("../../../docs/protocol.md"));
    assert!(reply.len() >= 3);
}

#[test]
fn what_the_server_suggests_works() {
    let server = Server::start(&["--store", "memory:"]);
    let publish = format!("curl '{ADDRESS}/publish/hello' -d '{{\"text\":\"hi\"}}'");
    let reply = run(&server, &publish);
    assert!(
        String::from_utf8_lossy(&reply.stdout).ends_with("200"),
        "{reply:?}"
    );
}
