//! Encodes event records. Events that come in a row differ in little more than position and payload, so what they
//! begin with is encoded once and then copied.

use super::event::{CLIENT_ID, CLIENT_TS, HEAD_BYTES, ID_AT, STORED_TIME, TOMBSTONE};
use super::frame::{EVENT_KIND, FRAME_BYTES, finish_frame, start_frame};
use crate::batch::EncodedEvent;
use crate::event_id::Id;
use crate::json_text::{digits_of, push_integer, push_string, write_digits};
use std::ops::Range;
use std::sync::Arc;

/// Where the record's head has the ts.
const TS_IN_HEAD: Range<usize> = 24..32;

/// What a store gives an event when it takes it in.
#[derive(Debug, Clone, Copy)]
pub struct EventPlace<'a> {
    /// The number that the store gave its topic.
    pub topic_number: u32,
    /// The topic's name.
    pub topic: &'a Arc<str>,
    /// Its id.
    pub id: &'a Id,
    /// Its time in epoch milliseconds.
    pub ts: u64,
    /// Its position in the topic.
    pub seq: u64,
    /// The store's own time, which an event has beside the ts that its publisher gave.
    pub stored_ms: u64,
}

/// Encodes one event record after the other, and remembers how the last one began.
#[derive(Debug, Default)]
pub struct EventEncoder {
    /// The head and the JSON up to the digits of the seq. What each event has its own of is written over.
    start: Vec<u8>,
    /// Where the JSON begins in it.
    body_at: usize,
    /// What `start` is good for, if any event that brings no id, ts or sid begins like this.
    common: Option<Common>,
}

#[derive(Debug)]
struct Common {
    topic_number: u32,
    topic: Arc<str>,
    ts: u64,
    /// Where the digits of the ts are in `start`.
    ts_digits: Range<usize>,
    id_bytes: usize,
}

impl EventEncoder {
    /// Appends the record of `event` at `place`; `flags` is `LAST_OF_BATCH` or 0.
    pub fn write(
        &mut self,
        out: &mut Vec<u8>,
        event: EncodedEvent<'_>,
        place: &EventPlace<'_>,
        flags: u8,
    ) {
        if self.fits(event, place) {
            self.set_ts(place.ts)
        } else {
            self.encode_start(event, place)
        }
        let start = out.len();
        let body = start + self.body_at;
        out.extend_from_slice(&self.start);
        push_integer(out, place.seq);
        let payload_at = out.len() - body + event.payload_offset_in_rest();
        out.extend_from_slice(event.rest_json());

        let (head, json) = out[start..].split_at_mut(HEAD_BYTES);
        if let Some(common) = &self.common {
            json[ID_AT..ID_AT + common.id_bytes].copy_from_slice(place.id.as_bytes());
        }
        let key_length = event.key_json_bytes().map_or(0, |bytes| bytes + 1) as u16;
        head[9] |= flags | if event.is_tombstone() { TOMBSTONE } else { 0 };
        head[16..24].copy_from_slice(&place.seq.to_le_bytes());
        head[34..36].copy_from_slice(&key_length.to_le_bytes());
        head[36..40].copy_from_slice(&(payload_at as u32).to_le_bytes());
        head[40..44].copy_from_slice(&(event.payload().len() as u32).to_le_bytes());
        finish_frame(out, start);
    }

    fn fits(&self, event: EncodedEvent<'_>, place: &EventPlace<'_>) -> bool {
        self.common.as_ref().is_some_and(|common| {
            is_plain(event)
                && common.topic_number == place.topic_number
                && Arc::ptr_eq(&common.topic, place.topic)
                && common.id_bytes == place.id.as_bytes().len()
                && (common.ts == place.ts || common.ts_digits.len() == digits_of(place.ts))
        })
    }

    /// Writes another time over the last one, which is encoded just as long.
    fn set_ts(&mut self, ts: u64) {
        let Some(common) = &mut self.common else {
            return;
        };
        if common.ts != ts {
            common.ts = ts;
            self.start[TS_IN_HEAD].copy_from_slice(&ts.to_le_bytes());
            write_digits(&mut self.start[common.ts_digits.clone()], ts);
        }
    }

    fn encode_start(&mut self, event: EncodedEvent<'_>, place: &EventPlace<'_>) {
        let flags = if event.has_client_id() { CLIENT_ID } else { 0 }
            | event.ts().map_or(0, |_| CLIENT_TS | STORED_TIME);
        let out = &mut self.start;
        out.clear();
        start_frame(out, EVENT_KIND, flags);
        out.extend_from_slice(&[0; HEAD_BYTES - FRAME_BYTES - 2]);
        if event.ts().is_some() {
            out.extend_from_slice(&place.stored_ms.to_le_bytes());
        }
        let body_at = out.len();
        out.extend_from_slice(br#"{"id":"#);
        push_string(out, place.id.as_str());
        let id_length = out.len() - body_at - ID_AT - 1;
        out.extend_from_slice(event.sid_json());
        out.extend_from_slice(br#","ts":"#);
        let ts_at = out.len();
        push_integer(out, place.ts);
        let ts_digits = ts_at..out.len();
        out.extend_from_slice(br#","topic":""#);
        let topic_at = out.len() - body_at;
        out.extend_from_slice(place.topic.as_bytes());
        out.extend_from_slice(br#"","seq":"#);

        let head = &mut out[..HEAD_BYTES];
        head[10] = id_length as u8;
        head[11] = place.topic.len() as u8;
        head[12..16].copy_from_slice(&place.topic_number.to_le_bytes());
        head[TS_IN_HEAD].copy_from_slice(&place.ts.to_le_bytes());
        head[32..34].copy_from_slice(&(topic_at as u16).to_le_bytes());
        self.body_at = body_at;
        self.common = is_plain(event).then(|| Common {
            topic_number: place.topic_number,
            topic: place.topic.clone(),
            ts: place.ts,
            ts_digits,
            id_bytes: id_length,
        });
    }
}

/// Whether an event brings nothing that would come before the seq. An id that the log made has nothing to escape.
fn is_plain(event: EncodedEvent<'_>) -> bool {
    !event.has_client_id() && event.ts().is_none() && event.sid_json().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Batch, Draft};
    use crate::record::StoredEvent;
    use proptest::prelude::*;

    proptest! {
        /// What is left of the events before never shows.
        #[test]
        fn a_encoder_that_is_used_again_writes_what_a_new_one_does(
            events in prop::collection::vec((any::<bool>(), any::<bool>(), 0..4u32, any::<u64>()), 1..30),
        ) {
            let topic: Arc<str> = "a.topic".into();
            let id = Id::from_client("018bcfe6-2791-76f6-941a-c00000000023").expect("an id");
            let mut used = EventEncoder::default();
            for (seq, (has_sid, has_ts, cut, ts)) in events.into_iter().enumerate() {
                // Times of various lengths, mostly the same one.
                let ts = ts >> (cut * 20);
                let mut batch = Batch::new();
                let sid = has_sid.then_some("boot");
                let own_ts = has_ts.then_some(ts);
                batch.publish(&topic, &Draft { sid, ts: own_ts, payload: "1", ..Draft::default() });
                let event = batch.events().next().expect("an event");
                let (topic_number, seq) = (7, seq as u64);
                let stored_ms = ts / 2;
                let place = EventPlace { topic_number, topic: &topic, id: &id, ts, seq, stored_ms };
                let (mut again, mut anew) = (Vec::new(), Vec::new());
                used.write(&mut again, event, &place, 0);
                EventEncoder::default().write(&mut anew, event, &place, 0);
                prop_assert_eq!(&again, &anew);
                let stored = StoredEvent::read(Arc::new(again), 0).expect("a record");
                prop_assert_eq!(stored.stored_ms(), Some(if has_ts { stored_ms } else { ts }));
                prop_assert_eq!((stored.ts(), stored.seq(), stored.payload()), (ts, seq, "1"));
                prop_assert_eq!(stored.topic(), "a.topic");
            }
        }
    }
}
