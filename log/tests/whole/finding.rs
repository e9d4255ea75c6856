//! Finding by id, by time and by key, held against what plain reading shows.

use crate::fixture::Fixture;
use crate::plan::{Plan, PlannedEvent};
use crate::reading::{ALL, read_all};
use crate::seeds;
use prombus_log::{Files, Log};
use prombus_store::conformance::Random;
use prombus_store::{Change, Clock, ReadLimit, StoredEvent, TimeRange, TopicOptions};
use std::collections::BTreeMap;

#[test]
fn everything_is_found_whatever_is_sealed_rewritten_restarted_or_lost_of_the_indexes() {
    seeds::run(200, |seed| {
        let mut random = Random::seeded(seed);
        let segment_bytes = 1000 + random.index(6000) as u64;
        let mut fixture = Fixture::new(segment_bytes);
        let compaction = random.index(3) == 0;
        for topic in ["t", "u"] {
            let options = TopicOptions {
                compaction,
                ..TopicOptions::default()
            };
            fixture
                .commit(&Plan::topic(topic, options))
                .expect("a topic");
        }
        for _ in 0..40 {
            step(&mut fixture, &mut random);
        }
        for topic in ["t", "u"] {
            let events = read_all(&fixture.log, topic, &mut random);
            check(&fixture.log, topic, &events, &mut random);
        }
        assert_eq!(fixture.log.damage(), Vec::<String>::new());
    });
}

/// Does one thing at random; what is shown afterwards is what was shown before, except for what was published.
fn step(fixture: &mut Fixture, random: &mut Random) {
    let topic = ["t", "u"][random.index(2)];
    let before = fixture.events(topic);
    let mut is_less = false;
    match random.index(12) {
        0..6 => {
            let events = (0..1 + random.index(20)).map(|_| some_event(fixture, random));
            fixture.store(&Plan::events(events));
        }
        6..8 => {
            fixture.log.maintain().expect("maintenance");
            is_less = true;
        }
        8 => {
            let tail_seq = fixture.log.tail_seq(topic);
            let first_seq = random.index(tail_seq as usize / 2 + 1) as u64;
            let topic = topic.into();
            fixture
                .commit(&Plan {
                    changes: vec![Change::Trim { topic, first_seq }],
                    ..Plan::default()
                })
                .expect("a trim");
            is_less = true;
        }
        9 => drop(fixture.reopen()),
        10 => drop(fixture.open_on(fixture.disk.process_crash())),
        _ => lose_indexes(fixture, random),
    }
    let after = fixture.events(topic);
    let stays = |json: &&String| after.contains(json);
    assert!(is_less || before.iter().all(|json| stays(&json)));
    let events = read_all(&fixture.log, topic, random);
    check(&fixture.log, topic, &events, random);
}

fn some_event(fixture: &Fixture, random: &mut Random) -> PlannedEvent {
    let topic = ["t", "u"][random.index(2)];
    let number = random.number();
    let mut event = PlannedEvent::new(topic, number.to_string());
    fixture.clock.advance(random.index(3) as u64);
    // Many share a time, and many are older than those before.
    if random.index(3) == 0 {
        event.ts = Some(fixture.clock.now_ms() + random.index(40) as u64 - 30);
    }
    if random.index(3) > 0 {
        event.key = Some(format!("key {}", random.index(30)));
        event.tombstone = random.index(10) == 0;
    }
    if random.index(4) == 0 {
        event.id = Some(format!("own-{number}"));
    }
    event
}

/// Removes or damages some index files and opens the log again.
fn lose_indexes(fixture: &mut Fixture, random: &mut Random) {
    fixture.log.close().expect("it closes");
    let disk = fixture.disk.process_crash();
    for name in disk.list().expect("names") {
        match random.index(3) {
            _ if !name.ends_with(".idx") => {}
            0 => disk.remove(&name).expect("a removal"),
            1 => {
                let place = random.number() as usize;
                let flip = |bytes: &mut Vec<u8>| {
                    let at = place % bytes.len();
                    bytes[at] ^= 16;
                };
                disk.overwrite(&name, flip).expect("a flip");
            }
            _ => {}
        }
    }
    let report = fixture.open_on(disk);
    assert_eq!(report.damage, Vec::<String>::new());
}

/// Compares every way of finding events with `events`, which is all that a topic holds.
pub(crate) fn check(log: &Log, topic: &str, events: &[StoredEvent], random: &mut Random) {
    check_ids(log, topic, events, random);
    check_times(log, topic, events, random);
    check_keys(log, topic, events, random);
}

fn check_ids(log: &Log, topic: &str, events: &[StoredEvent], random: &mut Random) {
    for _ in 0..events.len().min(8) {
        let event = &events[random.index(events.len())];
        let found = log.find_id(topic, &event.id()).expect("a look-up");
        assert_eq!(found, Some(event.seq()), "{topic} {event:?}");
    }
    let unknown = log.find_id(topic, "never-published").expect("a look-up");
    assert_eq!(unknown, None);
}

fn check_times(log: &Log, topic: &str, events: &[StoredEvent], random: &mut Random) {
    let mut by_time: Vec<(u64, u64)> = events
        .iter()
        .map(|event| (event.ts(), event.seq()))
        .collect();
    by_time.sort_unstable();
    let some_ts = |random: &mut Random| match by_time.len() {
        0 => random.number(),
        all => by_time[random.index(all)].0 + random.number() % 3 - 1,
    };
    for _ in 0..3 {
        let (one, other) = (some_ts(random), some_ts(random));
        let first = events.iter().find(|event| event.ts() >= one);
        let found = log.find_ts(topic, one).expect("a look-up");
        assert_eq!(found, first.map(StoredEvent::seq), "{topic} from {one}");

        let (from_ts, to_ts) = (one.min(other), one.max(other));
        let inside = |(ts, _): &&(u64, u64)| (from_ts..=to_ts).contains(ts);
        let expected: Vec<(u64, u64)> = by_time.iter().filter(inside).copied().collect();
        assert_eq!(
            read_by_time(log, topic, from_ts, to_ts, random),
            expected,
            "{topic}"
        );
    }
    assert_eq!(read_by_time(log, topic, 0, u64::MAX, random), by_time);
}

/// The (ts, seq) of all events in a range, read in pages.
fn read_by_time(
    log: &Log,
    topic: &str,
    from_ts: u64,
    to_ts: u64,
    random: &mut Random,
) -> Vec<(u64, u64)> {
    let mut read = Vec::new();
    let mut after = None;
    loop {
        let range = TimeRange {
            from_ts,
            to_ts,
            after,
        };
        let limit = ReadLimit {
            events: 1 + random.index(60),
            bytes: usize::MAX,
        };
        let page = log.read_by_time(topic, range, limit).expect("a page");
        let places = page.events.iter().map(|event| (event.ts(), event.seq()));
        read.extend(places);
        after = page.next_time;
        if after.is_none() {
            return read;
        }
    }
}

fn check_keys(log: &Log, topic: &str, events: &[StoredEvent], random: &mut Random) {
    let mut latest: BTreeMap<String, u64> = BTreeMap::new();
    for event in events {
        latest.extend(event.key().map(|key| (key.into_owned(), event.seq())));
    }
    for (key, seq) in &latest {
        let found = log.latest(topic, key).expect("a look-up");
        assert_eq!(
            found.map(|event| event.seq()),
            Some(*seq),
            "{topic} key {key}"
        );
    }
    assert!(log.latest(topic, "never").expect("a look-up").is_none());

    let keys: Vec<&String> = latest.keys().collect();
    let after = match keys.len() {
        0 => None,
        all => keys.get(random.index(all + 1)).copied(),
    };
    let expected: Vec<u64> = latest
        .iter()
        .filter(|(key, _)| after.is_none_or(|after| *key > after))
        .map(|(_, seq)| *seq)
        .collect();
    let limit = ReadLimit {
        events: 1 + random.index(10),
        ..ALL
    };
    let found = log
        .read_by_key(topic, after.map(String::as_str), limit)
        .expect("keys");
    let found: Vec<u64> = found.events.iter().map(StoredEvent::seq).collect();
    assert_eq!(found, expected[..expected.len().min(limit.events)]);
}
