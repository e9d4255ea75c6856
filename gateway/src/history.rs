//! What the server did in the last fifteen minutes, in rings of a fixed size, so that a page that is opened shows how it
//! came about. A task takes a sample every [`HISTORY_INTERVAL_MS`]; publishing and consuming take no part in it.

mod ring;
mod sampler;
#[cfg(test)]
mod tests;

pub(crate) use sampler::record;

use prombus::LockExt;
use prombus::SyncTimeCounts;
use ring::Ring;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::watch;

/// How far samples are apart.
pub(crate) const HISTORY_INTERVAL_MS: u64 = 2_000;
/// How many samples are kept: fifteen minutes of them.
const HISTORY_SAMPLES: usize = 450;
/// Samples that make one slot of a topic's or a group's own history: ten seconds.
const SLOT_SAMPLES: u64 = 5;
/// How many slots are kept.
pub(crate) const HISTORY_SLOTS: usize = 90;
/// Slots of a minute.
const MINUTE_SLOTS: usize = 6;
/// The most topics that have a history of their own; only those that got events lately need one.
const MAX_TOPIC_HISTORIES: usize = 1_000;
/// The most groups that have a history of their own; only those that lag or lagged lately need one.
const MAX_GROUP_HISTORIES: usize = 1_000;
/// Slots over which a lag has to grow before it is called growing: five minutes.
const GROWTH_SLOTS: usize = 30;
/// The least slots that say anything about growth.
const MIN_GROWTH_SLOTS: usize = 6;

/// One sample: counts since the one before, and how things are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) ts: u64,
    pub(crate) published: u64,
    pub(crate) delivered: u64,
    pub(crate) acked: u64,
    pub(crate) nacked: u64,
    pub(crate) redelivered: u64,
    pub(crate) dead_lettered: u64,
    pub(crate) rate_limited: u64,
    pub(crate) fsyncs: u64,
    pub(crate) fsync_p50_us: u64,
    pub(crate) fsync_p99_us: u64,
    pub(crate) connections: u64,
    pub(crate) store_bytes: u64,
    pub(crate) lag: u64,
}

/// What is read of the server for a sample. Counts are totals since something was opened.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(crate) now_ms: u64,
    pub(crate) topics: Vec<TopicReading>,
    /// None where they were not read this time, and are as they were.
    pub(crate) groups: Option<Vec<GroupReading>>,
    pub(crate) rate_limited: u64,
    pub(crate) connections: u64,
    pub(crate) store_bytes: u64,
    pub(crate) syncs: SyncTimeCounts,
}

#[derive(Debug, Clone)]
pub(crate) struct TopicReading {
    pub(crate) topic: Arc<str>,
    pub(crate) incarnation: u64,
    pub(crate) tail_seq: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct GroupReading {
    pub(crate) topic: Arc<str>,
    pub(crate) group: Arc<str>,
    pub(crate) is_ephemeral: bool,
    pub(crate) counts: Counts,
    pub(crate) lag: u64,
}

/// What a group counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) delivered: u64,
    pub(crate) acked: u64,
    pub(crate) nacked: u64,
    pub(crate) redelivered: u64,
    pub(crate) dead_lettered: u64,
}

/// How much a group's lag has grown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LagGrowth {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) over_ms: u64,
}

/// The rings, shared by the sampler and the routes that show them.
#[derive(Debug)]
pub(crate) struct History {
    recorded: Mutex<Recorded>,
    /// How many samples there were; changes with each.
    taken: watch::Sender<u64>,
}

type GroupName = (Arc<str>, Arc<str>);

#[derive(Debug)]
struct Recorded {
    samples: Ring<Sample>,
    /// Published events by slot, of topics that got some lately.
    topics: BTreeMap<Arc<str>, Ring<u64>>,
    /// Lag by slot, of groups that had some lately.
    groups: BTreeMap<GroupName, Ring<u64>>,
    /// What the reading before said, to tell what is new; `None` before the first one.
    before: Option<Before>,
    taken: u64,
}

/// Topics and groups by the hash of their names, because there may be very many: two with one hash would only be counted
/// wrongly in one sample.
#[derive(Debug, Default)]
struct Before {
    hashing: RandomState,
    /// Incarnation and tail of each topic.
    tails: HashMap<u64, (u64, u64)>,
    /// Of groups that have counted anything.
    counts: HashMap<u64, Counts>,
    /// The lag of all groups together.
    lag: u64,
    rate_limited: u64,
    syncs: SyncTimeCounts,
}

impl Default for History {
    fn default() -> Self {
        Self {
            recorded: Mutex::new(Recorded {
                samples: Ring::new(HISTORY_SAMPLES),
                topics: BTreeMap::new(),
                groups: BTreeMap::new(),
                before: None,
                taken: 0,
            }),
            taken: watch::Sender::new(0),
        }
    }
}

impl History {
    /// Adds what a reading says. The first one is only what later ones are compared with.
    pub(crate) fn take(&self, reading: Reading) {
        let mut recorded = self.lock();
        recorded.take(reading);
        let taken = recorded.taken;
        drop(recorded);
        self.taken.send_replace(taken);
    }

    /// Samples taken after a time, oldest first.
    pub(crate) fn samples_after(&self, ts: u64) -> Vec<Sample> {
        let recorded = self.lock();
        let samples = recorded.samples.iter().copied();
        samples.filter(|sample| sample.ts > ts).collect()
    }

    /// Changes with each sample.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.taken.subscribe()
    }

    /// Events of a topic by slot, oldest first; empty where it got none.
    pub(crate) fn topic(&self, topic: &str) -> Vec<u64> {
        let recorded = self.lock();
        let ring = recorded.topics.get(topic);
        ring.map_or_else(Vec::new, |ring| ring.iter().copied().collect())
    }

    /// Events of each topic in the last minute, of those that got some.
    pub(crate) fn per_minute(&self) -> HashMap<Arc<str>, u64> {
        let recorded = self.lock();
        let topics = recorded.topics.iter();
        topics
            .map(|(topic, ring)| (topic.clone(), last_minute(ring)))
            .collect()
    }

    /// A group's lag by slot, oldest first; empty where it had none.
    pub(crate) fn group(&self, topic: &str, group: &str) -> Vec<u64> {
        let recorded = self.lock();
        let ring = recorded.groups.get(&(topic.into(), group.into()));
        ring.map_or_else(Vec::new, |ring| ring.iter().copied().collect())
    }

    /// Groups whose lag has grown over the last minutes without a break.
    pub(crate) fn growing(&self) -> Vec<(GroupName, LagGrowth)> {
        let recorded = self.lock();
        let groups = recorded.groups.iter();
        groups
            .filter_map(|(name, ring)| Some((name.clone(), growth(ring)?)))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.guard()
    }
}

impl Recorded {
    fn take(&mut self, reading: Reading) {
        let is_first = self.before.is_none();
        let mut before = self.before.take().unwrap_or_default();
        let is_new_slot = self.taken.is_multiple_of(SLOT_SAMPLES);
        let mut sample = Sample {
            ts: reading.now_ms,
            rate_limited: reading.rate_limited.saturating_sub(before.rate_limited),
            connections: reading.connections,
            store_bytes: reading.store_bytes,
            ..Sample::default()
        };
        sample.published = self.take_topics(&mut before, reading.topics, is_first, is_new_slot);
        let counts = match reading.groups {
            Some(groups) => self.take_groups(&mut before, groups, is_new_slot),
            None => Counts::default(),
        };
        sample.lag = before.lag;
        sample.delivered = counts.delivered;
        sample.acked = counts.acked;
        sample.nacked = counts.nacked;
        sample.redelivered = counts.redelivered;
        sample.dead_lettered = counts.dead_lettered;
        let syncs = reading.syncs.since(&before.syncs);
        sample.fsyncs = syncs.total();
        sample.fsync_p50_us = syncs.percentile_micros(50);
        sample.fsync_p99_us = syncs.percentile_micros(99);
        before.rate_limited = reading.rate_limited;
        before.syncs = reading.syncs;
        self.before = Some(before);
        if !is_first {
            self.samples.push(sample);
            self.taken += 1;
        }
    }

    /// Counts what topics got since the last reading, by slot and together.
    fn take_topics(
        &mut self,
        before: &mut Before,
        topics: Vec<TopicReading>,
        is_first: bool,
        is_new_slot: bool,
    ) -> u64 {
        if is_new_slot {
            for ring in self.topics.values_mut() {
                ring.push(0);
            }
        }
        let mut tails = HashMap::with_capacity(topics.len());
        let mut published = 0;
        for reading in topics {
            let hash = before.hashing.hash_one(&reading.topic);
            let known = before.tails.get(&hash);
            let known = known.filter(|(incarnation, _)| *incarnation == reading.incarnation);
            let tail_before = match known {
                Some((_, tail)) => *tail,
                // What was stored before the server was started was not published since.
                None if is_first => reading.tail_seq,
                None => 0,
            };
            let count = reading.tail_seq.saturating_sub(tail_before);
            if count > 0 {
                published += count;
                self.count_topic(&reading.topic, count);
            }
            let tail = (reading.incarnation, reading.tail_seq);
            tails.insert(hash, tail);
        }
        before.tails = tails;
        if is_new_slot {
            self.topics.retain(|topic, ring| {
                let hash = before.hashing.hash_one(topic);
                ring.iter().any(|count| *count > 0) && before.tails.contains_key(&hash)
            });
        }
        published
    }

    fn count_topic(&mut self, topic: &Arc<str>, count: u64) {
        if let Some(slot) = self.topics.get_mut(topic).and_then(Ring::last_mut) {
            *slot += count;
        } else if self.topics.len() < MAX_TOPIC_HISTORIES {
            let mut ring = Ring::new(HISTORY_SLOTS);
            ring.push(count);
            self.topics.insert(topic.clone(), ring);
        }
    }

    /// Counts what groups did since the last reading, and notes their lag.
    fn take_groups(
        &mut self,
        before: &mut Before,
        groups: Vec<GroupReading>,
        is_new_slot: bool,
    ) -> Counts {
        let mut counts = HashMap::new();
        let mut together = Counts::default();
        let mut lags = HashMap::new();
        before.lag = 0;
        for reading in groups {
            let name = (reading.topic, reading.group);
            let hash = before.hashing.hash_one(&name);
            let known = before.counts.get(&hash).copied().unwrap_or_default();
            together = together.with(reading.counts.since(known));
            if !reading.is_ephemeral {
                before.lag += reading.lag;
                if reading.lag > 0 || self.groups.contains_key(&name) {
                    lags.insert(name.clone(), reading.lag);
                }
            }
            if reading.counts != Counts::default() {
                counts.insert(hash, reading.counts);
            }
        }
        before.counts = counts;
        if is_new_slot {
            self.take_lags(&lags);
        }
        together
    }

    fn take_lags(&mut self, lags: &HashMap<GroupName, u64>) {
        self.groups.retain(|name, ring| match lags.get(name) {
            Some(lag) => {
                ring.push(*lag);
                ring.iter().any(|lag| *lag > 0)
            }
            None => false,
        });
        for (name, lag) in lags.iter().filter(|(_, lag)| **lag > 0) {
            let has_room = self.groups.len() < MAX_GROUP_HISTORIES;
            if has_room && !self.groups.contains_key(name) {
                let mut ring = Ring::new(HISTORY_SLOTS);
                ring.push(*lag);
                self.groups.insert(name.clone(), ring);
            }
        }
    }
}

impl Counts {
    /// A group that was removed and made again counts from nothing.
    fn since(self, before: Self) -> Self {
        Self {
            delivered: self.delivered.saturating_sub(before.delivered),
            acked: self.acked.saturating_sub(before.acked),
            nacked: self.nacked.saturating_sub(before.nacked),
            redelivered: self.redelivered.saturating_sub(before.redelivered),
            dead_lettered: self.dead_lettered.saturating_sub(before.dead_lettered),
        }
    }

    fn with(self, other: Self) -> Self {
        Self {
            delivered: self.delivered + other.delivered,
            acked: self.acked + other.acked,
            nacked: self.nacked + other.nacked,
            redelivered: self.redelivered + other.redelivered,
            dead_lettered: self.dead_lettered + other.dead_lettered,
        }
    }
}

fn last_minute(ring: &Ring<u64>) -> u64 {
    ring.iter().rev().take(MINUTE_SLOTS).sum()
}

fn growth(ring: &Ring<u64>) -> Option<LagGrowth> {
    let newest: Vec<u64> = ring.iter().rev().take(GROWTH_SLOTS).copied().collect();
    if newest.len() < MIN_GROWTH_SLOTS {
        return None;
    }
    // Newest first: each must be at least what came before it.
    let has_a_break = newest.windows(2).any(|pair| pair[0] < pair[1]);
    let (to, from) = (*newest.first()?, *newest.last()?);
    let over_ms = (newest.len() as u64 - 1) * SLOT_SAMPLES * HISTORY_INTERVAL_MS;
    (!has_a_break && to > from).then_some(LagGrowth { from, to, over_ms })
}
