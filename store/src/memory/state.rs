//! All that the memory store holds, and how a batch changes it. The caller that has the store's lock has this.

use super::plan;
use super::topic::Topic;
use crate::record::EventBlock;
use crate::{
    Batch, Change, CommitError, EventOutcome, IfExists, Keyed, LimitReached, ReadError, Receipt,
    TAG_BITS, Tails, UnknownTopic,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Topics and keyed records.
#[derive(Debug)]
pub(super) struct State {
    pub(super) topics: HashMap<Arc<str>, Topic>,
    pub(super) keyed: BTreeMap<Arc<str>, Keyed>,
    /// Versions are counted over all keys, so that a key that was removed and comes back never sees one again.
    pub(super) last_version: u64,
    /// Bytes of all events held.
    pub(super) bytes: u64,
    pub(super) closed: bool,
    /// Beyond so many bytes no events are taken.
    max_bytes: u64,
    /// Tells this store's ids from another's.
    store_number: u64,
    topics_made: u64,
    /// Empty between commits; here so that its memory is used again.
    block: EventBlock,
}

impl State {
    pub(super) fn new(max_bytes: u64, store_number: u64) -> Self {
        Self {
            topics: HashMap::new(),
            keyed: BTreeMap::new(),
            last_version: 0,
            bytes: 0,
            closed: false,
            max_bytes,
            store_number,
            topics_made: 0,
            block: EventBlock::default(),
        }
    }

    pub(super) fn topic(&self, topic: &Arc<str>) -> Result<&Topic, ReadError> {
        self.topics.get(topic).ok_or_else(|| {
            let topic = topic.clone();
            UnknownTopic { topic }.into()
        })
    }

    /// Commits a batch as a whole, or leaves everything as it was.
    pub(super) fn commit(
        &mut self,
        batch: &Batch,
        now_ms: u64,
        tails: &Tails,
    ) -> Result<Receipt, CommitError> {
        if self.closed {
            return Err(CommitError::Closed);
        }
        batch.check_record_sizes()?;
        self.check_room(batch, now_ms)?;
        plan::check(self, batch, now_ms)?;
        let versions = self.change(batch.changes(), tails);
        let events = self.append(batch, now_ms, tails);
        Ok(Receipt { events, versions })
    }

    /// Applies retention and compaction to all topics.
    pub(super) fn maintain(&mut self, now_ms: u64) {
        for topic in self.topics.values_mut() {
            let before = topic.bytes;
            topic.maintain(now_ms, &mut self.block);
            self.bytes -= before - topic.bytes;
        }
    }

    /// Refuses events that do not fit, after a try at making room.
    fn check_room(&mut self, batch: &Batch, now_ms: u64) -> Result<(), LimitReached> {
        if batch.events().len() == 0 {
            return Ok(());
        }
        let wanted: usize = batch.events().map(|event| event.payload().len()).sum();
        if self.bytes + wanted as u64 > self.max_bytes {
            self.maintain(now_ms);
        }
        if self.bytes + wanted as u64 <= self.max_bytes {
            return Ok(());
        }
        Err(LimitReached {
            name: "memory_store_bytes",
            limit: self.max_bytes,
        })
    }

    /// Applies changes that were checked before, and returns the versions of what was put.
    fn change(&mut self, changes: &[Change], tails: &Tails) -> Vec<u64> {
        let mut versions = Vec::new();
        for change in changes {
            match change {
                Change::PutTopic {
                    topic,
                    options,
                    if_exists,
                } => {
                    match self.topics.get_mut(topic) {
                        Some(_) if *if_exists == IfExists::Keep => continue,
                        Some(existing) => existing.options = options.clone(),
                        None => {
                            let tag = self.next_tag();
                            let made = Topic::new(options.clone(), tag, self.topics_made);
                            self.topics.insert(topic.clone(), made);
                        }
                    }
                    tails.topics_changed();
                }
                Change::DeleteTopic { topic } => {
                    if let Some(removed) = self.topics.remove(topic) {
                        self.bytes -= removed.bytes;
                        tails.moved(topic, 0);
                        tails.topics_changed();
                    }
                }
                Change::Trim { topic, first_seq } => {
                    if let Some(topic) = self.topics.get_mut(topic) {
                        let before = topic.bytes;
                        topic.trim(*first_seq);
                        self.bytes -= before - topic.bytes;
                    }
                }
                Change::Put { key, value, .. } => {
                    self.last_version += 1;
                    versions.push(self.last_version);
                    let keyed = Keyed {
                        version: self.last_version,
                        value: value.clone(),
                    };
                    self.keyed.insert(key.clone(), keyed);
                }
                Change::Delete { key, .. } => {
                    self.keyed.remove(key);
                }
            }
        }
        versions
    }

    /// Appends the batch's events, each stretch for one topic at once.
    fn append(&mut self, batch: &Batch, now_ms: u64, tails: &Tails) -> Vec<EventOutcome> {
        let mut outcomes = Vec::with_capacity(batch.events().len());
        let mut events = batch.events().peekable();
        while let Some(first) = events.peek() {
            let name = first.topic();
            let stretch = std::iter::from_fn(|| events.next_if(|event| event.topic() == name));
            let Some(topic) = self.topics.get_mut(name) else {
                outcomes.extend(stretch.map(|_| EventOutcome::UnknownTopic));
                continue;
            };
            let before = topic.bytes;
            topic.append(stretch, now_ms, &mut self.block, &mut outcomes);
            self.bytes += topic.bytes - before;
            // Under the store's lock, so that watchers hear of tails in the order in which they moved.
            tails.moved(name, topic.tail_seq);
        }
        outcomes
    }

    /// A tag that no topic of this store had before: an odd factor runs through all numbers before one comes again.
    fn next_tag(&mut self) -> u32 {
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        self.topics_made += 1;
        let tag = mix(self.store_number).wrapping_add(self.topics_made.wrapping_mul(SPREAD));
        tag as u32 & ((1 << TAG_BITS) - 1)
    }
}

/// Spreads a small number over all bits, the finish of splitmix64.
fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
