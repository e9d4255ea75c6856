//! What a maintenance message lets go: computed by the node that sends it and applied by all, so that it does not depend on
//! where a copy has its segments.

use prombus_store::{Batch, Change, Store};
use std::sync::Arc;

/// A topic's new first position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trim {
    /// The topic.
    pub topic: Arc<str>,
    /// Which topic of this name: one that was made anew meanwhile is left alone.
    pub incarnation: u64,
    /// The first position that it keeps.
    pub first_seq: u64,
}

/// Trims as the body of a message: of each its incarnation, its position, the length of its topic's name, and the name.
pub(crate) fn encode(trims: &[Trim]) -> Vec<u8> {
    let mut out = Vec::new();
    for trim in trims {
        out.extend_from_slice(&trim.incarnation.to_le_bytes());
        out.extend_from_slice(&trim.first_seq.to_le_bytes());
        out.extend_from_slice(&(trim.topic.len() as u32).to_le_bytes());
        out.extend_from_slice(trim.topic.as_bytes());
    }
    out
}

/// Reads them back; `None` where the bytes are none.
pub(crate) fn decode(mut body: &[u8]) -> Option<Vec<Trim>> {
    let mut trims = Vec::new();
    while !body.is_empty() {
        let (incarnation, rest) = body.split_first_chunk()?;
        let (first_seq, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (topic, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        trims.push(Trim {
            topic: std::str::from_utf8(topic).ok()?.into(),
            incarnation: u64::from_le_bytes(*incarnation),
            first_seq: u64::from_le_bytes(*first_seq),
        });
        body = rest;
    }
    Some(trims)
}

/// The batch that does it, for those topics that are still the same.
pub(crate) fn batch(trims: &[Trim], store: &dyn Store) -> Batch {
    let mut batch = Batch::new();
    for trim in trims {
        if store.incarnation(&trim.topic) == Some(trim.incarnation) {
            batch.change(Change::Trim {
                topic: trim.topic.clone(),
                first_seq: trim.first_seq,
            });
        }
    }
    batch
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trims_round_trip() {
        let trim = |topic: &str, incarnation, first_seq| Trim {
            topic: topic.into(),
            incarnation,
            first_seq,
        };
        let trims = [trim("orders", 3, 17), trim("ü", u64::MAX, 1)];
        let bytes = encode(&trims);
        assert_eq!(decode(&bytes).as_deref(), Some(&trims[..]));
        assert_eq!(decode(&[]).as_deref(), Some(&[][..]));
        assert_eq!(decode(&bytes[..bytes.len() - 1]), None);
    }
}
