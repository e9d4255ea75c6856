//! Subscribers that never read, on large events: what they take of the server's memory.

use super::{Served, runtime};
use crate::Outcome;
use crate::report::{Goal, Line, Unit};
use crate::sampling::Samples;
use crate::table::Bench;
use prombus_client::{Client, PublishOptions};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const EVENT_BYTES: usize = 100_000;
/// Events that are published before the first of them is waited for.
const IN_FLIGHT: usize = 64;
const LOOK_EVERY: Duration = Duration::from_millis(50);
const MAX_BYTES: f64 = 300e6;
const SUBSCRIBE: &str = r#""opts":{"from":"earliest","maxInFlight":100000,"ackTimeoutMs":5000}}"#;

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let served = Served::start(&bench.folder.fresh("stalled"))?;
    let (subscribers, events) = (bench.scale.stalled_subscribers, bench.scale.stalled_events);
    let watched = bench.scale.stalled_for;
    let [peak, left] = runtime()?.block_on(async {
        served.make_topic("large").await?;
        fill(&served.connect().await?, events).await?;
        let mut stalled = Vec::with_capacity(subscribers);
        for number in 0..subscribers {
            stalled.push(subscribe(&served, number).await?);
        }
        let peak = most_resident_bytes(&served, watched).await?;
        drop(stalled);
        tokio::time::sleep(watched).await;
        Outcome::Ok([peak, served.process.resident_bytes()?])
    })?;
    let megabytes = events * EVENT_BYTES / 1_000_000;
    let what =
        format!("resident with {subscribers} subscribers that read nothing of {megabytes} MB");
    let samples = |bytes: u64| Samples::from_iter([bytes as f64]);
    Ok(vec![
        Line::new(what, Unit::Bytes, samples(peak)).goal(Goal::AtMost(MAX_BYTES)),
        Line::new("the same when they are gone", Unit::Bytes, samples(left)),
    ])
}

async fn fill(client: &Client, events: usize) -> Outcome<()> {
    let payload = format!("\"{}\"", "x".repeat(EVENT_BYTES));
    let mut published = 0;
    while published < events {
        let some = IN_FLIGHT.min(events - published);
        let options = PublishOptions::default();
        let commits = (0..some).map(|_| client.publish_text("large", &payload, &options));
        for result in futures_util::future::join_all(commits).await {
            result?;
        }
        published += some;
    }
    Ok(())
}

/// A WebSocket that has subscribed and reads nothing from then on.
async fn subscribe(served: &Served, number: usize) -> Outcome<TcpStream> {
    let mut stream = TcpStream::connect(served.address).await?;
    let upgrade = "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(upgrade.as_bytes()).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let text = format!(r#"{{"op":"SUBSCRIBE","topic":"large","group":"g{number}",{SUBSCRIBE}"#);
    // A text frame whose mask changes nothing.
    let mut frame = vec![0x81, 0x80 | 126];
    frame.extend(u16::try_from(text.len())?.to_be_bytes());
    frame.extend([0; 4]);
    frame.extend(text.as_bytes());
    stream.write_all(&frame).await?;
    Ok(stream)
}

async fn most_resident_bytes(served: &Served, watched: Duration) -> Outcome<u64> {
    let begun = Instant::now();
    let mut most = 0;
    while begun.elapsed() < watched {
        most = most.max(served.process.resident_bytes()?);
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(most)
}
