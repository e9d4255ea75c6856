//! All groups at a glance, for metrics: no owner is asked or started for it, and no lock is held while it is put together.

use super::Bus;
use crate::error::GroupError;
use crate::group::GroupCounts;
use crate::group::record::{GroupRecord, parse_record_key, record_prefix_of_all};
use crate::group::registry::GroupName;
use crate::group::status::GroupStatus;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most groups of which something is remembered from one look to the next.
const MAX_CACHED_GROUPS: usize = 65_536;
/// How many events one look reads to learn their age; the others come with the next looks.
const MAX_AGES_READ: usize = 128;

/// A group among all the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMetrics {
    /// The topic.
    pub topic: Arc<str>,
    /// The group's name.
    pub group: Arc<str>,
    /// Whether nothing of it is stored.
    pub is_ephemeral: bool,
    /// What it has done since the bus was opened.
    pub counts: GroupCounts,
    /// Positions that are not settled.
    pub lag: u64,
    /// How old the oldest of them is; 0 where that is not known yet.
    pub oldest_unacked_ms: u64,
}

/// What the last looks found out and does not change by itself.
#[derive(Debug, Default)]
pub(crate) struct GroupMetricsCache {
    state: Mutex<CachedMetrics>,
}

#[derive(Debug, Default)]
struct CachedMetrics {
    /// Records by their keys, with the version that was read.
    records: HashMap<Arc<str>, (u64, GroupStatus)>,
    /// The oldest unsettled event of a group, by its position, and its time.
    oldest: HashMap<(Arc<str>, Arc<str>), (u64, u64)>,
}

impl GroupMetricsCache {
    fn lock(&self) -> MutexGuard<'_, CachedMetrics> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bus {
    /// Every group of every topic, in the order of their names, as its owner last told.
    pub async fn group_metrics(&self) -> Result<Vec<GroupMetrics>, GroupError> {
        let statuses = self.statuses().await?;
        let mut group_metrics = Vec::with_capacity(statuses.len());
        let (now_ms, mut reads_left) = (self.core.now_ms(), MAX_AGES_READ);
        let mut topic: Option<(Arc<str>, u64, u64)> = None;
        for (name, status) in statuses {
            if topic
                .as_ref()
                .is_none_or(|(known, ..)| *known != name.topic)
            {
                let info = self.core.store.topic(&name.topic);
                let (first, tail) = info.map_or((1, 0), |info| (info.first_seq, info.tail_seq));
                topic = Some((name.topic.clone(), first, tail));
            }
            let (first, tail) = topic
                .as_ref()
                .map_or((1, 0), |&(_, first, tail)| (first, tail));
            let lag = status.lag(first, tail);
            let oldest_ts = match lag {
                0 => None,
                _ => {
                    self.oldest_ts(&name, status.cursor + 1, &mut reads_left)
                        .await?
                }
            };
            group_metrics.push(GroupMetrics {
                topic: name.topic,
                group: name.group,
                is_ephemeral: name.ephemeral,
                counts: status.counts,
                lag,
                oldest_unacked_ms: oldest_ts.map_or(0, |ts| now_ms.saturating_sub(ts)),
            });
        }
        Ok(group_metrics)
    }

    async fn statuses(&self) -> Result<BTreeMap<GroupName, GroupStatus>, GroupError> {
        // Before those that are served, so that one that is let go in between is in one of the two.
        let stored = self.core.store.list(record_prefix_of_all()).await?;
        let (running_in, counts) = self.registry.statuses();
        let mut statuses: BTreeMap<GroupName, GroupStatus> = running_in
            .into_iter()
            .filter_map(|(name, status)| Some((name, status.get()?)))
            .collect();
        let mut cached = self.group_metrics.lock();
        if cached.records.len() > MAX_CACHED_GROUPS {
            cached.records.clear();
        }
        for (key, keyed) in stored {
            let Some((topic, group)) = parse_record_key(&key) else {
                continue;
            };
            let name = GroupName {
                topic: topic.into(),
                group: group.into(),
                ephemeral: false,
            };
            if statuses.contains_key(&name) {
                continue;
            }
            let known = cached.records.get(&key).copied();
            let status = match known.filter(|(version, _)| *version == keyed.version) {
                Some((_, status)) => status,
                None => {
                    // One that cannot be read is refused to whoever subscribes, which is where it is told.
                    let Ok(record) = GroupRecord::from_bytes(&keyed.value) else {
                        continue;
                    };
                    let status = GroupStatus::of_record(&record, GroupCounts::default());
                    cached.records.insert(key, (keyed.version, status));
                    status
                }
            };
            let counts = counts.get(&name).copied().unwrap_or_default();
            statuses.insert(name, GroupStatus { counts, ..status });
        }
        Ok(statuses)
    }

    /// The time of the oldest unsettled event, where it is known or may still be read.
    async fn oldest_ts(
        &self,
        name: &GroupName,
        seq: u64,
        reads_left: &mut usize,
    ) -> Result<Option<u64>, GroupError> {
        let key = (name.topic.clone(), name.group.clone());
        let known = self.group_metrics.lock().oldest.get(&key).copied();
        if let Some((_, ts)) = known.filter(|(known_seq, _)| *known_seq == seq) {
            return Ok(Some(ts));
        }
        if *reads_left == 0 {
            return Ok(None);
        }
        *reads_left -= 1;
        let event = self.first_event(&name.topic, seq).await?;
        let ts = event.map(|event| event.ts());
        if let Some(ts) = ts {
            let mut cached = self.group_metrics.lock();
            if cached.oldest.len() > MAX_CACHED_GROUPS {
                cached.oldest.clear();
            }
            cached.oldest.insert(key, (seq, ts));
        }
        Ok(ts)
    }
}
