//! The checkpoint: the whole state beside events, as the records that a segment starts with.

use crate::receipt::Keyed;
use crate::record::{LAST_OF_BATCH, StateRecord, TopicRecord};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a checkpoint holds.
pub(crate) struct Checkpoint<'a, T> {
    pub(crate) topics: T,
    pub(crate) keyed: &'a BTreeMap<Arc<str>, Keyed>,
    pub(crate) next_topic_number: u32,
    pub(crate) log_id: u64,
}

impl<'a, T: Iterator<Item = &'a TopicRecord>> Checkpoint<'a, T> {
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut out = Vec::new();
        for topic in self.topics {
            StateRecord::TopicPut(topic.clone()).write(&mut out, 0);
        }
        for (key, keyed) in self.keyed {
            let record = StateRecord::KeyedPut {
                key: key.clone(),
                version: keyed.version,
                value: keyed.value.clone(),
            };
            record.write(&mut out, 0);
        }
        let end = StateRecord::CheckpointEnd {
            next_topic_number: self.next_topic_number,
            log_id: self.log_id,
        };
        end.write(&mut out, LAST_OF_BATCH);
        out
    }
}
