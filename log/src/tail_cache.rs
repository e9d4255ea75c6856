//! The newest records in memory, as the very bytes that were written, so that tail readers do no I/O and copy nothing.

use crate::record::{FrameError, StoredEvent};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Groups as they were written, newest last, up to a limit.
pub(crate) struct TailCache {
    groups: VecDeque<CachedGroup>,
    bytes: usize,
    limit_bytes: usize,
}

struct CachedGroup {
    segment: u64,
    offset: u64,
    block: Arc<Vec<u8>>,
}

impl TailCache {
    pub(crate) fn new(limit_bytes: usize) -> Self {
        Self {
            groups: VecDeque::new(),
            bytes: 0,
            limit_bytes,
        }
    }

    /// Keeps a group that was just written at `offset` of `segment`. Returns the memory of one that had to go for it,
    /// if no one reads that any more: taking new memory from the system for each group costs more than writing it.
    pub(crate) fn push(&mut self, segment: u64, offset: u64, block: Arc<Vec<u8>>) -> Vec<u8> {
        let mut spare = Vec::new();
        // A commit group of nothing but duplicates has no bytes; the byte limit would never evict it.
        if block.is_empty() {
            return spare;
        }
        self.bytes += block.capacity();
        self.groups.push_back(CachedGroup {
            segment,
            offset,
            block,
        });
        while self.bytes > self.limit_bytes && self.groups.len() > 1 {
            if let Some(old) = self.groups.pop_front() {
                self.bytes -= old.block.capacity();
                spare = Arc::try_unwrap(old.block).unwrap_or(spare);
            }
        }
        spare.clear();
        spare
    }

    /// The block that holds `offset` of `segment`, and where in it.
    pub(crate) fn find(&self, segment: u64, offset: u64) -> Option<(&Arc<Vec<u8>>, usize)> {
        let behind = self
            .groups
            .partition_point(|group| (group.segment, group.offset) <= (segment, offset));
        let group = &self.groups[behind.checked_sub(1)?];
        if group.segment != segment {
            return None;
        }
        let at = (offset - group.offset) as usize;
        (at < group.block.len()).then_some((&group.block, at))
    }

    /// The groups that are kept of a stretch of `segment`, each with its offset.
    pub(crate) fn blocks(&self, segment: u64, stretch: &Range<u64>) -> Vec<(u64, Arc<Vec<u8>>)> {
        let of_stretch = self.groups.iter().filter(|group| {
            let end = group.offset + group.block.len() as u64;
            group.segment == segment && group.offset >= stretch.start && end <= stretch.end
        });
        of_stretch
            .map(|group| (group.offset, group.block.clone()))
            .collect()
    }

    /// The event whose record of `bytes` is at `offset`. It was written by this process, so its checksum is not
    /// computed again.
    pub(crate) fn event(
        &self,
        segment: u64,
        offset: u64,
        bytes: usize,
    ) -> Option<Result<StoredEvent, FrameError>> {
        let (block, at) = self.find(segment, offset)?;
        Some(StoredEvent::from_checked(block.clone(), at, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_commit_groups_are_not_kept() {
        let mut recent = TailCache::new(1000);
        recent.push(1, 64, Arc::new(vec![1; 10]));
        for _ in 0..100 {
            recent.push(1, 74, Arc::default());
        }
        assert_eq!(recent.groups.len(), 1);
        assert!(recent.find(1, 64).is_some());
    }
}
