//! Looking up the keys that a batch expects something of, before the buffer's lock is taken for it.

use crate::committer::Committer;
use crate::write_buffer::{SeenKey, WriteBuffer};
use prombus_store::{Batch, CommitError, EncodedEvent, KeyPosition, ReadError, StoreFailed};
use std::sync::Arc;

/// Keys that are watched until this is dropped, which must not happen under the buffer's lock.
pub(crate) struct KeyWatch<'a> {
    committer: &'a Committer,
    watched: Vec<(u32, Box<[u8]>)>,
    /// The topics of the keys and the number that each had, if it existed.
    topics: Vec<(Arc<str>, Option<u32>)>,
    /// For each batch and each of its events the last event of its key that readers saw, where the event expects
    /// something of that. Empty for a batch that expects nothing of keys.
    seen: Vec<Vec<Option<SeenKey>>>,
}

impl KeyWatch<'_> {
    /// What was found for a batch.
    pub(crate) fn seen(&self, batch: usize) -> &[Option<SeenKey>] {
        self.seen.get(batch).map_or(&[], Vec::as_slice)
    }

    /// Whether the topics are still the same ones.
    pub(crate) fn is_current(&self, buffer: &WriteBuffer) -> bool {
        let mut topics = self.topics.iter();
        topics.all(|(name, number)| number_of(buffer, name) == *number)
    }
}

impl Drop for KeyWatch<'_> {
    fn drop(&mut self) {
        if self.watched.is_empty() {
            return;
        }
        let mut buffer = self.committer.buffer();
        for (topic, key) in &self.watched {
            buffer.watched_keys.end(*topic, key);
        }
    }
}

impl Committer {
    /// Watches the keys that batches expect something of, and finds their last events. `block` gets the work that needs
    /// the disk.
    pub(crate) fn watch_keys<'a>(
        &'a self,
        batches: &[Batch],
        block: &dyn Fn(&mut dyn FnMut()),
    ) -> Result<KeyWatch<'a>, CommitError> {
        let mut watch = KeyWatch {
            committer: self,
            watched: Vec::new(),
            topics: Vec::new(),
            seen: Vec::new(),
        };
        if !batches.iter().any(Batch::has_expected_key_positions) {
            return Ok(watch);
        }
        let mut is_all_visible = true;
        {
            let mut buffer = self.buffer();
            for event in batches.iter().flat_map(Batch::events).filter(expects_key) {
                let number = number_of(&buffer, event.topic());
                watch.topics.push((event.topic().clone(), number));
                if let (Some(number), Some(key)) = (number, event.key_json()) {
                    buffer.watched_keys.begin(number, key);
                    watch.watched.push((number, key.into()));
                }
                let topic = buffer.topics.get(event.topic());
                is_all_visible &= topic.is_none_or(|topic| topic.is_all_visible());
            }
        }
        let mut found = Ok(());
        block(&mut || {
            found = self.find_keys(batches, &mut watch, is_all_visible);
        });
        found.map(|()| watch)
    }

    fn find_keys(
        &self,
        batches: &[Batch],
        watch: &mut KeyWatch<'_>,
        is_all_visible: bool,
    ) -> Result<(), CommitError> {
        // What has a position and is not visible yet was not watched when it got it.
        if !is_all_visible {
            self.show_all()?;
        }
        let mut numbers = watch.topics.iter().map(|(_, number)| *number);
        for batch in batches {
            if !batch.has_expected_key_positions() {
                watch.seen.push(Vec::new());
                continue;
            }
            let seen = batch.events().map(|event| {
                if expects_key(&event) {
                    self.seen_key(&event, numbers.next().flatten())
                } else {
                    Ok(None)
                }
            });
            let seen: Result<Vec<_>, ReadError> = seen.collect();
            watch.seen.push(seen.map_err(|error| StoreFailed {
                cause: error.to_string().into(),
            })?);
        }
        Ok(())
    }

    /// The last event of an event's key in the topic with this number.
    fn seen_key(
        &self,
        event: &EncodedEvent<'_>,
        number: Option<u32>,
    ) -> Result<Option<SeenKey>, ReadError> {
        let (Some(number), Some(key)) = (number, event.key()) else {
            return Ok(None);
        };
        let found = match self.reader.latest(event.topic(), &key) {
            Ok(found) => found,
            // It was deleted meanwhile, which is found out under the buffer's lock.
            Err(ReadError::UnknownTopic(_)) => None,
            Err(error) => return Err(error),
        };
        let found = found.filter(|found| found.topic_number() == number);
        Ok(found.map(|found| SeenKey {
            topic: number,
            position: KeyPosition::of_stored(&found),
        }))
    }
}

fn expects_key(event: &EncodedEvent<'_>) -> bool {
    event
        .expected()
        .is_some_and(|expected| expected.key_seq.is_some())
}

fn number_of(buffer: &WriteBuffer, topic: &str) -> Option<u32> {
    buffer.topics.get(topic).map(|topic| topic.record.number)
}
