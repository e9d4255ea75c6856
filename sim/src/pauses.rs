//! Which groups are known to be paused. A pause and what ends it overlap in time; a group counts as paused only where
//! nothing that could have ended the pause ran beside it.

use crate::model::GroupKey;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(crate) struct Pauses {
    paused: BTreeSet<GroupKey>,
    /// How often something began that ends a pause, and how many of these are under way.
    endings: BTreeMap<GroupKey, (u64, u64)>,
}

/// What a pause began with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PauseBegun {
    endings: u64,
    is_alone: bool,
}

impl Pauses {
    pub(crate) fn is_paused(&self, group: &GroupKey) -> bool {
        self.paused.contains(group)
    }

    /// A pause is asked for.
    pub(crate) fn begin(&self, group: &GroupKey) -> PauseBegun {
        let (endings, under_way) = self.endings.get(group).copied().unwrap_or_default();
        PauseBegun {
            endings,
            is_alone: under_way == 0,
        }
    }

    /// A pause was acknowledged.
    pub(crate) fn paused(&mut self, group: GroupKey, begun: PauseBegun) {
        let (endings, _) = self.endings.get(&group).copied().unwrap_or_default();
        if begun.is_alone && endings == begun.endings {
            self.paused.insert(group);
        }
    }

    /// Something begins that ends a pause: a resume, or the end of the group.
    pub(crate) fn ending(&mut self, group: &GroupKey) {
        self.paused.remove(group);
        let (endings, under_way) = self.endings.entry(group.clone()).or_default();
        *endings += 1;
        *under_way += 1;
    }

    /// It was answered.
    pub(crate) fn ended(&mut self, group: &GroupKey) {
        if let Some((_, under_way)) = self.endings.get_mut(group) {
            *under_way = under_way.saturating_sub(1);
        }
    }

    /// The process ends, and with it what was under way, which may have happened or not.
    pub(crate) fn restarting(&mut self) {
        for (_, under_way) in self.endings.values_mut() {
            *under_way = 0;
        }
    }
}
