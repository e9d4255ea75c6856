//! Reading the state of a key over HTTP, on connections that stay open.

use crate::Outcome;
use crate::keyed_work::key_of;
use crate::report::{Goal, Line, Unit};
use crate::sampling::repeat;
use crate::server::{Served, runtime};
use crate::table::Bench;
use prombus_client::{Client, PublishOptions};
use std::net::SocketAddr;
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const TOPIC: &str = "orders.state";
const CONNECTIONS: u64 = 16;
const KEYS: u64 = 10_000;
const BATCH_EVENTS: u64 = 1_000;

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let folder = bench.folder.fresh("snap");
    let served = Served::start(&folder)?;
    let runtime = runtime()?;
    runtime.block_on(async {
        served.make_topic(TOPIC).await?;
        fill(&served.connect().await?).await
    })?;
    let reads = bench.scale.snap_reads;
    let address = served.address;
    let rates = repeat(bench.scale.repeats, || {
        runtime.block_on(async {
            let started = Instant::now();
            let readers: Vec<_> = (0..CONNECTIONS)
                .map(|reader| tokio::spawn(read(address, reader, reads / CONNECTIONS)))
                .collect();
            for reader in readers {
                reader.await??;
            }
            let done = reads / CONNECTIONS * CONNECTIONS;
            Ok(done as f64 / started.elapsed().as_secs_f64())
        })
    })?;
    let what = format!("GET /snap of {KEYS} keys on {CONNECTIONS} connections");
    Ok(vec![
        Line::new(what, Unit::EventsPerSecond, rates).goal(Goal::AtLeast(20_000.0)),
    ])
}

async fn fill(client: &Client) -> Outcome<()> {
    for start in (0..KEYS).step_by(BATCH_EVENTS as usize) {
        let mut batch = client.batch();
        for number in start..start + BATCH_EVENTS {
            let options = PublishOptions {
                key: Some(&key(number)),
                ..PublishOptions::default()
            };
            batch.add(TOPIC, &payload(number), &options);
        }
        for published in client.publish_batch(batch).await {
            published?;
        }
    }
    Ok(())
}

fn key(number: u64) -> String {
    format!("{}:{number}", key_of(number, KEYS))
}

fn payload(number: u64) -> String {
    format!(r#"{{"number":{number},"city":"Springfield","open":true}}"#)
}

/// Asks for one key after the other on one connection, and looks at every answer.
async fn read(address: SocketAddr, reader: u64, count: u64) -> Outcome<()> {
    let mut socket = TcpStream::connect(address).await?;
    socket.set_nodelay(true)?;
    let mut answer = Vec::with_capacity(4 << 10);
    for turn in 0..count {
        let number = (turn * CONNECTIONS + reader) % KEYS;
        let request = format!(
            "GET /snap/{TOPIC}/{} HTTP/1.1\r\nHost: {address}\r\n\r\n",
            key(number)
        );
        socket.write_all(request.as_bytes()).await?;
        answer.clear();
        let body = loop {
            if let Some(body) = whole_body(&answer)? {
                break body;
            }
            if socket.read_buf(&mut answer).await? == 0 {
                return Err("the server closed the connection".into());
            }
        };
        if body != payload(number).as_bytes() {
            return Err(format!("{}: {}", key(number), String::from_utf8_lossy(body)).into());
        }
    }
    Ok(())
}

/// The body of an answer, once all of it is there.
fn whole_body(answer: &[u8]) -> Outcome<Option<&[u8]>> {
    let Some(head_end) = memchr::memmem::find(answer, b"\r\n\r\n") else {
        return Ok(None);
    };
    let (head, body) = (&answer[..head_end], &answer[head_end + 4..]);
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    if !head.starts_with("http/1.1 200") {
        return Err(head.into());
    }
    let length = head.split("\r\ncontent-length: ").nth(1);
    let length = length.and_then(|rest| rest.split("\r\n").next());
    let length: usize = length.ok_or("an answer without a length")?.trim().parse()?;
    Ok(body.get(..length))
}
