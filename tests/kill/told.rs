//! What the killed processes said.

use std::collections::{BTreeMap, BTreeSet};

/// All that was said, over all runs.
#[derive(Default)]
pub(crate) struct Told {
    /// (topic, seq) and id of acknowledged publishes.
    pub(crate) published: BTreeMap<(String, u64), String>,
    pub(crate) delivered: BTreeSet<(String, u64)>,
    pub(crate) acknowledged: BTreeSet<(String, u64)>,
    cursors: BTreeMap<String, u64>,
}

impl Told {
    /// Takes a line in; false if it says nothing of interest, such as one that the kill cut short.
    pub(crate) fn hear(&mut self, line: &str) -> bool {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["published", topic, seq, id] if id.len() == 36 => {
                let Ok(seq) = seq.parse() else { return false };
                let place = ((*topic).to_owned(), seq);
                let known = self.published.insert(place, (*id).to_owned());
                assert_eq!(known, None, "{topic} {seq} was given twice");
            }
            ["delivered", topic, seq] => return hear_place(&mut self.delivered, topic, seq),
            ["acknowledged", topic, seq] => return hear_place(&mut self.acknowledged, topic, seq),
            _ => return false,
        }
        true
    }

    pub(crate) fn published_to(&self, topic: &str) -> impl Iterator<Item = (u64, &str)> {
        let topic = topic.to_owned();
        self.published
            .iter()
            .filter(move |((other, _), _)| *other == topic)
            .map(|((_, seq), id)| (*seq, id.as_str()))
    }

    /// Where a group stood when last looked at.
    pub(crate) fn cursor(&self, topic: &str) -> u64 {
        self.cursors.get(topic).copied().unwrap_or(0)
    }

    pub(crate) fn move_cursor(&mut self, topic: &str, seq: u64) {
        assert!(seq >= self.cursor(topic), "{topic}: the cursor went back");
        self.cursors.insert(topic.to_owned(), seq);
    }
}

fn hear_place(places: &mut BTreeSet<(String, u64)>, topic: &str, seq: &str) -> bool {
    let Ok(seq) = seq.parse() else { return false };
    places.insert((topic.to_owned(), seq));
    true
}
