//! Publishers' own ids in the segments that are not sealed yet. Sealed segments answer for theirs from disk.

use crate::event_id::Id;
use crate::receipt::Placed;
use std::collections::HashMap;
use xxhash_rust::xxh3::xxh3_64;

/// Own ids by (topic number, id).
#[derive(Default)]
pub(crate) struct OwnIds {
    by_name: HashMap<Box<[u8]>, OwnId>,
    /// Counts the segments that were forgotten here because they are sealed now. A look at the sealed segments is
    /// only good while this stands still.
    pub(crate) epoch: u64,
}

#[derive(Clone, Copy)]
struct OwnId {
    seq: u64,
    ts: u64,
    payload_hash: u64,
    segment: u64,
}

/// An id that the topic holds already.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    /// The number of the topic it was found in: one of the same name may have taken its place since.
    pub(crate) topic: u32,
    pub(crate) placed: Placed,
    pub(crate) same_payload: bool,
    /// It is of the form made in this topic, for a position that readers do not see yet.
    pub(crate) is_ahead: bool,
}

impl OwnIds {
    pub(crate) fn find(&self, topic: u32, id: &Id, payload: &[u8]) -> Option<Held> {
        let found = self.by_name.get(name(topic, id).as_slice())?;
        Some(Held {
            topic,
            placed: Placed {
                id: *id,
                seq: found.seq,
                ts: found.ts,
            },
            same_payload: found.payload_hash == xxh3_64(payload),
            is_ahead: false,
        })
    }

    pub(crate) fn insert(&mut self, topic: u32, placed: &Placed, payload: &[u8], segment: u64) {
        let own = OwnId {
            seq: placed.seq,
            ts: placed.ts,
            payload_hash: xxh3_64(payload),
            segment,
        };
        let name = name(topic, &placed.id).as_slice().into();
        self.by_name.insert(name, own);
    }

    /// The position of an id, without regard to its payload.
    pub(crate) fn seq_of(&self, topic: u32, id: &Id) -> Option<u64> {
        let found = self.by_name.get(name(topic, id).as_slice())?;
        Some(found.seq)
    }

    /// Forgets the ids of a segment that is sealed now.
    pub(crate) fn forget_segment(&mut self, segment: u64) {
        self.epoch += 1;
        self.by_name.retain(|_, own| own.segment != segment);
    }
}

/// Topic number and id as one key, built without allocating.
struct Name {
    bytes: [u8; 4 + crate::event_id::MAX_ID_BYTES],
    length: usize,
}

impl Name {
    fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

fn name(topic: u32, id: &Id) -> Name {
    let text = id.as_str().as_bytes();
    let mut bytes = [0; 4 + crate::event_id::MAX_ID_BYTES];
    bytes[..4].copy_from_slice(&topic.to_le_bytes());
    bytes[4..4 + text.len()].copy_from_slice(text);
    Name {
        bytes,
        length: 4 + text.len(),
    }
}
