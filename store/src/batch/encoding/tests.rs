//! Batches survive the way over the wire, and hostile bytes are refused without a panic.

use super::*;
use crate::Draft;
use crate::record::StoredEvent;
use proptest::prelude::*;

#[derive(Debug, Clone)]
struct Event {
    topic: usize,
    id: Option<String>,
    ts: Option<u64>,
    sid: Option<String>,
    key: Option<String>,
    payload: String,
    tags: Vec<String>,
    tombstone: bool,
    expected: (Option<u64>, Option<u64>),
}

fn event() -> impl Strategy<Value = Event> {
    let fields = (
        0..3usize,
        prop::option::of("[ -~]{1,64}"),
        any::<Option<u64>>(),
        prop::option::of(".{0,9}"),
        prop::option::of(".{0,9}"),
        "[1-9a-zü]{1,40}",
        prop::collection::vec(".{0,5}".prop_map(String::from), 0..3),
        any::<bool>(),
        any::<(Option<u64>, Option<u64>)>(),
    );
    fields.prop_map(
        |(topic, id, ts, sid, key, payload, tags, tombstone, expected)| Event {
            topic,
            id,
            ts,
            sid,
            key,
            payload,
            tags,
            tombstone,
            expected,
        },
    )
}

fn expect() -> impl Strategy<Value = Expect> {
    prop_oneof![
        Just(Expect::Any),
        Just(Expect::Absent),
        any::<u64>().prop_map(Expect::Version)
    ]
}

fn change() -> impl Strategy<Value = Change> {
    let limits = (
        any::<Option<u64>>(),
        any::<Option<u64>>(),
        any::<Option<u64>>(),
    );
    let options = (any::<bool>(), limits, any::<bool>(), ".{0,20}");
    let options = options.prop_map(|(is_os, limits, compaction, attributes)| TopicOptions {
        durability: if is_os {
            Durability::Os
        } else {
            Durability::Fsync
        },
        retention_ms: limits.0,
        max_bytes: limits.1,
        max_events: limits.2,
        compaction,
        attributes,
    });
    let name = || ".{0,12}".prop_map(Arc::<str>::from);
    prop_oneof![
        (name(), options, any::<bool>()).prop_map(|(topic, options, keep)| Change::PutTopic {
            topic,
            options,
            if_exists: if keep {
                IfExists::Keep
            } else {
                IfExists::Replace
            },
        }),
        name().prop_map(|topic| Change::DeleteTopic { topic }),
        (name(), any::<u64>()).prop_map(|(topic, first_seq)| Change::Trim { topic, first_seq }),
        (name(), prop::collection::vec(any::<u8>(), 0..20), expect()).prop_map(
            |(key, value, expect)| Change::Put {
                key,
                value: value.into(),
                expect
            }
        ),
        (name(), expect()).prop_map(|(key, expect)| Change::Delete { key, expect }),
    ]
}

fn batch() -> impl Strategy<Value = Batch> {
    let parts = (
        any::<bool>(),
        prop::collection::vec(event(), 0..8),
        prop::collection::vec(change(), 0..5),
    );
    parts.prop_map(|(is_atomic, events, changes)| {
        let topics = ["a", "b.c", "d"].map(Arc::<str>::from);
        let mut batch = if is_atomic {
            Batch::atomic()
        } else {
            Batch::new()
        };
        for event in &events {
            let draft = Draft {
                id: event.id.as_deref().and_then(Id::from_client),
                ts: event.ts,
                sid: event.sid.as_deref(),
                key: event.key.as_deref(),
                payload: &event.payload,
                tags: &event.tags,
                tombstone: event.tombstone,
                expected: ExpectedPosition {
                    seq: event.expected.0,
                    key_seq: event.expected.1,
                },
                ..Draft::default()
            };
            batch.publish(&topics[event.topic], &draft);
        }
        changes.into_iter().for_each(|change| batch.change(change));
        batch
    })
}

/// Everything that a store may ask of a batch.
fn contents(batch: &Batch) -> Vec<String> {
    let events = batch.events().enumerate().map(|(at, event)| {
        let id = event.id().or(Id::from_client("x"));
        let id = id.expect("an id");
        let stored = StoredEvent::encode(event, &id, event.ts().unwrap_or(7), at as u64);
        let flags = (event.has_client_id(), event.ts(), stored.is_tombstone());
        let fields = (stored.key(), stored.payload(), stored.topic());
        format!(
            "{} {flags:?} {fields:?} {:?} {:?}",
            stored.json(),
            event.payload(),
            event.expected(),
        )
    });
    let mut contents: Vec<String> = events.collect();
    contents.push(format!("{} {:?}", batch.is_atomic(), batch.changes()));
    contents
}

proptest! {
    #[test]
    fn batches_round_trip(one in batch(), other in batch()) {
        let mut bytes = Vec::new();
        one.encode(&mut bytes);
        let first_bytes = bytes.len();
        prop_assert!(first_bytes <= one.max_encoded_bytes());
        other.encode(&mut bytes);
        let mut rest = &bytes[..];
        let decoded = Batch::decode(&mut rest).expect("a batch");
        prop_assert_eq!(rest.len(), bytes.len() - first_bytes);
        prop_assert_eq!(contents(&decoded), contents(&one));
        let decoded = Batch::decode(&mut rest).expect("another");
        prop_assert!(rest.is_empty());
        prop_assert_eq!(contents(&decoded), contents(&other));
    }

    /// A batch with bytes changed, cut or added is refused, or it is another one that can be used like any.
    #[test]
    fn altered_bytes_never_panic(
        batch in batch(), cut in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut bytes = Vec::new();
        batch.encode(&mut bytes);
        let whole = bytes.len();
        prop_assert!(Batch::decode(&mut &bytes[..cut.index(whole)]).is_err());
        for (at, byte) in changes {
            let at = at.index(whole);
            bytes[at] = byte;
        }
        if let Ok(batch) = Batch::decode(&mut &bytes[..]) {
            contents(&batch);
            let mut joined = Batch::new();
            joined.append(&batch);
            contents(&joined);
        }
    }

    #[test]
    fn any_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        bytes.splice(..0, [FORMAT, 0]);
        if let Ok(batch) = Batch::decode(&mut &bytes[..]) {
            contents(&batch);
        }
    }
}

#[test]
fn counts_and_lengths_that_cannot_be_are_refused_at_once() {
    for bad in [
        &[2, 0][..],
        &[1, 2],
        &[
            1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02,
        ],
        &[1, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, b'a'],
        // An event of four thousand million bytes.
        &[
            1, 0, 1, 1, b'a', 0, 1, 16, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 0,
        ],
    ] {
        assert!(Batch::decode(&mut &bad[..]).is_err(), "{bad:?}");
    }
}
