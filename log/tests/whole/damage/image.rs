//! Small logs of every shape, with what they hold.

use crate::fixture::Fixture;
use crate::plan::{Plan, PlannedEvent};
use crate::reading::Seen;
use prombus_log::fault::FaultFiles;
use prombus_store::{Change, Durability, Expect, TopicOptions};
use std::collections::BTreeMap;

/// A log at rest.
pub(super) struct Image {
    pub(super) disk: FaultFiles,
    pub(super) segment_bytes: u64,
    /// What it shows.
    pub(super) seen: Seen,
    /// The JSON of all events that were ever stored, by topic and position: what was trimmed may come back.
    pub(super) ever: BTreeMap<(String, u64), String>,
    /// It was properly closed.
    pub(super) is_closed: bool,
    /// The segment that was being written.
    pub(super) active: String,
}

/// A log that is being filled.
pub(super) struct Filled {
    fixture: Fixture,
    ever: BTreeMap<(String, u64), String>,
}

impl Image {
    /// A bit of everything in one segment.
    pub(super) fn of_one_segment() -> Filled {
        let mut filled = Filled::new(60_000);
        filled.some_of_everything();
        filled
    }

    /// Full segments that nobody had time to seal.
    pub(super) fn of_unsealed_segments() -> Filled {
        let mut filled = Filled::new(700);
        filled.some_of_everything();
        filled
    }

    /// All that is known stands in the checkpoint of the one segment that is left.
    pub(super) fn of_a_checkpoint() -> Filled {
        let mut filled = Filled::new(700);
        let mut rounds = 0;
        loop {
            filled.put("cursor/g", &"v".repeat(60 + rounds));
            filled.fixture.log.maintain().expect("maintenance");
            let names = prombus_log::Files::list(&*filled.fixture.disk).expect("names");
            if rounds > 3 && !names.contains(&"0000000000000001.seg".to_owned()) {
                return filled;
            }
            rounds += 1;
            assert!(rounds < 50, "no segment is ever full");
        }
    }

    /// A merged segment, a grouped one, one sealed in place, and one being written.
    pub(super) fn of_sealed_segments() -> Filled {
        let mut filled = Filled::new(900);
        filled.some_of_everything();
        filled.trim("t", 4);
        filled.fixture.log.maintain().expect("maintenance");
        for round in 0..8 {
            filled.store([
                PlannedEvent::new("t", format!(r#""t of round {round}""#)).with_key("k1"),
                PlannedEvent::new("u", format!(r#""u of round {round}""#))
                    .with_id(format!("round-{round}")),
            ]);
        }
        filled.fixture.log.maintain().expect("maintenance");
        for round in 0..5 {
            filled.store([PlannedEvent::new(
                "u",
                format!(r#""alone {round} {}""#, "x".repeat(100)),
            )]);
        }
        filled.fixture.log.maintain().expect("maintenance");
        filled.store([PlannedEvent::new("t", "0"), PlannedEvent::new("u", "0")]);
        filled
    }
}

impl Filled {
    fn new(segment_bytes: u64) -> Self {
        let fixture = Fixture::with_topic(segment_bytes, "t", TopicOptions::default());
        let options = TopicOptions {
            durability: Durability::Os,
            attributes: r#"{"schema":1}"#.to_owned(),
            ..TopicOptions::default()
        };
        fixture.commit(&Plan::topic("u", options)).expect("a topic");
        Self {
            fixture,
            ever: BTreeMap::new(),
        }
    }

    fn some_of_everything(&mut self) {
        self.store([
            PlannedEvent::new("t", "1"),
            PlannedEvent::new("t", r#"{"two":2}"#)
                .with_id("own-1")
                .with_key("k1"),
        ]);
        self.put("cursor/g", "5");
        self.store(
            (0..3).map(|at| PlannedEvent::new("u", at.to_string()).with_key(format!("k{at}"))),
        );
        let both = Plan {
            atomic: true,
            changes: vec![put("cursor/g", "6"), put("cursor/h", "1")],
            events: vec![
                PlannedEvent::new("u", r#""both""#).with_id("own-2"),
                PlannedEvent::new("t", r#""both""#),
            ],
        };
        self.commit(&both);
        let tombstone = PlannedEvent {
            tombstone: true,
            ..PlannedEvent::new("t", "null").with_key("k1")
        };
        self.store([tombstone]);
        self.commit(&Plan::topic("gone", TopicOptions::default()));
        self.store([PlannedEvent::new("gone", "1")]);
        let delete = Change::DeleteTopic {
            topic: "gone".into(),
        };
        self.commit(&Plan {
            changes: vec![delete],
            ..Plan::default()
        });
        self.trim("t", 2);
        self.store([PlannedEvent {
            ts: Some(77),
            ..PlannedEvent::new("t", r#""old time""#)
        }]);
    }

    fn store(&mut self, events: impl IntoIterator<Item = PlannedEvent>) {
        self.commit(&Plan::events(events));
    }

    fn put(&mut self, key: &str, value: &str) {
        self.commit(&Plan {
            changes: vec![put(key, value)],
            ..Plan::default()
        });
    }

    fn trim(&mut self, topic: &str, first_seq: u64) {
        let topic = topic.into();
        self.commit(&Plan {
            changes: vec![Change::Trim { topic, first_seq }],
            ..Plan::default()
        });
    }

    fn commit(&mut self, plan: &Plan) {
        self.fixture.commit(plan).expect("a commit");
        for (name, topic) in self.fixture.look().topics {
            for event in topic.events {
                let place = (name.to_string(), event.seq());
                self.ever.insert(place, event.json().to_owned());
            }
        }
    }

    /// Properly closed.
    pub(super) fn closed(self) -> Image {
        self.fixture.log.close().expect("it closes");
        self.at_rest(true)
    }

    /// As a killed process leaves it.
    pub(super) fn crashed(self) -> Image {
        self.at_rest(false)
    }

    fn at_rest(self, is_closed: bool) -> Image {
        let seen = self.fixture.look();
        let disk = self.fixture.disk.copy();
        let names = prombus_log::Files::list(&disk).expect("names");
        let data = names.iter().filter(|name| name.ends_with(".seg"));
        Image {
            active: data.max().expect("a segment").clone(),
            disk,
            segment_bytes: self.fixture.segment_bytes,
            seen,
            ever: self.ever,
            is_closed,
        }
    }
}

fn put(key: &str, value: &str) -> Change {
    Change::Put {
        key: key.into(),
        value: value.as_bytes().into(),
        expect: Expect::Any,
    }
}
