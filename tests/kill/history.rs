//! What the killed processes reported before they were killed.

use std::collections::{BTreeMap, BTreeSet};

/// Everything reported over all runs.
#[derive(Default)]
pub(crate) struct History {
    /// (topic, seq) and id of acknowledged publishes.
    pub(crate) published: BTreeMap<(String, u64), String>,
    pub(crate) delivered: BTreeSet<(String, u64)>,
    pub(crate) acknowledged: BTreeSet<(String, u64)>,
    cursors: BTreeMap<String, u64>,
}

impl History {
    /// Takes a line in; false if it says nothing of interest, such as one that the kill cut short.
    pub(crate) fn record(&mut self, line: &str) -> bool {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["published", topic, seq, id] if id.len() == 36 => {
                let Ok(seq) = seq.parse() else { return false };
                let position = ((*topic).to_owned(), seq);
                let known = self.published.insert(position, (*id).to_owned());
                assert_eq!(known, None, "{topic} {seq} was given twice");
            }
            ["delivered", topic, seq] => return record_position(&mut self.delivered, topic, seq),
            ["acknowledged", topic, seq] => {
                return record_position(&mut self.acknowledged, topic, seq);
            }
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

fn record_position(positions: &mut BTreeSet<(String, u64)>, topic: &str, seq: &str) -> bool {
    let Ok(seq) = seq.parse() else { return false };
    positions.insert((topic.to_owned(), seq));
    true
}
