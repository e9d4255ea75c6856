//! The partitions that a subscription has, as the server tells them and as the subscriber knows them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What has changed about the partitions that a subscription has of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The topic.
    pub topic: Arc<str>,
    /// Partitions that go to another member, as soon as it is confirmed that this one is done with them; after a
    /// reconnect, all that it had.
    pub revoked: Vec<u32>,
    /// Partitions that come to this subscription from now on.
    pub assigned: Vec<u32>,
}

/// The partitions of a subscription, by topic.
#[derive(Debug, Default)]
pub(super) struct HeldPartitions {
    topics: BTreeMap<Arc<str>, Held>,
    /// Partitions that are to be confirmed to the server.
    confirmed: Vec<(Arc<str>, Vec<u32>)>,
}

#[derive(Debug, Default)]
struct Held {
    /// What the server has assigned.
    assigned: BTreeSet<u32>,
    /// What the subscriber was told that it has.
    reported: BTreeSet<u32>,
    /// Of these, what it has lost since, perhaps to get it back.
    lost: BTreeSet<u32>,
    /// What the server waits to be confirmed.
    to_confirm: BTreeSet<u32>,
}

impl HeldPartitions {
    pub(super) fn assign(&mut self, topic: &str, partitions: &[u32]) {
        self.of(topic).assigned.extend(partitions);
    }

    /// The server takes partitions back. What the subscriber never knew of is confirmed at once.
    pub(super) fn revoke(&mut self, topic: &str, partitions: &[u32]) {
        let held = self.of(topic);
        let mut unknown = Vec::new();
        for partition in partitions {
            held.assigned.remove(partition);
            if held.reported.contains(partition) {
                held.lost.insert(*partition);
                held.to_confirm.insert(*partition);
            } else {
                unknown.push(*partition);
            }
        }
        if !unknown.is_empty() {
            self.confirmed.push((topic.into(), unknown));
        }
    }

    /// The connection is gone, and with it everything.
    pub(super) fn lose_all(&mut self) {
        self.confirmed.clear();
        for held in self.topics.values_mut() {
            held.assigned.clear();
            held.to_confirm.clear();
            held.lost.clone_from(&held.reported);
        }
    }

    /// What has changed about one topic since the subscriber last heard of it.
    pub(super) fn take(&mut self) -> Option<Assignment> {
        self.topics.iter_mut().find_map(|(topic, held)| {
            let revoked = std::mem::take(&mut held.lost);
            held.reported
                .retain(|partition| !revoked.contains(partition));
            let assigned: Vec<u32> = held.assigned.difference(&held.reported).copied().collect();
            held.reported.extend(&assigned);
            let assignment = Assignment {
                topic: topic.clone(),
                revoked: revoked.into_iter().collect(),
                assigned,
            };
            let is_change = !assignment.revoked.is_empty() || !assignment.assigned.is_empty();
            is_change.then_some(assignment)
        })
    }

    pub(super) fn has_changes(&self) -> bool {
        let is_changed =
            |held: &Held| !held.lost.is_empty() || !held.assigned.is_subset(&held.reported);
        self.topics.values().any(is_changed)
    }

    /// The subscriber is done with partitions.
    pub(super) fn confirm(&mut self, topic: &str, partitions: &[u32]) {
        let held = self.of(topic);
        let partitions = partitions.iter().copied();
        let confirmed: Vec<u32> = partitions
            .filter(|partition| held.to_confirm.remove(partition))
            .collect();
        if !confirmed.is_empty() {
            self.confirmed.push((topic.into(), confirmed));
        }
    }

    pub(super) fn take_confirmed(&mut self) -> Vec<(Arc<str>, Vec<u32>)> {
        std::mem::take(&mut self.confirmed)
    }

    fn of(&mut self, topic: &str) -> &mut Held {
        self.topics.entry(topic.into()).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(revoked: &[u32], assigned: &[u32]) -> Option<Assignment> {
        Some(Assignment {
            topic: "t".into(),
            revoked: revoked.to_vec(),
            assigned: assigned.to_vec(),
        })
    }

    #[test]
    fn what_is_revoked_is_confirmed_when_the_subscriber_says_so() {
        let mut held = HeldPartitions::default();
        held.assign("t", &[1, 2]);
        assert_eq!(held.take(), change(&[], &[1, 2]));
        held.revoke("t", &[2]);
        assert!(held.take_confirmed().is_empty());
        assert_eq!(held.take(), change(&[2], &[]));
        held.confirm("t", &[1, 2]);
        assert_eq!(
            held.take_confirmed(),
            [("t".into(), vec![2])],
            "1 was not revoked"
        );
        held.confirm("t", &[2]);
        assert!(held.take_confirmed().is_empty(), "once");
    }

    #[test]
    fn what_nobody_knew_of_is_confirmed_at_once() {
        let mut held = HeldPartitions::default();
        held.assign("t", &[1]);
        held.revoke("t", &[1]);
        assert_eq!(held.take_confirmed(), [("t".into(), vec![1])]);
        assert_eq!(held.take(), None);
    }

    #[test]
    fn what_went_and_came_back_is_told_as_both() {
        let mut held = HeldPartitions::default();
        held.assign("t", &[1]);
        assert!(held.take().is_some());
        held.revoke("t", &[1]);
        held.assign("t", &[1]);
        assert!(held.has_changes());
        assert_eq!(held.take(), change(&[1], &[1]));
        assert!(!held.has_changes());
    }

    #[test]
    fn a_lost_connection_takes_all_and_needs_no_confirmation() {
        let mut held = HeldPartitions::default();
        held.assign("t", &[1, 2]);
        assert!(held.take().is_some());
        held.revoke("t", &[1]);
        held.lose_all();
        held.assign("t", &[2, 3]);
        assert_eq!(held.take(), change(&[1, 2], &[2, 3]));
        held.confirm("t", &[1, 2]);
        assert!(held.take_confirmed().is_empty());
    }
}
