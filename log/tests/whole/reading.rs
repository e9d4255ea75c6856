//! Everything that a log shows.

use prombus_log::Log;
use prombus_store::conformance::Random;
use prombus_store::{Keyed, ReadLimit, StoredEvent, TopicInfo};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reads are cut into pages of any size, so that the seams are read too.
const PAGE_EVENTS: usize = 40;

/// What a log shows at one moment.
pub(crate) struct Seen {
    pub(crate) topics: BTreeMap<Arc<str>, SeenTopic>,
    pub(crate) keyed: BTreeMap<Arc<str>, Keyed>,
}

/// What a log shows of a topic.
pub(crate) struct SeenTopic {
    pub(crate) info: TopicInfo,
    /// In the order they were read.
    pub(crate) events: Vec<StoredEvent>,
}

/// All that one read may return.
pub(crate) const ALL: ReadLimit = ReadLimit {
    events: usize::MAX,
    bytes: usize::MAX,
};

/// Looks at everything.
pub(crate) fn look(log: &Log, random: &mut Random) -> Seen {
    let topics = log.topics().into_iter().map(|info| {
        let events = read_all(log, &info.name, random);
        check_cached(log, &info.name, &events, random);
        (info.name.clone(), SeenTopic { info, events })
    });
    Seen {
        topics: topics.collect(),
        keyed: log.list("").into_iter().collect(),
    }
}

/// What is answered from memory is what reading from the start shows there.
fn check_cached(log: &Log, topic: &str, events: &[StoredEvent], random: &mut Random) {
    let from = random.index(events.len() + 1);
    let from_seq = events.get(from).map_or(0, |event| event.seq());
    let recent = log.read_cached(topic, from_seq, ALL).expect("a page");
    for page in recent.iter().filter(|_| from_seq > 0) {
        let same = page.events.iter().zip(&events[from..]);
        assert!(same.clone().all(|(one, other)| one.json() == other.json()));
        assert_eq!(same.count(), page.events.len(), "{topic}");
    }
}

/// All events of a topic. Each page is checked: positions rise, and nothing is read twice.
pub(crate) fn read_all(log: &Log, topic: &str, random: &mut Random) -> Vec<StoredEvent> {
    let mut events: Vec<StoredEvent> = Vec::new();
    let mut next_seq = 0;
    loop {
        let limit = ReadLimit {
            events: 1 + random.index(PAGE_EVENTS),
            bytes: 1 + random.index(20_000),
        };
        let page = log.read(topic, next_seq, limit).expect("a page");
        for event in &page.events {
            let last_seq = events.last().map_or(0, |last| last.seq());
            assert!(event.seq() > last_seq && event.seq() >= next_seq);
            assert!((page.first_seq..=page.tail_seq).contains(&event.seq()));
            events.push(event.clone());
        }
        let last_seq = events.last().map_or(0, |last| last.seq());
        assert!(page.next_seq > last_seq && page.next_seq >= next_seq);
        next_seq = page.next_seq;
        if next_seq > page.tail_seq {
            return events;
        }
    }
}
