//! Publishers' client ids in the segments that are not sealed yet. Sealed segments answer for theirs from disk.
//!
//! An id is known here by a hash of 128 bits under a secret of this process. Two ids do not have the same one by chance,
//! and somebody who could guess the secret would have only events of their own taken for duplicates.

use crate::hashing::GivenMap;
use prombus_store::{EventRef, Id};
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128_with_seed};

/// Client ids by topic and id, for each segment.
pub(crate) struct UnsealedIds {
    /// By the segments' numbers, the newest last. There are few: writing waits for sealing.
    segments: VecDeque<(u64, SegmentIds)>,
    secret: u64,
    /// Counts the segments that were forgotten here because they are sealed now. A look at the sealed segments is
    /// only good while this does not change.
    pub(crate) epoch: u64,
}

/// The client ids of a segment by the hash of topic and id.
pub(crate) type SegmentIds = GivenMap<u128, UnsealedId>;

#[derive(Clone, Copy)]
pub(crate) struct UnsealedId {
    seq: u64,
    ts: u64,
    payload_hash: u64,
}

/// An id that the topic holds already.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    /// The number of the topic it was found in: one of the same name may have taken its place since.
    pub(crate) topic: u32,
    pub(crate) event_ref: EventRef,
    pub(crate) same_payload: bool,
    /// It is of the form made in this topic, for a position that readers do not see yet.
    pub(crate) is_ahead: bool,
}

impl Default for UnsealedIds {
    fn default() -> Self {
        Self {
            segments: VecDeque::new(),
            secret: RandomState::new().hash_one(0),
            epoch: 0,
        }
    }
}

impl UnsealedIds {
    pub(crate) fn find(&self, topic: u32, id: &Id, payload: &[u8]) -> Option<Held> {
        let found = self.get(topic, id)?;
        Some(Held {
            topic,
            event_ref: EventRef {
                id: *id,
                seq: found.seq,
                ts: found.ts,
            },
            same_payload: found.payload_hash == xxh3_64(payload),
            is_ahead: false,
        })
    }

    pub(crate) fn insert(
        &mut self,
        topic: u32,
        event_ref: &EventRef,
        payload: &[u8],
        segment: u64,
    ) {
        let own = UnsealedId {
            seq: event_ref.seq,
            ts: event_ref.ts,
            payload_hash: xxh3_64(payload),
        };
        let hash = self.hash(topic, &event_ref.id);
        if self
            .segments
            .back()
            .is_none_or(|(last, _)| *last != segment)
        {
            self.segments.push_back((segment, SegmentIds::default()));
        }
        if let Some((_, ids)) = self.segments.back_mut() {
            ids.insert(hash, own);
        }
    }

    /// The position of an id, without regard to its payload.
    pub(crate) fn seq_of(&self, topic: u32, id: &Id) -> Option<u64> {
        self.get(topic, id).map(|found| found.seq)
    }

    /// Forgets the ids of a segment that is sealed now. The caller that gets them should let go of them when no one waits.
    pub(crate) fn forget_segment(&mut self, segment: u64) -> Option<SegmentIds> {
        self.epoch += 1;
        let place = self.segments.iter().position(|(own, _)| *own == segment)?;
        self.segments.remove(place).map(|(_, ids)| ids)
    }

    /// What is known of an id; of several the newest.
    fn get(&self, topic: u32, id: &Id) -> Option<&UnsealedId> {
        let hash = self.hash(topic, id);
        let segments = self.segments.iter().rev();
        segments.filter_map(|(_, ids)| ids.get(&hash)).next()
    }

    fn hash(&self, topic: u32, id: &Id) -> u128 {
        let seed = self.secret ^ u64::from(topic).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        xxh3_128_with_seed(id.as_str().as_bytes(), seed)
    }
}
