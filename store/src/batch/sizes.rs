//! Whether the records of a batch fit the format. Readers take a record that is longer than the format allows for
//! damage, so one must never be written.

use super::{Batch, Change, EncodedEvent};
use crate::error::LimitReached;
use crate::event_id::MAX_ID_BYTES;
use crate::record::MAX_RECORD_BYTES;

/// A topic's name has one byte for its length in a record.
const MAX_TOPIC_NAME_BYTES: usize = u8::MAX as usize;
/// A key, as JSON encodes it, has two bytes for one more than its length.
const MAX_KEY_JSON_BYTES: usize = u16::MAX as usize - 1;
/// A session id, as JSON encodes it with its name, comes before the topic, whose offset has two bytes.
const MAX_SID_JSON_BYTES: usize = 32 << 10;
/// The most that a record adds to the text of an event beside its topic's name: head, field names, an id of which
/// each character is escaped, stored time, ts and seq.
const MAX_ADDED_BYTES: usize = 192 + 2 * MAX_ID_BYTES;
/// About what it adds to an event with an id that the log made.
const ADDED_BYTES: usize = 192;
/// The most that a record adds to a key and its value, or to a topic's name and attributes.
const MAX_STATE_BYTES: usize = 128;
/// A batch with less text than this has no field and no record that is too long.
const CERTAINLY_SHORT_BYTES: usize = 32 << 10;

impl Batch {
    /// Refuses a batch with a record that the format cannot hold. Every store has to ask, or a batch that one takes is
    /// refused by another.
    pub fn check_record_sizes(&self) -> Result<(), LimitReached> {
        for change in self.changes() {
            check_change(change)?;
        }
        if self.text_bytes() <= CERTAINLY_SHORT_BYTES {
            return Ok(());
        }
        self.events().try_for_each(check_event)
    }

    /// About the bytes that the records of the batch take together.
    pub fn record_bytes(&self) -> usize {
        let added = self.events().len() * ADDED_BYTES;
        let changes = self.changes().iter().map(max_change_bytes);
        self.text_bytes() + added + changes.sum::<usize>()
    }
}

fn check_event(event: EncodedEvent<'_>) -> Result<(), LimitReached> {
    let key_bytes = event.key_json_bytes().unwrap_or(0);
    check("max_key_bytes", MAX_KEY_JSON_BYTES, key_bytes)?;
    check("max_sid_bytes", MAX_SID_JSON_BYTES, event.sid_json().len())?;
    let bytes = max_event_bytes(event);
    check("max_record_bytes", MAX_RECORD_BYTES, bytes)
}

fn max_event_bytes(event: EncodedEvent<'_>) -> usize {
    let text_bytes = event.sid_json().len() + event.rest_json().len();
    text_bytes + event.topic().len() + MAX_ADDED_BYTES
}

fn check_change(change: &Change) -> Result<(), LimitReached> {
    if let Change::PutTopic { topic, .. } = change {
        check("max_topic_name_bytes", MAX_TOPIC_NAME_BYTES, topic.len())?;
    }
    let bytes = max_change_bytes(change);
    check("max_record_bytes", MAX_RECORD_BYTES, bytes)
}

fn max_change_bytes(change: &Change) -> usize {
    let text_bytes = match change {
        Change::PutTopic { topic, options, .. } => topic.len() + options.attributes.len(),
        Change::Put { key, value, .. } => key.len() + value.len(),
        Change::Delete { key, .. } => key.len(),
        Change::DeleteTopic { .. } | Change::Trim { .. } => 0,
    };
    text_bytes + MAX_STATE_BYTES
}

fn check(name: &'static str, limit: usize, bytes: usize) -> Result<(), LimitReached> {
    if bytes > limit {
        let limit = limit as u64;
        return Err(LimitReached { name, limit });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Draft;
    use crate::event_id::Id;
    use crate::record::StoredEvent;
    use proptest::prelude::*;
    use std::sync::Arc;

    proptest! {
        /// No record is longer than what is checked before it is written.
        #[test]
        fn records_are_no_longer_than_was_reckoned(
            topic in "[a-z.]{1,255}", id in "[ -~]{1,64}", sid in ".{0,300}", key in ".{0,512}",
            payload in ".{0,2000}", ts: u64, seq: u64, has_client_id: bool, has_client_ts: bool,
        ) {
            let topic: Arc<str> = topic.into();
            let id = Id::from_client(&id).expect("an id");
            let mut batch = Batch::new();
            batch.publish(&topic, &Draft {
                id: has_client_id.then_some(id),
                ts: has_client_ts.then_some(ts),
                sid: Some(&sid),
                key: Some(&key),
                payload: &payload,
                ..Draft::default()
            });
            let event = batch.events().next().expect("an event");
            let bytes = StoredEvent::encode(event, &id, ts, seq).stored_bytes();
            prop_assert!(bytes <= max_event_bytes(event));
        }
    }

    #[test]
    fn fields_that_the_head_cannot_count_are_refused() {
        let topic: Arc<str> = "t".into();
        let long = "\u{1}".repeat(11_000);
        let drafts = [
            (
                "max_key_bytes",
                Draft {
                    key: Some(&long),
                    payload: "1",
                    ..Draft::default()
                },
            ),
            (
                "max_sid_bytes",
                Draft {
                    sid: Some(&long),
                    payload: "1",
                    ..Draft::default()
                },
            ),
        ];
        for (name, draft) in drafts {
            let mut batch = Batch::new();
            batch.publish(
                &topic,
                &Draft {
                    payload: "1",
                    ..Draft::default()
                },
            );
            batch.publish(&topic, &draft);
            let refused = batch.check_record_sizes().map_err(|limit| limit.name);
            assert_eq!(refused, Err(name));
        }
    }
}
