//! Exporting a large topic over HTTP, beside the same bytes through a plain connection; and topics that lie interleaved
//! beside that one, which has its segments alone.

use super::{Served, runtime};
use crate::Outcome;
use crate::http;
use crate::payload::Payload;
use crate::report::{Goal, Line, Unit};
use crate::sampling::in_turns;
use crate::table::Bench;
use prombus_client::{Client, PublishOptions};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Instant;

const TOPIC: &str = "large";
const BATCH_EVENTS: u64 = 1_000;
const BLOCK_BYTES: usize = 256 << 10;
const MIN_SHARE: f64 = 0.5;

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let folder = bench.folder.fresh("export");
    let served = Served::start(&folder)?;
    let runtime = runtime()?;
    let events = bench.scale.export_events;
    let interleaved: Vec<String> = (0..bench.scale.interleaved_topics)
        .map(|number| format!("small.{number}"))
        .collect();
    runtime.block_on(async {
        let client = served.connect().await?;
        served.make_topic(TOPIC).await?;
        fill(&client, &[TOPIC.to_owned()], events).await?;
        for topic in &interleaved {
            served.make_topic(topic).await?;
        }
        fill(&client, &interleaved, events).await
    })?;
    let request = format!("GET /export?topic={TOPIC}&ndjson=1");
    // The same bytes as a file, for the plain connection.
    let path = folder.join("export.ndjson");
    let mut file = File::create_new(&path)?;
    let mut lines = 0;
    let mut written = Ok(());
    let keep = |piece: &[u8]| {
        lines += memchr::memchr_iter(b'\n', piece).count() as u64;
        if written.is_ok() {
            written = file.write_all(piece);
        }
    };
    runtime.block_on(http::stream(served.address, &request, "", keep))?;
    written?;
    if lines != events {
        return Err(format!("{lines} of {events} events were exported").into());
    }
    let bytes = path.metadata()?.len() as f64;
    let export = || {
        let begun = Instant::now();
        let mut received = 0;
        let count = |piece: &[u8]| received += piece.len();
        runtime.block_on(http::stream(served.address, &request, "", count))?;
        if received as f64 == bytes {
            Ok(bytes / begun.elapsed().as_secs_f64())
        } else {
            Err("the export was not the same again".into())
        }
    };
    let plain = || plain_copy(&path).map(|seconds| bytes / seconds);
    let (exports, plains) = in_turns(bench.scale.repeats, export, plain)?;
    let each = || {
        let begun = Instant::now();
        let (mut received, mut lines) = (0, 0);
        for topic in &interleaved {
            let request = format!("GET /export?topic={topic}&ndjson=1");
            let count = |piece: &[u8]| {
                received += piece.len();
                lines += memchr::memchr_iter(b'\n', piece).count() as u64;
            };
            runtime.block_on(http::stream(served.address, &request, "", count))?;
        }
        if lines == events {
            Ok(received as f64 / begun.elapsed().as_secs_f64())
        } else {
            Err(format!("{lines} of {events} events were exported").into())
        }
    };
    let (each, alone) = in_turns(bench.scale.repeats, each, export)?;
    let what = format!("export of {events} events");
    let of_many = format!("export of each of {} interleaved topics", interleaved.len());
    Ok(vec![
        Line::new(what, Unit::BytesPerSecond, exports)
            .beside("the same bytes from a file over loopback", plains)
            .goal(Goal::RatioAtLeast(MIN_SHARE)),
        Line::new(of_many, Unit::BytesPerSecond, each)
            .beside("the topic that lies alone", alone)
            .goal(Goal::RatioAtLeast(MIN_SHARE)),
    ])
}

/// Publishes events to topics that take turns.
async fn fill(client: &Client, topics: &[String], events: u64) -> Outcome<()> {
    let mut turns = topics.iter().cycle();
    let mut number = 0;
    while number < events {
        let mut batch = client.batch();
        for _ in 0..BATCH_EVENTS.min(events - number) {
            let payload = Payload::new(number, 0);
            let topic = turns.next().ok_or("there is no topic")?;
            batch.add(topic, payload.as_str(), &PublishOptions::default());
            number += 1;
        }
        for result in client.publish_batch(batch).await {
            result?;
        }
    }
    Ok(())
}

/// Reads a file and sends it through a connection to a thread that reads it; the time it takes.
fn plain_copy(path: &Path) -> Outcome<f64> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut near = TcpStream::connect(listener.local_addr()?)?;
    let (mut far, _) = listener.accept()?;
    let mut file = File::open(path)?;
    let begun = Instant::now();
    let sender = std::thread::spawn(move || -> std::io::Result<()> {
        let mut block = vec![0; BLOCK_BYTES];
        loop {
            match file.read(&mut block)? {
                0 => return Ok(()),
                count => near.write_all(&block[..count])?,
            }
        }
    });
    let mut block = vec![0; BLOCK_BYTES];
    while far.read(&mut block)? > 0 {}
    let seconds = begun.elapsed().as_secs_f64();
    sender.join().map_err(|_| "the sender ended badly")??;
    Ok(seconds)
}
