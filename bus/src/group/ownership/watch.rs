//! What a node sees of the others' beats, and whether it may take a group over: pure functions of what was read and of
//! the node's own clock.

use super::record::{NodeRecord, OwnerRecord};
use super::{FRESH_MS, SILENT_MS};
use prombus_store::NodeBoot;
use std::collections::HashMap;

/// The beats of all nodes, as far as this one has looked.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    seen: HashMap<u64, Seen>,
    /// When the last look began: what was committed before is in it. `None` before the first one, and after one that
    /// failed.
    looked_ms: Option<u64>,
}

#[derive(Debug)]
struct Seen {
    record: NodeRecord,
    /// When the look ended that saw it first.
    since_ms: u64,
    /// Whether this boot's beat was seen to change.
    has_changed: bool,
}

/// How a node does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Its beat has just changed.
    Live,
    /// It may be either.
    Quiet,
    /// Its beat has not changed for long, so its owners have suspended themselves.
    Silent,
    /// There is nothing of it.
    Absent,
    /// The node has been started anew since.
    Replaced,
}

/// What to do about a group that has an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Take it over. With `grace`, members of the old owner may still hold what it has claimed.
    Take { grace: bool },
    /// Look again soon.
    Wait,
    /// Leave it to its owner.
    Leave,
}

impl Watch {
    /// Takes in the records of a look: they hold everything that was committed before `began_ms`, and were there at
    /// `ended_ms`.
    pub(crate) fn look(
        &mut self,
        records: impl IntoIterator<Item = (u64, NodeRecord)>,
        began_ms: u64,
        ended_ms: u64,
    ) {
        let mut before = std::mem::take(&mut self.seen);
        for (node, record) in records {
            let seen = match before.remove(&node) {
                Some(seen) if seen.record == record => seen,
                other => Seen {
                    has_changed: other.is_some_and(|seen| seen.record.boot == record.boot),
                    since_ms: ended_ms,
                    record,
                },
            };
            self.seen.insert(node, seen);
        }
        self.looked_ms = Some(began_ms);
    }

    /// A look failed. While this node does not see the others, it does not know whether they were silent, so it counts
    /// anew: an outage of the store must not end with everybody taking everything over.
    pub(crate) fn failed(&mut self) {
        self.seen.clear();
        self.looked_ms = None;
    }

    /// How the node of an owner does, as of the last look.
    pub(crate) fn standing(&self, node: u64, boot: u64) -> Standing {
        let Some(looked_ms) = self.looked_ms else {
            return Standing::Quiet;
        };
        let Some(seen) = self.seen.get(&node) else {
            return Standing::Absent;
        };
        let quiet_ms = looked_ms.saturating_sub(seen.since_ms);
        if seen.record.boot != boot {
            Standing::Replaced
        } else if quiet_ms >= SILENT_MS {
            Standing::Silent
        } else if seen.has_changed && quiet_ms < FRESH_MS {
            Standing::Live
        } else {
            Standing::Quiet
        }
    }

    /// Where a node said that it is.
    pub(crate) fn url(&self, node: u64) -> Option<&str> {
        self.seen.get(&node)?.record.url.as_deref()
    }
}

/// Whether this node may take a group from its owner.
pub(crate) fn decide(owner: &OwnerRecord, me: NodeBoot, standing: Standing) -> Decision {
    // Nobody else can be this node, so its earlier boots are gone with all their connections.
    if owner.released || owner.node == me.node {
        return Decision::Take { grace: false };
    }
    match standing {
        Standing::Replaced => Decision::Take { grace: false },
        Standing::Silent | Standing::Absent => Decision::Take { grace: true },
        Standing::Quiet => Decision::Wait,
        Standing::Live => Decision::Leave,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(boot: u64, beat: u64) -> (u64, NodeRecord) {
        let record = NodeRecord {
            boot,
            beat,
            ..NodeRecord::default()
        };
        (7, record)
    }

    #[test]
    fn silence_is_what_was_seen_not_to_change() {
        let mut watch = Watch::default();
        assert_eq!(watch.standing(7, 1), Standing::Quiet, "nothing was seen");
        watch.look([], 900, 910);
        assert_eq!(watch.standing(7, 1), Standing::Absent);
        watch.look([record(1, 5)], 1_000, 1_010);
        assert_eq!(watch.standing(7, 1), Standing::Quiet, "it may be long dead");
        watch.look([record(1, 6)], 1_500, 1_510);
        assert_eq!(watch.standing(7, 1), Standing::Live);
        watch.look([record(1, 6)], 4_009, 4_020);
        assert_eq!(watch.standing(7, 1), Standing::Quiet);
        watch.look([record(1, 6)], 4_010, 4_020);
        assert_eq!(watch.standing(7, 1), Standing::Silent);
        assert_eq!(watch.standing(7, 9), Standing::Replaced);
    }

    #[test]
    fn an_outage_of_the_store_makes_nobody_silent() {
        let mut watch = Watch::default();
        watch.look([record(1, 5)], 1_000, 1_010);
        watch.failed();
        assert_eq!(watch.standing(7, 1), Standing::Quiet);
        watch.look([record(1, 5)], 9_000, 9_010);
        assert_eq!(watch.standing(7, 1), Standing::Quiet);
    }
}
