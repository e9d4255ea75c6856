//! Naming the positions that are lost: those that a topic keeps, that no segment has, and that are beside a segment
//! that is missing or damaged. Elsewhere gaps are what compaction left.

use crate::record::TopicRecord;
use crate::segment::active::ActiveSegment;
use crate::segment::sealed::Sealed;
use prombus_store::LostSeqs;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Segments that are missing or damaged, near which a gap is a loss.
#[derive(Debug, Default, Clone)]
pub(super) struct Suspects(pub(super) BTreeSet<u64>);

/// Positions that are there without a gap.
struct Piece {
    segment: u64,
    first: u64,
    last: u64,
}

impl Suspects {
    /// What is lost of all topics, by the segment that is to blame.
    pub(super) fn lost(
        &self,
        topics: &BTreeMap<u32, TopicRecord>,
        sealed: &BTreeMap<u64, Arc<Sealed>>,
        active_segments: &[(ActiveSegment, u64)],
    ) -> BTreeMap<u64, Vec<LostSeqs>> {
        let mut lost: BTreeMap<u64, Vec<LostSeqs>> = BTreeMap::new();
        if self.0.is_empty() {
            return lost;
        }
        let mut pieces = pieces_of(sealed, active_segments);
        for topic in topics.values() {
            let mut pieces = pieces.remove(&topic.number).unwrap_or_default();
            pieces.sort_unstable_by_key(|piece| (piece.first, piece.segment));
            let end = Piece {
                segment: u64::MAX,
                first: topic.next_seq,
                last: topic.next_seq,
            };
            let (mut next, mut before) = (topic.first_seq, 0);
            for piece in pieces.into_iter().chain([end]) {
                let mut blamed = self.0.range(before..=piece.segment);
                if piece.first > next
                    && let Some(&segment) = blamed.next()
                {
                    lost.entry(segment).or_default().push(LostSeqs {
                        topic: Some(topic.name.to_string()),
                        from: next,
                        to: piece.first - 1,
                    });
                }
                next = next.max(piece.last + 1);
                before = piece.segment;
            }
        }
        lost
    }
}

fn pieces_of(
    sealed: &BTreeMap<u64, Arc<Sealed>>,
    active_segments: &[(ActiveSegment, u64)],
) -> BTreeMap<u32, Vec<Piece>> {
    let mut pieces: BTreeMap<u32, Vec<Piece>> = BTreeMap::new();
    for (&segment, one) in sealed {
        for run in one.index.runs().unwrap_or_default() {
            pieces.entry(run.topic).or_default().push(Piece {
                segment,
                first: run.first_seq,
                last: run.last_seq,
            });
        }
    }
    for (active, _) in active_segments {
        for (&topic, run) in &active.runs {
            let of_topic = pieces.entry(topic).or_default();
            for entry in &run.entries {
                match of_topic.last_mut() {
                    Some(piece)
                        if piece.segment == active.number && piece.last + 1 == entry.seq =>
                    {
                        piece.last = entry.seq;
                    }
                    _ => of_topic.push(Piece {
                        segment: active.number,
                        first: entry.seq,
                        last: entry.seq,
                    }),
                }
            }
        }
    }
    pieces
}
