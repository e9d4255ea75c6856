//! Two servers on one stream of NATS JetStream: one serves a group, the other one relays to it, and takes over when it is
//! killed, stopped for a while, or ended.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "other processes are timed, and what it took is printed"
)]

use crate::edge::certificates;
use crate::nats_servers::Servers;
use crate::ports::free_ports;
use crate::server::{PATIENCE, Server, prombus};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const EVENTS: usize = 20;

fn start(servers: &Servers, folder: Arc<TempDir>) -> Server {
    let store = format!("nats://{}/orders?copy=copy", servers.hosts());
    Server::start_in(folder, &["--store", &store])
}

fn publish(server: &Server, id: &str) {
    let (status, said) = server.post(&format!("/publish/orders?id={id}"), "1");
    assert_eq!(status, 200, "{said}");
}

/// How long leases are in these tests.
const LEASE: Duration = Duration::from_secs(8);

/// Pulls events of the group without acknowledging them, or says what the server said.
fn pull(server: &Server, max: usize) -> Result<Vec<String>, String> {
    let pull = json!({
        "topic": "orders", "group": "g", "max": max, "from": "earliest", "wait_ms": 500,
        "ackTimeoutMs": LEASE.as_millis() as u64,
    });
    let (status, said) = server.post("/pull", &pull.to_string());
    if status != 200 {
        return Err(said);
    }
    let pulled: Value = serde_json::from_str(&said).expect("JSON");
    let events = pulled["events"].as_array().expect("events").iter();
    let id = |event: &Value| event["event"]["id"].as_str().expect("an id").to_owned();
    Ok(events.map(id).collect())
}

fn ack(server: &Server, id: &str) {
    let ack = json!({"topic": "orders", "group": "g", "id": id}).to_string();
    let (status, said) = server.post("/ack", &ack);
    assert_eq!(status, 200, "{said}");
}

#[test]
fn a_group_has_one_server_and_another_takes_over_when_it_is_killed() {
    let servers = Servers::start(1, "");
    relay_and_take_over(|folder| start(&servers, folder));
}

/// Consumes a group on two servers of which one serves it, and on the other one when that is killed.
pub(crate) fn relay_and_take_over(start: impl Fn(Arc<TempDir>) -> Server) {
    let new_folder = || Arc::new(TempDir::new().expect("a folder"));
    let (one, two) = (start(new_folder()), start(new_folder()));
    for number in 0..EVENTS {
        let server = if number % 2 == 0 { &one } else { &two };
        publish(server, &number.to_string());
    }
    let held = pull(&one, 5).expect("events");
    assert_eq!(held.len(), 5);
    let mut settled: BTreeSet<String> = held[..1].iter().cloned().collect();
    ack(&one, &held[0]);
    // Through the other one, where it is not served; making the link may take longer than one request waits.
    let started = Instant::now();
    let relayed = loop {
        let relayed = pull(&two, 1).expect("an answer");
        if !relayed.is_empty() {
            break relayed;
        }
        assert!(started.elapsed() < PATIENCE, "nothing was relayed");
    };
    ack(&two, &relayed[0]);
    assert!(settled.insert(relayed[0].clone()), "it has one lease");
    let (status, said) = two.get("/explain?topic=orders&group=g");
    assert_eq!(status, 200, "{said}");
    assert!(said.contains(&one.url), "{said}");
    let info = one.command(&["group", "info", "orders", "g"]);
    let info = String::from_utf8_lossy(&info.stdout).into_owned();
    assert!(info.contains("node") && info.contains(&two.url), "{info}");
    let listed = two.command(&["nodes", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    let nodes = listed["nodes"].as_array().expect("nodes").iter();
    let nodes: BTreeSet<(&str, bool, u64)> = nodes
        .map(|node| {
            let url = node["url"].as_str().expect("a URL");
            let is_this = node["is_this"].as_bool().expect("a flag");
            (url, is_this, node["groups"].as_u64().expect("a number"))
        })
        .collect();
    let expected = [(&*one.url, false, 1), (&*two.url, true, 0)];
    assert_eq!(nodes, BTreeSet::from(expected));
    wait_until_written(&two);
    drop(one.kill());
    // What its members held is free, for their connections ended with it.
    let began = Instant::now();
    let mut delivered = BTreeSet::new();
    while delivered.len() < EVENTS - settled.len() {
        assert!(began.elapsed() < PATIENCE, "{} came", delivered.len());
        for id in pull(&two, 100).unwrap_or_default() {
            if delivered.is_empty() {
                println!("the first event came {:?} after the kill", began.elapsed());
            }
            ack(&two, &id);
            assert!(delivered.insert(id.clone()), "{id} came twice");
        }
    }
    assert!(delivered.is_disjoint(&settled), "what was settled stays so");
}

#[test]
fn a_server_that_was_stopped_neither_leases_nor_settles_when_it_goes_on() {
    let servers = Servers::start(1, "");
    let new_folder = || Arc::new(TempDir::new().expect("a folder"));
    let (one, two) = (start(&servers, new_folder()), start(&servers, new_folder()));
    for number in 0..EVENTS {
        publish(&one, &number.to_string());
    }
    let leased = Instant::now();
    let held = pull(&one, 5).expect("events");
    assert_eq!(held.len(), 5);
    one.signal("STOP");
    let stopped = Instant::now();
    publish(&two, "later");
    let mut delivered = BTreeSet::new();
    let mut first = None;
    while delivered.len() < EVENTS + 2 {
        assert!(leased.elapsed() < 2 * PATIENCE, "{} came", delivered.len());
        let Ok(pulled) = pull(&two, 100) else {
            continue;
        };
        if first.is_none() {
            // What comes after the other server was replaced does not wait for its leases.
            first = Some(stopped.elapsed());
            publish(&two, "fresh");
        }
        for id in pulled {
            // Members of the other server may be working on what it leased.
            assert!(
                !held.contains(&id) || leased.elapsed() >= LEASE,
                "{id} has two leases"
            );
            ack(&two, &id);
            assert!(delivered.insert(id.clone()), "{id} came twice");
        }
    }
    println!("the group was taken over {first:?} after the stop");
    one.signal("CONT");
    // It has nothing to say any more: what its members held is settled, and they are relayed from now on.
    publish(&two, "last");
    let came = Instant::now();
    let last = loop {
        assert!(came.elapsed() < PATIENCE, "it is not relayed");
        match pull(&one, 1) {
            Ok(pulled) if !pulled.is_empty() => break pulled,
            _ => {}
        }
    };
    assert_eq!(last, ["last"]);
    ack(&one, "last");
    let (_, said) = one.get("/explain?topic=orders&group=g");
    let explained: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(explained["node"], *two.url, "{said}");
}

#[test]
fn a_server_that_ends_leaves_its_groups_to_the_other_at_once() {
    let servers = Servers::start(1, "");
    let new_folder = || Arc::new(TempDir::new().expect("a folder"));
    let (one, two) = (start(&servers, new_folder()), start(&servers, new_folder()));
    for number in 0..EVENTS {
        publish(&one, &number.to_string());
    }
    let held = pull(&one, 5).expect("events");
    ack(&one, &held[0]);
    one.signal("TERM");
    assert!(one.wait().success());
    let ended = Instant::now();
    let mut delivered = BTreeSet::new();
    while delivered.len() < EVENTS - 1 {
        assert!(ended.elapsed() < PATIENCE, "{} came", delivered.len());
        for id in pull(&two, 100).expect("it serves the group") {
            ack(&two, &id);
            assert!(delivered.insert(id.clone()), "{id} came twice");
        }
    }
    assert!(!delivered.contains(&held[0]), "it was acknowledged");
}

#[test]
fn nodes_that_ask_for_client_certificates_are_linked_by_their_own() {
    let servers = Servers::start(1, "");
    let shared = TempDir::new().expect("a folder");
    certificates(shared.path());
    let store = format!("nats://{}/orders?copy=copy", servers.hosts());
    let config = "[tls]\ncert = \"server.pem\"\nkey = \"server.key\"\nclient_ca = \"ca.pem\"\n\
        [auth.clients]\nclient = [\"publish:**\", \"subscribe:**\", \"admin:**\"]\n";
    let start = || {
        let folder = Arc::new(TempDir::new().expect("a folder"));
        for file in fs::read_dir(shared.path()).expect("files").flatten() {
            fs::copy(file.path(), folder.path().join(file.file_name())).expect("copied");
        }
        fs::write(folder.path().join("prombus.toml"), config).expect("written");
        let port = free_ports(1)[0];
        let (listen, advertise) = (format!(":{port}"), format!("localhost:{port}"));
        let advertise = format!("https://{advertise}");
        let arguments = [
            "serve",
            "--listen",
            &listen,
            "--advertise",
            &advertise,
            "--store",
            &store,
        ];
        let mut command = prombus(folder.path(), &arguments);
        command.env("SSL_CERT_FILE", shared.path().join("ca.pem"));
        (Server::ready(command, folder), advertise)
    };
    let (one, two) = (start(), start());
    let with_identity = |url: &str, command: &[&str]| {
        let options = [
            "--url",
            url,
            "--ca",
            "ca.pem",
            "--client-cert",
            "client.pem",
            "--client-key",
            "client.key",
        ];
        prombus(shared.path(), &[command, &options].concat())
    };
    let published = with_identity(&two.1, &["pub", "orders", "1"]).output();
    assert!(published.expect("it runs").status.success());
    // One node owns the group, the other one knows its member only through a link.
    let mut member = with_identity(
        &one.1,
        &["sub", "orders", "--group", "g", "--from", "earliest"],
    );
    let mut member = member.stdout(Stdio::null()).spawn().expect("it starts");
    let began = Instant::now();
    loop {
        let info = with_identity(&two.1, &["group", "info", "orders", "g", "--json"]).output();
        let info = String::from_utf8(info.expect("it runs").stdout).expect("text");
        let info: Value = serde_json::from_str(&info).unwrap_or_default();
        if info["group"]["members"]
            .as_array()
            .is_some_and(|all| all.len() == 1)
        {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{info}: {}", two.0.logged());
        std::thread::sleep(Duration::from_millis(100));
    }
    member.kill().expect("it is killed");
    member.wait().expect("it ended");
    let listed = with_identity(&two.1, &["nodes", "--json"]).output();
    let listed = String::from_utf8(listed.expect("it runs").stdout).expect("text");
    assert!(
        listed.contains(&one.1) && listed.contains(&two.1),
        "{listed}"
    );
}

/// Waits until the acknowledgements are in the group's record, which the other server sees.
#[allow(clippy::disallowed_methods, reason = "another process is waited for")]
fn wait_until_written(server: &Server) {
    let started = Instant::now();
    loop {
        let (_, said) = server.get("/lag?topic=orders&group=g");
        let lag: Value = serde_json::from_str(&said).expect("JSON");
        if lag["lag"] == EVENTS - 2 {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "{said}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
