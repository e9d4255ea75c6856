//! What the rows do with a log: payloads, batches, and logs of a given size.

use crate::Outcome;
use crate::scale::Scale;
use prombus_log::{Log, LogOptions, OsFiles};
use prombus_store::{Batch, Change, Draft, Durability, IfExists, ReadLimit, TopicOptions};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Events of one batch.
pub(crate) const BATCH_EVENTS: u64 = 1_000;

/// About what one event takes on disk.
pub(crate) const STORED_BYTES: u64 = 410;

const PAYLOAD_BYTES: usize = 256;

/// Different payloads for one batch: JSON objects of 256 bytes, as a heartbeat might be.
pub(crate) fn payloads() -> Vec<String> {
    (0..BATCH_EVENTS).map(payload).collect()
}

/// The name of the topic at a place; all are equally long.
pub(crate) fn topic_at(place: usize) -> Arc<str> {
    format!("bench.topic-{place:04}").into()
}

/// Opens a log with the scale's segments and otherwise as users have it.
pub(crate) fn open_log(path: &Path, scale: &Scale) -> Outcome<Log> {
    Ok(Log::open(Arc::new(OsFiles::open(path)?), options(scale))?.0)
}

/// The options of every log that is measured.
pub(crate) fn options(scale: &Scale) -> LogOptions {
    LogOptions {
        segment_bytes: scale.segment_bytes,
        log_id: Some(1),
        ..LogOptions::default()
    }
}

/// Makes topics, durably.
pub(crate) fn make_topics(log: &Log, topics: &[Arc<str>], durability: Durability) -> Outcome<()> {
    let mut batch = Batch::new();
    for topic in topics {
        batch.change(Change::PutTopic {
            topic: topic.clone(),
            options: TopicOptions {
                durability,
                ..TopicOptions::default()
            },
            if_exists: IfExists::Replace,
        });
    }
    log.append(&batch).wait()?;
    Ok(())
}

/// Appends events in batches, each of which is waited for. Topics take turns within a batch.
pub(crate) fn append(
    log: &Log,
    topics: &[Arc<str>],
    payloads: &[String],
    events: u64,
) -> Outcome<()> {
    let mut turns = topics.iter().cycle();
    for _ in 0..events / BATCH_EVENTS {
        let mut batch = Batch::new();
        for (topic, payload) in turns.by_ref().zip(payloads) {
            batch.publish(topic, &draft(payload));
        }
        log.append(&batch).wait()?;
    }
    Ok(())
}

/// Makes a log of events in interleaved topics, seals what is full and closes it.
pub(crate) fn make_log(path: &Path, scale: &Scale, topics: usize, events: u64) -> Outcome<()> {
    let log = open_log(path, scale)?;
    let topics: Vec<Arc<str>> = (0..topics).map(topic_at).collect();
    make_topics(&log, &topics, Durability::Os)?;
    append(&log, &topics, &payloads(), events)?;
    log.maintain()?;
    log.close()?;
    Ok(())
}

/// Reads a topic up to a position in pages of about a MiB; returns the bytes that its records take.
pub(crate) fn read_up_to(log: &Log, topic: &str, last_seq: u64) -> Outcome<u64> {
    let limit = ReadLimit {
        events: usize::MAX,
        bytes: 1 << 20,
    };
    let (mut next_seq, mut bytes) = (1, 0);
    while next_seq <= last_seq {
        let page = log.read(topic, next_seq, limit)?;
        if page.events.is_empty() {
            return Err(format!("{topic} ends before {last_seq}").into());
        }
        bytes += page
            .events
            .iter()
            .map(|event| event.stored_bytes() as u64)
            .sum::<u64>();
        next_seq = page.next_seq;
    }
    Ok(bytes)
}

/// How many of something were done in a second since `started`.
pub(crate) fn per_second(count: u64, started: Instant) -> f64 {
    count as f64 / started.elapsed().as_secs_f64()
}

/// How many nanoseconds one of something took since `started`.
pub(crate) fn nanos_each(count: u64, started: Instant) -> f64 {
    started.elapsed().as_nanos() as f64 / count as f64
}

/// An event that says nothing but its payload.
pub(crate) fn draft(payload: &str) -> Draft<'_> {
    Draft {
        payload,
        ..Draft::default()
    }
}

fn payload(number: u64) -> String {
    const NOTE: &str =
        "all is well, the queue is short, the disk has room and the fans are quiet; ";
    let start = format!(
        r#"{{"pid":{},"name":"worker-{:03}","host":"node-{:02}.example","cpu_pct":{}.5,"mem_mb":{},"up":true,"note":""#,
        10_000 + number,
        number % 1_000,
        number % 50,
        10 + number % 80,
        200 + number,
    );
    let note = NOTE.chars().cycle().take(PAYLOAD_BYTES - start.len() - 2);
    format!("{start}{}\"}}", note.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_json_of_the_same_length() {
        for payload in payloads() {
            assert_eq!(payload.len(), PAYLOAD_BYTES);
            let value: serde_json::Value = serde_json::from_str(&payload).unwrap();
            assert!(value["pid"].is_u64(), "{payload}");
        }
    }

    #[test]
    fn a_log_that_was_made_is_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let scale = Scale::quick();
        make_log(folder.path(), &scale, 2, 4_000).unwrap();
        let log = open_log(folder.path(), &scale).unwrap();
        let bytes = read_up_to(&log, &topic_at(1), 2_000).unwrap();
        assert_eq!(bytes, log.topic(&topic_at(1)).unwrap().bytes);
        assert!(read_up_to(&log, &topic_at(1), 2_001).is_err());
    }
}
