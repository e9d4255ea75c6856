//! All groups at a glance, for metrics: no owner is asked or started for it, and no lock is held while it is put together.

use super::Bus;
use crate::error::GroupError;
use crate::group::directory::StoredGroup;
use crate::group::packed_status::PackedStatus;
use crate::group::record::{GroupRecord, parse_record_key, record_prefix_of_all};
use crate::group::registry::GroupName;
use crate::group::status::GroupStatus;
use prombus_interface::GroupCounts;
use prombus_store::LockExt;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

/// The most groups of which something is remembered from one look to the next.
const MAX_CACHED_GROUPS: usize = 65_536;
/// How many groups are looked at before others get their turn.
const GROUPS_OF_A_PAGE: usize = 1_024;
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
    /// Partitions that members hold, where the group is partitioned and served.
    pub partitions_held: u32,
    /// Partitions that no member holds.
    pub partitions_unassigned: u32,
}

/// What the last looks found out and does not change by itself.
#[derive(Debug, Default)]
pub(crate) struct GroupMetricsCache {
    state: Mutex<CachedMetrics>,
    /// Held while the records are listed, so that it is done once for all who wait for it.
    listing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct CachedMetrics {
    /// The oldest unsettled event of a group, by its position, and its time.
    oldest: HashMap<(Arc<str>, Arc<str>), (u64, u64)>,
}

impl GroupMetricsCache {
    fn lock(&self) -> MutexGuard<'_, CachedMetrics> {
        self.state.guard()
    }
}

impl Bus {
    /// Every group of every topic, in the order of their names, as its owner last reported.
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
                partitions_held: status.partitions.0,
                partitions_unassigned: status.partitions.1,
                oldest_unacked_ms: oldest_ts.map_or(0, |ts| now_ms.saturating_sub(ts)),
            });
        }
        Ok(group_metrics)
    }

    async fn statuses(&self) -> Result<Vec<(GroupName, GroupStatus)>, GroupError> {
        self.complete_directory().await?;
        let mut statuses: Vec<(GroupName, GroupStatus)> = Vec::new();
        loop {
            let after = statuses.last().map(|(name, _)| name);
            let page = self.registry.status_page(after, GROUPS_OF_A_PAGE);
            if page.is_empty() {
                return Ok(statuses);
            }
            statuses.extend(page);
            tokio::task::yield_now().await;
        }
    }

    /// Lists the records where that was not done lately. Only those that changed since are read.
    async fn complete_directory(&self) -> Result<(), GroupError> {
        if self.registry.is_directory_complete() {
            return Ok(());
        }
        let _listing = self.group_metrics.listing.lock().await;
        if self.registry.is_directory_complete() {
            return Ok(());
        }
        self.registry.begin_listing();
        let stored = self.core.store.list(record_prefix_of_all()).await?;
        let mut groups = BTreeMap::new();
        // Of very many groups most have the same name, in one topic after the other.
        let mut last_group: Arc<str> = Arc::from("");
        for (at, (key, keyed)) in stored.into_iter().enumerate() {
            if at % GROUPS_OF_A_PAGE == 0 {
                tokio::task::yield_now().await;
            }
            let Some((topic, group)) = parse_record_key(&key) else {
                continue;
            };
            if *last_group != *group {
                last_group = group.into();
            }
            let name = GroupName {
                topic: topic.into(),
                group: last_group.clone(),
                ephemeral: false,
            };
            let (name, known) = match self.registry.stored_group(&name) {
                Some((shared, known)) => (shared, Some(known)),
                None => (name, None),
            };
            let status = match known.filter(|known| known.version == Some(keyed.version)) {
                Some(known) => known.status,
                None => {
                    // One that cannot be read fails the next subscribe, which reports it.
                    let Ok(record) = GroupRecord::from_bytes(&keyed.value) else {
                        continue;
                    };
                    let counts = known.map(|known| known.status.counts);
                    GroupStatus::of_record(&record, counts.unwrap_or_default())
                }
            };
            let version = Some(keyed.version);
            groups.insert(name, PackedStatus::of(&StoredGroup { status, version }));
        }
        self.registry.listed(groups);
        Ok(())
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
