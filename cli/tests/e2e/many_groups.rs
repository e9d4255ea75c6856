//! Metrics of many groups, served or not: complete, and without asking any of them.
//!
//! `PROMBUS_MANY_GROUPS` makes it larger. How long a scrape takes, and a publish meanwhile, is printed.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "another process is timed and watched, and what it took is printed"
)]

use crate::memory::number;
use crate::raw_socket::{send, socket};
use crate::server::Server;
use serde_json::json;
use std::io::Read;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// As many subscriptions as a socket may have.
const GROUPS_OF_A_SOCKET: usize = 1_000;
const GROUPS_OF_A_MESSAGE: usize = 100;
const PUBLISHES: usize = 100;

/// Makes the groups from `first` on, each of a topic that it shares with a hundred others.
fn subscribe(server: &Server, first: usize, count: usize) -> TcpStream {
    let mut stream = socket(server);
    for start in (first..first + count).step_by(GROUPS_OF_A_MESSAGE) {
        let end = (start + GROUPS_OF_A_MESSAGE).min(first + count);
        let frames: Vec<_> = (start..end)
            .map(|group| {
                let topic = format!("many.t{}", group / 100);
                json!({"op": "SUBSCRIBE", "topic": topic, "group": format!("g{group}")})
            })
            .collect();
        send(&mut stream, &json!(frames).to_string());
        let (mut read, mut piece) = (Vec::new(), [0; 4_096]);
        while read
            .windows(10)
            .filter(|window| window == br#""op":"OK","#)
            .count()
            < end - start
        {
            let bytes = stream.read(&mut piece).expect("an answer");
            assert!(bytes > 0, "the server ended the connection");
            read.extend_from_slice(&piece[..bytes]);
        }
    }
    stream
}

/// The time of the slowest but one of a hundred publishes.
fn publish_p99(server: &Server) -> Duration {
    let mut times: Vec<Duration> = (0..PUBLISHES)
        .map(|_| {
            let started = Instant::now();
            assert_eq!(server.post("/publish/probe", "1").0, 200);
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[PUBLISHES - 2]
}

#[test]
fn metrics_tell_of_every_group_whether_it_is_served_or_not() {
    let groups = number("PROMBUS_MANY_GROUPS", 300);
    let server = Server::start(&[]);
    let alone = publish_p99(&server);
    let sockets: Vec<TcpStream> = (0..groups)
        .step_by(GROUPS_OF_A_SOCKET)
        .map(|first| subscribe(&server, first, GROUPS_OF_A_SOCKET.min(groups - first)))
        .collect();
    for topic in 0..groups.div_ceil(100) {
        let published = server.post(&format!("/publish/many.t{topic}"), "1");
        assert_eq!(published.0, 200);
    }
    let lag_of_all = |server: &Server| -> f64 {
        let started = Instant::now();
        let (status, text) = server.get("/metrics");
        assert_eq!(status, 200);
        println!("{groups} groups: /metrics took {:?}", started.elapsed());
        let lags = text
            .lines()
            .filter(|line| line.starts_with("group_lag_events{"));
        lags.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    };
    assert_eq!(
        lag_of_all(&server),
        groups as f64,
        "each has one event to settle"
    );
    println!(
        "publish p99 {alone:?} alone, {:?} with them",
        publish_p99(&server)
    );
    drop(sockets);
    let (_, text) = server.get("/groups?topic=many.t0");
    let listed: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let of_first = groups.min(100);
    assert_eq!(listed["groups"].as_array().map(Vec::len), Some(of_first));
    assert_eq!(
        lag_of_all(&server),
        groups as f64,
        "nobody settled anything"
    );
}
