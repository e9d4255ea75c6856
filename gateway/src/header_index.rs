//! Events by header and by cause, for `/find`. Only topics with `index_headers` have an index.
//!
//! The index is in memory and is brought up to date by each query, which first reads the events since the last one. So publishing pays nothing for it, and after a start the first query reads the topic once. It covers the newest
//! events of a topic, up to a limit for the whole server; a reply says from which position on.

use crate::api_error::ApiError;
use prombus::LockExt;
use prombus::{Pattern, ReadFrom, ReadLimit, Store, StoredEvent};
use prombus_api::{Code, Record};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard};

/// The most events of a topic that are read to build its index.
const MAX_INDEXED_EVENTS: u64 = 1_000_000;
/// The most entries of all indexes together: one for each indexed header and cause of an event.
const MAX_INDEX_ENTRIES: usize = 2_000_000;
/// The most topics that have an index at a time; the least recently used one goes.
const MAX_INDEXED_TOPICS: usize = 256;
/// How much is read at a time.
const PAGE: ReadLimit = ReadLimit {
    events: 2_048,
    bytes: 4 << 20,
};

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    Header { name: String, value: String },
    CausedBy(String),
}

/// The indexes of all topics.
#[derive(Debug)]
pub(crate) struct HeaderIndexes {
    /// Which headers are indexed, by the first pattern that matches a topic.
    headers: Vec<(Pattern, Vec<String>)>,
    topics: Mutex<Topics>,
    hashes: RandomState,
}

#[derive(Debug, Default)]
struct Topics {
    /// The most recently used one last.
    by_name: Vec<(Arc<str>, Arc<tokio::sync::Mutex<TopicIndex>>)>,
}

/// The index of one topic.
#[derive(Debug, Default)]
struct TopicIndex {
    incarnation: Option<u64>,
    next_seq: u64,
    /// The first position that it covers.
    from_seq: u64,
    /// Positions by the hash of what is indexed.
    seqs: HashMap<u64, VecDeque<u64>>,
    /// What `seqs` holds, in the order of positions, so that the oldest can go.
    entries: VecDeque<(u64, u64)>,
}

/// Where the events are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Positions that may match, ascending; two values can have one hash.
    pub(crate) seqs: Vec<u64>,
    /// The first position that the index covers.
    pub(crate) from_seq: u64,
}

impl HeaderIndexes {
    pub(crate) fn new(headers: Vec<(Pattern, Vec<String>)>) -> Self {
        Self {
            headers,
            topics: Mutex::default(),
            hashes: RandomState::new(),
        }
    }

    /// Looks something up, after reading what was published since the last time.
    pub(crate) async fn find(
        &self,
        store: &dyn Store,
        topic: &Arc<str>,
        wanted: &Wanted,
    ) -> Result<Found, ApiError> {
        let headers = self.headers_of(topic, wanted)?;
        let index = self.index_of(topic);
        let mut index = index.lock().await;
        self.follow(&mut index, store, topic, headers).await?;
        let seqs = index.seqs.get(&self.hash(wanted));
        Ok(Found {
            seqs: seqs.into_iter().flatten().copied().collect(),
            from_seq: index.from_seq,
        })
    }

    /// The headers that are indexed in a topic, if what is wanted is among them.
    fn headers_of(&self, topic: &str, wanted: &Wanted) -> Result<&[String], ApiError> {
        let pattern = self
            .headers
            .iter()
            .find(|(pattern, _)| pattern.matches(topic));
        let bad = |message: String| ApiError::new(Code::BadFrame, message);
        let Some((_, headers)) = pattern else {
            let message = format!("topic {topic} has no index; set index_headers for it");
            return Err(bad(message));
        };
        match wanted {
            Wanted::Header { name, .. } if !headers.contains(name) => {
                let message = format!(
                    "header: {name:?} is not indexed in topic {topic}; index_headers has {}",
                    headers.join(", ")
                );
                Err(bad(message))
            }
            Wanted::Header { .. } | Wanted::CausedBy(_) => Ok(headers),
        }
    }

    fn index_of(&self, topic: &Arc<str>) -> Arc<tokio::sync::Mutex<TopicIndex>> {
        let mut topics = self.topics();
        let at = topics.by_name.iter().position(|(name, _)| name == topic);
        let (name, index) = match at {
            Some(at) => topics.by_name.remove(at),
            None => {
                if topics.by_name.len() >= MAX_INDEXED_TOPICS {
                    topics.by_name.remove(0);
                }
                (topic.clone(), Arc::default())
            }
        };
        topics.by_name.push((name, index.clone()));
        index
    }

    /// Reads what was published since.
    async fn follow(
        &self,
        index: &mut TopicIndex,
        store: &dyn Store,
        topic: &Arc<str>,
        headers: &[String],
    ) -> Result<(), ApiError> {
        let Some(info) = store.topic(topic) else {
            return Ok(());
        };
        if index.incarnation != Some(info.incarnation) {
            let oldest = info.tail_seq.saturating_sub(MAX_INDEXED_EVENTS) + 1;
            let from_seq = oldest.max(info.first_seq.max(1));
            *index = TopicIndex {
                incarnation: Some(info.incarnation),
                next_seq: from_seq,
                from_seq,
                ..TopicIndex::default()
            };
        }
        while index.next_seq <= info.tail_seq {
            let page = store
                .read(topic, ReadFrom::Seq(index.next_seq), PAGE)
                .await?;
            for event in &page.events {
                self.add(index, event, headers);
            }
            index.trim(self.max_entries());
            index.next_seq = page.next_seq.max(index.next_seq + 1);
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    fn add(&self, index: &mut TopicIndex, event: &StoredEvent, headers: &[String]) {
        // Stored records are well formed.
        let Ok(record) = std::str::from_utf8(event.json_bytes()).map(Record::parse) else {
            return;
        };
        let Ok(record) = record else { return };
        for (name, value) in record.headers {
            if headers.contains(&name) {
                index.add(event.seq(), self.hash(&Wanted::Header { name, value }));
            }
        }
        for cause in record.caused_by {
            index.add(event.seq(), self.hash(&Wanted::CausedBy(cause)));
        }
    }

    /// How many entries each index may have.
    fn max_entries(&self) -> usize {
        MAX_INDEX_ENTRIES / self.topics().by_name.len().max(1)
    }

    fn hash(&self, wanted: &Wanted) -> u64 {
        match wanted {
            Wanted::Header { name, value } => self.hashes.hash_one((0_u8, name, value)),
            Wanted::CausedBy(id) => self.hashes.hash_one((1_u8, id)),
        }
    }

    fn topics(&self) -> MutexGuard<'_, Topics> {
        self.topics.guard()
    }
}

impl TopicIndex {
    fn add(&mut self, seq: u64, hash: u64) {
        self.seqs.entry(hash).or_default().push_back(seq);
        self.entries.push_back((seq, hash));
    }

    /// Drops the oldest entries beyond a limit.
    fn trim(&mut self, max_entries: usize) {
        while self.entries.len() > max_entries {
            let Some((seq, hash)) = self.entries.pop_front() else {
                return;
            };
            self.from_seq = self.from_seq.max(seq + 1);
            if let Some(seqs) = self.seqs.get_mut(&hash) {
                seqs.pop_front();
                if seqs.is_empty() {
                    self.seqs.remove(&hash);
                }
            }
        }
    }
}

impl Wanted {
    /// Whether an event is one of those.
    pub(crate) fn matches(&self, event: &StoredEvent) -> bool {
        let record = std::str::from_utf8(event.json_bytes()).map(Record::parse);
        let Ok(Ok(record)) = record else {
            return false;
        };
        match self {
            Self::Header { name, value } => {
                let is_wanted = |(found, with): &(String, String)| found == name && with == value;
                record.headers.iter().any(is_wanted)
            }
            Self::CausedBy(id) => record.caused_by.contains(id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_drops_its_oldest_entries() {
        let mut index = TopicIndex::default();
        for seq in 1..=10 {
            index.add(seq, seq % 2);
        }
        index.trim(4);
        assert_eq!(index.from_seq, 7);
        assert_eq!(index.seqs[&0], [8, 10]);
        assert_eq!(index.seqs[&1], [7, 9]);
        index.trim(1);
        assert_eq!(index.seqs.len(), 1);
    }
}
