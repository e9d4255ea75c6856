//! Clients that subscribe to large events and do not read them, or read slowly: the server's memory stays within what it
//! was given, by bytes, and comes back when they are gone.
//!
//! `PROMBUS_STALLED_SUBSCRIBERS` and `PROMBUS_STALLED_EVENTS` make it larger; what it finds is printed.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "another process is timed and watched, and what it took is printed"
)]

use crate::raw_socket::{send, socket};
use crate::server::{Server, prombus};
use std::io::Read;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const EVENT_BYTES: usize = 100_000;
/// What the server is told that deliveries may take.
const DELIVERY_BYTES: usize = 8 << 20;
/// What a socket may hold beyond that: one event, and room for the next.
const SOCKET_BYTES: u64 = 160_000;
/// What everything else takes once it is warm: caches, the newest records, the allocator's slack.
const OTHER_BYTES: u64 = 64 << 20;
/// What may be left once the clients are gone.
const LEFT_BYTES: u64 = 64 << 20;
const EVENTS_OF_A_POST: usize = 50;

pub(crate) fn number(name: &str, default: usize) -> usize {
    match std::env::var(name) {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => default,
    }
}

fn start() -> Server {
    let folder = Arc::new(TempDir::new().expect("a folder"));
    let mut command = prombus(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    command.env("PROMBUS_LIMITS__DELIVERY_BYTES", DELIVERY_BYTES.to_string());
    Server::ready(command, folder)
}

fn fill(server: &Server, events: usize) {
    let line = format!("\"{}\"\n", "x".repeat(EVENT_BYTES));
    let url = server.at("/publish/large");
    for _ in 0..events / EVENTS_OF_A_POST {
        let body = line.repeat(EVENTS_OF_A_POST);
        let posted = ureq::post(&url)
            .content_type("application/x-ndjson")
            .send(body);
        assert_eq!(posted.expect("stored").status(), 200);
    }
}

/// A socket that has subscribed and read nothing since.
fn subscribe(server: &Server, group: &str) -> TcpStream {
    let mut stream = socket(server);
    send(
        &mut stream,
        &format!(
            r#"{{"op":"SUBSCRIBE","topic":"large","group":"{group}","opts":{{"from":"earliest","maxInFlight":100000,"ackTimeoutMs":2000}}}}"#
        ),
    );
    stream
}

/// The most memory that the server has during this time.
fn peak_bytes(server: &Server, watched: Duration) -> u64 {
    let started = Instant::now();
    let mut peak = 0;
    while started.elapsed() < watched {
        peak = peak.max(server.resident_bytes());
        std::thread::sleep(Duration::from_millis(50));
    }
    peak
}

#[test]
fn clients_that_do_not_read_take_the_memory_that_was_set_aside_and_give_it_back() {
    let subscribers = number("PROMBUS_STALLED_SUBSCRIBERS", 40);
    let events = number("PROMBUS_STALLED_EVENTS", 300);
    let server = start();
    fill(&server, events);
    let before = server.resident_bytes();
    let stalled: Vec<TcpStream> = (0..subscribers)
        .map(|number| subscribe(&server, &format!("g{number}")))
        .collect();
    // Longer than their leases, so that what ran out would have been delivered into the same buffers again.
    let peak = peak_bytes(&server, Duration::from_secs(6));

    // One that reads slowly gets its events all the same.
    let mut slow = subscribe(&server, "slow");
    let mut read = 0;
    let mut piece = vec![0; 1 << 16];
    while read < 20 * EVENT_BYTES {
        let count = slow.read(&mut piece).expect("it goes on");
        assert!(count > 0, "the server hung up after {read} bytes");
        read += count;
    }
    drop((stalled, slow));
    let mut left = u64::MAX;
    for _ in 0..20 {
        left = left.min(peak_bytes(&server, Duration::from_millis(500)));
        if left < before + LEFT_BYTES {
            break;
        }
    }
    println!(
        "{subscribers} subscribers, {events} events: {before} bytes before, {peak} at most, {left} after"
    );
    let allowed = OTHER_BYTES + DELIVERY_BYTES as u64 + subscribers as u64 * SOCKET_BYTES;
    assert!(peak < before + allowed, "{before} grew to {peak}");
    assert!(left < before + LEFT_BYTES, "{left} of {peak} stayed");
}
