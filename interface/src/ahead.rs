//! What the loader of a table of keys knows already when it follows the topic.
//!
//! Keys may change while the table is read. What was read of a key then is newer than the position that the table counts
//! from, so its events up to there are left out when the topic is followed: every change is in the table or follows,
//! never both and never neither.

use std::borrow::Cow;
use std::collections::HashMap;

/// The most keys that may change while a table is loaded.
pub const MAX_AHEAD_KEYS: usize = 1 << 20;

/// For some keys, everything up to a position is known.
#[derive(Debug, Default)]
pub struct Ahead {
    by_key: HashMap<String, u64>,
    last_seq: u64,
}

impl Ahead {
    /// Notes that everything of a key up to `seq` is known.
    pub fn note(&mut self, key: String, seq: u64) {
        self.last_seq = self.last_seq.max(seq);
        self.by_key.insert(key, seq);
    }

    /// Whether more keys changed than may; the table has to be loaded again.
    pub fn is_too_much(&self) -> bool {
        self.by_key.len() > MAX_AHEAD_KEYS
    }

    /// Leaves out what is known already of events that begin at `next_seq` or behind it; `key_and_seq` gives both of an
    /// event.
    pub fn leave_out<E>(
        &mut self,
        events: &mut Vec<E>,
        next_seq: u64,
        key_and_seq: impl for<'e> Fn(&'e E) -> (Option<Cow<'e, str>>, u64),
    ) {
        if self.by_key.is_empty() {
            return;
        }
        if next_seq > self.last_seq {
            self.by_key = HashMap::new();
            return;
        }
        events.retain(|event| {
            let (key, seq) = key_and_seq(event);
            let known_seq = key.and_then(|key| self.by_key.get(&*key).copied());
            known_seq.is_none_or(|known_seq| seq > known_seq)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts<'e>(event: &'e (&'static str, u64)) -> (Option<Cow<'e, str>>, u64) {
        (Some(Cow::Borrowed(event.0)), event.1)
    }

    #[test]
    fn what_the_table_has_already_is_left_out_once() {
        let mut ahead = Ahead::default();
        ahead.note("a".to_owned(), 7);
        ahead.note("b".to_owned(), 5);
        let all = vec![("a", 5), ("b", 5), ("c", 6), ("a", 7), ("b", 8)];
        let mut events = all.clone();
        ahead.leave_out(&mut events, 5, parts);
        assert_eq!(events, [("c", 6), ("b", 8)]);
        // Behind the last of them nothing is known any more.
        let mut later = all.clone();
        ahead.leave_out(&mut later, 8, parts);
        assert_eq!(later, all);
        assert!(ahead.by_key.is_empty());
    }
}
