//! Whether the copies of the nodes are the same. Each node keeps a digest of what it has, tells it with its messages,
//! and compares what others tell with what it had at the same position.

use prombus_store::TopicInfo;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// So many positions back a digest of another node can be compared.
const MAX_HISTORY: usize = 4096;
/// So many boots are remembered with what their last digest came to.
const MAX_VERDICTS: usize = 64;

/// The digest of a copy: of every topic its name, incarnation and tail, and how many records were ever written. What two
/// nodes would decide differently shows in one of these.
#[derive(Debug, Default)]
pub(crate) struct Digest {
    topics: HashMap<Arc<str>, u64>,
    /// All of `topics` together, in no order.
    sum: u64,
    history: VecDeque<(u64, u64)>,
    /// Whether the last digest of each boot was ours, the newest at the end.
    verdicts: VecDeque<(u64, bool)>,
}

impl Digest {
    /// Takes in what a topic is now.
    pub(crate) fn topic(&mut self, name: &Arc<str>, info: Option<&TopicInfo>) {
        let now = info.map(|info| {
            let seed = info.incarnation.rotate_left(40) ^ info.tail_seq;
            xxh3_64_with_seed(name.as_bytes(), seed)
        });
        let before = match now {
            Some(now) => self.topics.insert(name.clone(), now),
            None => self.topics.remove(name),
        };
        self.sum = self.sum.wrapping_add(now.unwrap_or(0));
        self.sum = self.sum.wrapping_sub(before.unwrap_or(0));
    }

    /// Notes what the digest is at a position, and returns it.
    pub(crate) fn note(&mut self, position: u64, last_version: u64) -> u64 {
        let mut state = [0; 16];
        state[..8].copy_from_slice(&self.sum.to_le_bytes());
        state[8..].copy_from_slice(&last_version.to_le_bytes());
        let digest = xxh3_64(&state);
        if self.history.len() == MAX_HISTORY {
            self.history.pop_front();
        }
        self.history.push_back((position, digest));
        digest
    }

    /// Compares what another node has at a position with what this one had there. `None` where that cannot be told.
    pub(crate) fn compare(&mut self, boot: u64, position: u64, digest: u64) -> Option<bool> {
        let at = self
            .history
            .binary_search_by_key(&position, |(position, _)| *position);
        let (_, ours) = *self.history.get(at.ok()?)?;
        let is_equal = ours == digest;
        self.verdicts.retain(|(other, _)| *other != boot);
        if self.verdicts.len() == MAX_VERDICTS {
            self.verdicts.pop_front();
        }
        self.verdicts.push_back((boot, is_equal));
        Some(is_equal)
    }

    /// Whether more nodes have something else than have the same: then it is this copy that is wrong, or nobody knows.
    pub(crate) fn is_outvoted(&self) -> bool {
        let equal = self.verdicts.iter().filter(|(_, is_equal)| *is_equal);
        equal.count() * 2 < self.verdicts.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prombus_store::TopicOptions;

    fn info(name: &Arc<str>, incarnation: u64, tail_seq: u64) -> TopicInfo {
        TopicInfo {
            name: name.clone(),
            options: TopicOptions::default(),
            incarnation,
            first_seq: 1,
            tail_seq,
            events: 0,
            bytes: 0,
        }
    }

    fn digest_of(topics: &[(&str, u64, u64)], last_version: u64) -> u64 {
        let mut digest = Digest::default();
        for (name, incarnation, tail_seq) in topics {
            let name = Arc::from(*name);
            digest.topic(&name, Some(&info(&name, *incarnation, *tail_seq)));
        }
        digest.note(1, last_version)
    }

    #[test]
    fn it_says_what_is_there_and_not_how_it_came() {
        let (a, b) = (("a", 1, 5), ("b", 2, 3));
        assert_eq!(digest_of(&[a, b], 7), digest_of(&[b, ("a", 1, 4), a], 7));
        let others = [
            digest_of(&[a, b], 8),
            digest_of(&[a], 7),
            digest_of(&[a, ("b", 2, 4)], 7),
            digest_of(&[a, ("b", 3, 3)], 7),
            digest_of(&[a, ("c", 2, 3)], 7),
        ];
        assert!(others.iter().all(|other| *other != digest_of(&[a, b], 7)));
        let mut digest = Digest::default();
        let name = Arc::from("a");
        digest.topic(&name, Some(&info(&name, 1, 5)));
        digest.topic(&name, None);
        assert_eq!(digest.note(1, 0), digest_of(&[], 0));
    }

    #[test]
    fn the_majority_is_right() {
        let mut digest = Digest::default();
        let ours = digest.note(5, 1);
        assert!(!digest.is_outvoted());
        assert_eq!(digest.compare(1, 4, ours), None);
        assert_eq!(digest.compare(1, 5, ours + 1), Some(false));
        assert!(digest.is_outvoted());
        assert_eq!(digest.compare(2, 5, ours), Some(true));
        assert!(!digest.is_outvoted());
        assert_eq!(digest.compare(3, 5, ours + 1), Some(false));
        assert!(digest.is_outvoted());
        // The first one came back after a restart with another boot.
        assert_eq!(digest.compare(1, 5, ours), Some(true));
        assert!(!digest.is_outvoted());
    }
}
