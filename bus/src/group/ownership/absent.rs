//! Nodes that are gone for good: what they told of themselves is forgotten when it has not changed for long. A node that is
//! there again tells it anew with its next beat.

use super::IDLE_BEAT_MS;
use super::record::NodeRecord;
use std::collections::BTreeMap;

/// A node without a beat for so long is not listed any more. Many times the pause between two beats, so that a node that is
/// there is never taken for one that is not.
pub(super) const FORGOTTEN_AFTER_MS: u64 = 300_000;

/// Which nodes have not beaten, and since when, by this node's own clock.
#[derive(Debug, Default)]
pub(super) struct Absent {
    looked_ms: Option<u64>,
    seen: BTreeMap<u64, Seen>,
}

#[derive(Debug)]
struct Seen {
    boot: u64,
    beat: u64,
    since_ms: u64,
}

impl Absent {
    /// Whether it is time to look again.
    pub(super) fn is_due(&self, now_ms: u64) -> bool {
        self.looked_ms
            .is_none_or(|looked_ms| now_ms.saturating_sub(looked_ms) >= IDLE_BEAT_MS)
    }

    /// Takes in what nodes tell of themselves, and returns those that are to be forgotten.
    pub(super) fn look<'a>(
        &mut self,
        records: impl IntoIterator<Item = (u64, &'a NodeRecord)>,
        now_ms: u64,
    ) -> Vec<u64> {
        self.looked_ms = Some(now_ms);
        let mut before = std::mem::take(&mut self.seen);
        let mut forgotten = Vec::new();
        for (node, record) in records {
            let seen = before
                .remove(&node)
                .filter(|seen| (seen.boot, seen.beat) == (record.boot, record.beat));
            let seen = seen.unwrap_or(Seen {
                boot: record.boot,
                beat: record.beat,
                since_ms: now_ms,
            });
            if now_ms.saturating_sub(seen.since_ms) >= FORGOTTEN_AFTER_MS {
                forgotten.push(node);
            }
            self.seen.insert(node, seen);
        }
        forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [u64; 0] = [];

    fn record(boot: u64, beat: u64) -> NodeRecord {
        NodeRecord {
            boot,
            beat,
            ..NodeRecord::default()
        }
    }

    #[test]
    fn a_node_is_forgotten_when_its_beat_has_not_changed_for_long() {
        let mut absent = Absent::default();
        assert!(absent.is_due(0));
        let (dead, alive) = (record(1, 5), record(2, 1));
        assert_eq!(absent.look([(7, &dead), (8, &alive)], 1_000), NONE);
        assert!(!absent.is_due(1_001));
        assert!(absent.is_due(1_000 + IDLE_BEAT_MS));
        let almost = 1_000 + FORGOTTEN_AFTER_MS - 1;
        assert_eq!(absent.look([(7, &dead), (8, &record(2, 9))], almost), NONE);
        let later = almost + 1;
        assert_eq!(absent.look([(7, &dead), (8, &record(2, 9))], later), [7]);
        // It was started again meanwhile.
        assert_eq!(absent.look([(7, &record(3, 5))], later + 1), NONE);
    }

    #[test]
    fn what_is_gone_from_the_list_begins_anew() {
        let mut absent = Absent::default();
        let node = record(1, 5);
        absent.look([(7, &node)], 0);
        absent.look([], 1);
        assert_eq!(absent.look([(7, &node)], FORGOTTEN_AFTER_MS), NONE);
    }
}
