//! The topics as the buffer knows them: options and next position.

use super::Held;
use crate::hashing::NameMap;
use crate::record::TopicRecord;
use prombus_store::{Durability, TopicOptions};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// All topics, by name.
pub(crate) struct Topics {
    by_name: NameMap<Arc<str>, usize>,
    /// Deleted topics leave an empty slot, so that a slot's place stays good for a whole batch.
    slots: Vec<Option<Box<Topic>>>,
    /// Empty slots, which the next topics take.
    free: Vec<usize>,
    pub(crate) next_number: u32,
    recent_options: RecentOptions,
}

/// The options that topics were last made with. Most topics have the same ones, and share them.
#[derive(Default)]
struct RecentOptions(VecDeque<Arc<TopicOptions>>);

/// How many different options are looked through for the ones of a new topic.
const MAX_RECENT_OPTIONS: usize = 16;

/// One topic.
pub(crate) struct Topic {
    pub(crate) record: TopicRecord,
    /// The newest position that readers see; shared with the view.
    pub(crate) tail: Arc<AtomicU64>,
    /// The last position that becomes visible by sync.
    last_synced_seq: u64,
}

impl RecentOptions {
    /// Equal options that another topic has, or these.
    fn share(&mut self, options: &Arc<TopicOptions>) -> Arc<TopicOptions> {
        if let Some(known) = self.0.iter().find(|known| *known == options) {
            return known.clone();
        }
        self.0.truncate(MAX_RECENT_OPTIONS - 1);
        self.0.push_front(options.clone());
        options.clone()
    }
}

impl Topics {
    pub(crate) fn new() -> Self {
        Self {
            by_name: NameMap::default(),
            slots: Vec::new(),
            free: Vec::new(),
            next_number: 1,
            recent_options: RecentOptions::default(),
        }
    }

    /// Equal options that another topic has, or these.
    pub(crate) fn share_options(&mut self, options: &Arc<TopicOptions>) -> Arc<TopicOptions> {
        self.recent_options.share(options)
    }

    /// Puts a topic back as a checkpoint or the view knows it.
    pub(crate) fn restore(&mut self, record: TopicRecord, tail: Arc<AtomicU64>) {
        self.next_number = self.next_number.max(record.number + 1);
        let topic = Box::new(Topic {
            tail,
            last_synced_seq: 0,
            record,
        });
        let slot = self.free.pop().unwrap_or(self.slots.len());
        self.by_name.insert(topic.record.name.clone(), slot);
        match self.slots.get_mut(slot) {
            Some(empty) => *empty = Some(topic),
            None => self.slots.push(Some(topic)),
        }
    }

    /// Makes a topic or changes its options; returns it as it is now, with the tail that its readers share.
    pub(crate) fn put(
        &mut self,
        name: &Arc<str>,
        options: &TopicOptions,
    ) -> (TopicRecord, Arc<AtomicU64>) {
        let options = self.recent_options.share(&Arc::new(options.clone()));
        if let Some(topic) = self.get_mut(name) {
            topic.record.options = options;
            return (topic.record.clone(), topic.tail.clone());
        }
        let record = TopicRecord {
            number: self.next_number,
            name: name.clone(),
            options,
            next_seq: 1,
            first_seq: 1,
            last_ts: 0,
        };
        let tail = Arc::default();
        self.restore(record.clone(), Arc::clone(&tail));
        (record, tail)
    }

    /// Removes a topic and returns its number.
    pub(crate) fn delete(&mut self, name: &str) -> Option<u32> {
        let slot = self.by_name.remove(name)?;
        let deleted = self.slots[slot].take()?;
        self.free.push(slot);
        Some(deleted.record.number)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Topic> {
        self.slots[*self.by_name.get(name)?].as_deref()
    }

    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Topic> {
        self.slots[*self.by_name.get(name)?].as_deref_mut()
    }

    /// The place of a topic, for [`Self::at`], good until topics change.
    pub(crate) fn place_of(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn at(&mut self, place: usize) -> Option<&mut Topic> {
        self.slots.get_mut(place)?.as_deref_mut()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Topic> {
        self.slots.iter().flatten().map(|topic| &**topic)
    }
}

impl Topic {
    /// Whether readers see everything that has a position.
    pub(crate) fn is_all_visible(&self) -> bool {
        self.tail.load(Ordering::Acquire) + 1 >= self.record.next_seq
    }

    /// Gives the next position and the topic's time, which never goes back.
    pub(crate) fn next(&mut self, now_ms: u64) -> (u64, u64) {
        let seq = self.record.next_seq;
        self.record.next_seq += 1;
        self.record.last_ts = self.record.last_ts.max(now_ms);
        (seq, self.record.last_ts)
    }

    /// Whether an id that was found is taken, given the first position the topic keeps and the one it gives next. An
    /// id of the form made here for a position that readers do not see yet is on its way or reserved; only at its
    /// very position it is welcome, which is how events come back into an older copy of their log.
    pub(crate) fn holds(&self, held: &Held, first_seq: u64, next_seq: u64) -> bool {
        let is_taken = if held.is_ahead {
            held.event_ref.seq != next_seq
        } else {
            (first_seq..self.record.next_seq).contains(&held.event_ref.seq)
        };
        is_taken && held.topic == self.record.number
    }

    /// Whether the event at `seq` becomes visible by sync. After a change from `fsync` to `os` that stays so until
    /// all earlier events are visible, since a topic's tail moves in order.
    pub(crate) fn visible_after_sync(&mut self, seq: u64) -> bool {
        let after_sync = self.record.options.durability == Durability::Fsync
            || self.last_synced_seq > 0 && self.last_synced_seq > self.tail.load(Ordering::Acquire);
        if after_sync {
            self.last_synced_seq = seq;
        }
        after_sync
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_made_and_deleted_take_the_same_slots_again() {
        let mut topics = Topics::new();
        let options = TopicOptions::default();
        topics.put(&"kept".into(), &options);
        for round in 0..1000 {
            let names = [0, 1].map(|which| Arc::from(format!("t{round}.{which}")));
            names
                .iter()
                .for_each(|name| drop(topics.put(name, &options)));
            names
                .iter()
                .for_each(|name| assert!(topics.delete(name).is_some()));
        }
        assert!(topics.slots.len() <= 3 && topics.free.len() <= 2);
        assert_eq!(topics.get("kept").map(|topic| topic.record.number), Some(1));
        assert_eq!(topics.iter().count(), 1);
        assert_eq!(topics.next_number, 2002);
    }

    #[test]
    fn topics_with_equal_options_share_them() {
        let mut topics = Topics::new();
        let options = |max_events| TopicOptions {
            max_events,
            ..TopicOptions::default()
        };
        let mut made = |name: &str, max_events| {
            let name = Arc::from(name);
            topics.put(&name, &options(max_events)).0.options
        };
        let (one, other) = (made("a", None), made("b", Some(1)));
        assert!(Arc::ptr_eq(&made("c", None), &one));
        for different in 2..100 {
            let kept = made("d", Some(different));
            assert_eq!(*kept, options(Some(different)));
        }
        assert_eq!(made("e", Some(1)), other);
        assert!(topics.recent_options.0.len() <= MAX_RECENT_OPTIONS);
    }
}
