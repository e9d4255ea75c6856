//! The stored groups as they were last known, so that looking at all groups reads no records: owners report theirs when they
//! end, and now and then the records are listed, because other buses on the same store write some too.

use super::packed_status::PackedStatus;
use super::registry::GroupName;
use super::status::GroupStatus;
use prombus_interface::GroupCounts;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

/// How long what was listed is taken to be complete.
const LISTED_FOR_MS: u64 = 30_000;

#[derive(Debug, Default)]
pub(crate) struct Directory {
    groups: BTreeMap<GroupName, PackedStatus>,
    /// When all records were listed, in monotonic time.
    listed_at_ms: Option<u64>,
    /// What changes while the records are being listed, which the list need not know.
    listing: Option<Meanwhile>,
}

/// What has changed since a listing began.
#[derive(Debug, Default)]
struct Meanwhile {
    groups: BTreeSet<GroupName>,
    removed_topics: BTreeSet<Arc<str>>,
}

/// A group without an owner, or one as it was before its owner began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredGroup {
    pub(crate) status: GroupStatus,
    /// The version of the record that says so, where it was read.
    pub(crate) version: Option<u64>,
}

impl Directory {
    /// Whether it knows all groups.
    pub(crate) fn is_complete(&self, now_ms: u64) -> bool {
        self.listed_at_ms
            .is_some_and(|at_ms| now_ms.saturating_sub(at_ms) < LISTED_FOR_MS)
    }

    pub(crate) fn get(&self, name: &GroupName) -> Option<StoredGroup> {
        self.groups.get(name).map(PackedStatus::unpack)
    }

    /// The same with its name as it is kept, for a listing to share.
    pub(crate) fn get_named(&self, name: &GroupName) -> Option<(GroupName, StoredGroup)> {
        let (name, group) = self.groups.get_key_value(name)?;
        Some((name.clone(), group.unpack()))
    }

    /// What a group has done since the bus was opened.
    pub(crate) fn counts(&self, name: &GroupName) -> GroupCounts {
        self.get(name)
            .map(|group| group.status.counts)
            .unwrap_or_default()
    }

    /// An owner has ended, and this is how its group is stored.
    pub(crate) fn stored(&mut self, name: &GroupName, status: GroupStatus) {
        let group = StoredGroup {
            status,
            version: None,
        };
        self.groups.insert(name.clone(), PackedStatus::of(&group));
        self.note_changed(name);
    }

    /// A group is not stored any more.
    pub(crate) fn removed(&mut self, name: &GroupName) {
        self.groups.remove(name);
        self.note_changed(name);
    }

    /// The groups of a topic are not stored any more.
    pub(crate) fn removed_topic(&mut self, topic: &str) {
        self.groups.retain(|name, _| &*name.topic != topic);
        // It may have been made again, with groups that are stored already.
        self.outdate();
        if let Some(meanwhile) = &mut self.listing {
            meanwhile.removed_topics.insert(topic.into());
        }
    }

    /// Another bus may have changed something.
    pub(crate) fn outdate(&mut self) {
        self.listed_at_ms = None;
    }

    /// The records are about to be listed.
    pub(crate) fn begin_listing(&mut self) {
        self.outdate();
        self.listing = Some(Meanwhile::default());
    }

    /// The records were listed. Of what changed meanwhile this knows more than the list.
    pub(crate) fn listed(&mut self, groups: BTreeMap<GroupName, PackedStatus>, now_ms: u64) {
        let known = std::mem::replace(&mut self.groups, groups);
        let meanwhile = self.listing.take().unwrap_or_default();
        let removed_topics = meanwhile.removed_topics;
        self.listed_at_ms = removed_topics.is_empty().then_some(now_ms);
        if !removed_topics.is_empty() {
            self.groups
                .retain(|name, _| !removed_topics.contains(&name.topic));
        }
        for name in meanwhile.groups {
            match known.get(&name) {
                Some(group) => self.groups.insert(name, group.clone()),
                None => self.groups.remove(&name),
            };
        }
    }

    /// The next groups in the order of their names.
    pub(crate) fn page(
        &self,
        after: Option<&GroupName>,
        limit: usize,
    ) -> impl Iterator<Item = (&GroupName, GroupStatus)> {
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.groups.range((after, Bound::Unbounded)).take(limit);
        next.map(|(name, group)| (name, group.unpack().status))
    }

    fn note_changed(&mut self, name: &GroupName) {
        if let Some(meanwhile) = &mut self.listing {
            meanwhile.groups.insert(name.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(topic: &str, group: &str) -> GroupName {
        GroupName {
            topic: topic.into(),
            group: group.into(),
            ephemeral: false,
        }
    }

    fn at(cursor: u64) -> StoredGroup {
        StoredGroup {
            status: GroupStatus {
                cursor,
                ..GroupStatus::default()
            },
            version: Some(1),
        }
    }

    fn cursors(directory: &Directory) -> Vec<(String, u64)> {
        let all = directory.page(None, 100);
        all.map(|(name, status)| (format!("{}/{}", name.topic, name.group), status.cursor))
            .collect()
    }

    #[test]
    fn what_changes_during_a_listing_wins_over_the_list() {
        let mut directory = Directory::default();
        directory.stored(&name("t", "early"), at(1).status);
        directory.begin_listing();
        assert!(!directory.is_complete(0));
        directory.stored(&name("t", "moved"), at(9).status);
        directory.removed(&name("t", "removed"));
        directory.removed_topic("gone");
        directory.stored(&name("gone", "new"), at(7).status);
        let listed = [
            (name("t", "early"), at(2)),
            (name("t", "moved"), at(3)),
            (name("t", "removed"), at(4)),
            (name("gone", "old"), at(5)),
            (name("t", "other"), at(6)),
        ];
        let listed = listed.map(|(name, group)| (name, PackedStatus::of(&group)));
        directory.listed(BTreeMap::from(listed), 1_000);
        let expected = [
            ("gone/new", 7),
            ("t/early", 2),
            ("t/moved", 9),
            ("t/other", 6),
        ];
        assert_eq!(
            cursors(&directory),
            expected.map(|(name, at)| (name.to_owned(), at))
        );
        assert!(
            !directory.is_complete(1_000),
            "the topic may have been made again"
        );
        let again = directory.groups.clone();
        directory.begin_listing();
        directory.listed(again, 2_000);
        assert!(directory.is_complete(2_000 + LISTED_FOR_MS - 1));
        assert!(!directory.is_complete(2_000 + LISTED_FOR_MS));
        directory.removed_topic("t");
        assert_eq!(cursors(&directory), [("gone/new".to_owned(), 7)]);
        let rest = directory.page(Some(&name("gone", "new")), 9).count();
        assert_eq!(rest, 0);
    }
}
