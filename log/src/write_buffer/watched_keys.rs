//! The last events of keys that a batch on its way expects something of.
//!
//! Readers see an event only when it is durable, but an expectation is compared with everything that has a position. So a
//! key is watched from before it is looked up in what readers see until its batch was taken in: what gets a position
//! meanwhile is noted here. Where no batch has an expectation nothing is watched, and publishing pays for one comparison.

use prombus_store::{EncodedEvent, KeyPosition};
use std::collections::HashMap;

/// Watched keys, by the topic's number and the key as JSON encodes it.
#[derive(Default)]
pub(crate) struct WatchedKeys {
    keys: HashMap<(u32, Box<[u8]>), Watched>,
    /// A batch is being taken in that expects something of keys: all keys are noted until it ends, for it may expect
    /// something of its own events, also in topics that it makes.
    notes_all: bool,
}

#[derive(Default)]
struct Watched {
    watchers: usize,
    /// The last event since it is watched.
    last: Option<KeyPosition>,
}

/// The last event of a key among those that readers saw.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SeenKey {
    /// The number of the topic it was found in.
    pub(crate) topic: u32,
    pub(crate) position: KeyPosition,
}

impl WatchedKeys {
    /// Notes the key's events from now on, until [`Self::end`].
    pub(crate) fn begin(&mut self, topic: u32, key: &[u8]) {
        self.keys.entry((topic, key.into())).or_default().watchers += 1;
    }

    pub(crate) fn end(&mut self, topic: u32, key: &[u8]) {
        let name = (topic, key.into());
        if let Some(watched) = self.keys.get_mut(&name) {
            watched.watchers = watched.watchers.saturating_sub(1);
            if watched.watchers == 0 {
                self.keys.remove(&name);
            }
        }
    }

    /// Notes all keys until [`Self::end_batch`].
    pub(super) fn begin_batch(&mut self) {
        self.notes_all = true;
    }

    pub(super) fn end_batch(&mut self) {
        self.notes_all = false;
        self.keys.retain(|_, watched| watched.watchers > 0);
    }

    /// Whether events have to be noted.
    pub(super) fn is_watching(&self) -> bool {
        self.notes_all || !self.keys.is_empty()
    }

    /// Notes an event that got its position.
    pub(super) fn note(&mut self, topic: u32, event: &EncodedEvent<'_>, position: KeyPosition) {
        let Some(key) = event.key_json() else {
            return;
        };
        let name = (topic, key.into());
        if self.notes_all {
            self.keys.entry(name).or_default().last = Some(position);
        } else if let Some(watched) = self.keys.get_mut(&name) {
            watched.last = Some(position);
        }
    }

    /// The last event of an event's key: one that was noted, else the one that readers saw.
    pub(super) fn last(
        &self,
        topic: u32,
        event: &EncodedEvent<'_>,
        seen: Option<SeenKey>,
    ) -> Option<KeyPosition> {
        let noted = event.key_json().and_then(|key| {
            let watched = self.keys.get(&(topic, key.into()))?;
            watched.last
        });
        let seen = seen.filter(|seen| seen.topic == topic);
        noted.or(seen.map(|seen| seen.position))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prombus_store::{Batch, Draft};

    fn at(seq: u64) -> KeyPosition {
        KeyPosition {
            seq,
            tombstone_ms: None,
        }
    }

    #[test]
    fn only_watched_keys_are_kept_and_only_while_somebody_watches() {
        let mut batch = Batch::new();
        for key in ["a", "b"] {
            let draft = Draft {
                key: Some(key),
                payload: "1",
                ..Draft::default()
            };
            batch.publish(&"t".into(), &draft);
        }
        let events: Vec<_> = batch.events().collect();
        let mut watched = WatchedKeys::default();
        assert!(!watched.is_watching());
        watched.begin(1, b"a");
        watched.begin(1, b"a");
        watched.note(1, &events[0], at(1));
        watched.note(1, &events[1], at(2));
        watched.note(2, &events[0], at(9));
        assert_eq!(watched.keys.len(), 1);
        let seen = |topic, seq| {
            Some(SeenKey {
                topic,
                position: at(seq),
            })
        };
        assert_eq!(watched.last(1, &events[0], seen(1, 0)), Some(at(1)));
        assert_eq!(watched.last(1, &events[1], seen(1, 7)), Some(at(7)));
        assert_eq!(watched.last(1, &events[1], seen(3, 7)), None);

        watched.begin_batch();
        watched.note(1, &events[1], at(3));
        assert_eq!(watched.last(1, &events[1], seen(1, 0)), Some(at(3)));
        watched.end_batch();
        assert_eq!(watched.last(1, &events[1], None), None);
        watched.end(1, b"a");
        assert!(watched.is_watching());
        watched.end(1, b"a");
        assert!(!watched.is_watching());
    }
}
