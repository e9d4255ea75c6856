//! What makes a topic forget: trimming, retention and compaction. Positions never move.

use super::topic::{BLOCK_BYTES, Kept, Topic};
use crate::TOMBSTONE_MS;
use crate::record::EventBlock;

impl Topic {
    /// Forgets the events before `first_seq`.
    pub(super) fn trim(&mut self, first_seq: u64) {
        let first_seq = first_seq.min(self.tail_seq + 1);
        while self.events.front().is_some_and(|kept| kept.seq < first_seq) {
            self.forget_oldest();
        }
        self.first_seq = self.first_seq.max(first_seq);
        self.note_if_empty();
    }

    /// Forgets what the topic's options say it need not keep.
    pub(super) fn maintain(&mut self, now_ms: u64, block: &mut EventBlock) {
        self.apply_retention(now_ms);
        if self.options.compaction {
            self.compact(now_ms);
            self.repack(block);
        }
        self.note_if_empty();
    }

    fn apply_retention(&mut self, now_ms: u64) {
        let age_ms = self.options.retention_ms.unwrap_or(u64::MAX);
        let oldest_ms = now_ms.saturating_sub(age_ms);
        let max_bytes = self.options.max_bytes.unwrap_or(u64::MAX);
        let max_events = self.options.max_events.unwrap_or(u64::MAX);
        while let Some(oldest) = self.events.front() {
            let over = self.bytes > max_bytes || self.events.len() as u64 > max_events;
            if !over && oldest.stored_ms() >= oldest_ms {
                break;
            }
            self.first_seq = oldest.seq + 1;
            self.forget_oldest();
        }
    }

    /// Drops every event for whose key there is a newer one, and tombstones that have been there long enough.
    fn compact(&mut self, now_ms: u64) {
        let oldest_tombstone_ms = now_ms.saturating_sub(TOMBSTONE_MS);
        let mut events = std::mem::take(&mut self.events);
        let held_bytes = self.bytes;
        events.retain(|kept| {
            let stays = self.outlives_compaction(kept, oldest_tombstone_ms);
            if !stays {
                self.let_go(kept);
            }
            stays
        });
        self.events = events;
        if self.bytes < held_bytes {
            self.dropped_bytes += held_bytes - self.bytes;
            let moments = self.events.iter().map(|kept| (kept.event.ts(), kept.seq));
            self.by_time = moments.collect();
        }
    }

    /// An event that is the latest of its key has nothing of that key before it once compaction is through, so an
    /// old tombstone has nothing left to say.
    fn outlives_compaction(&self, kept: &Kept, oldest_tombstone_ms: u64) -> bool {
        let Some(key) = kept.event.key() else {
            return true;
        };
        let expired = kept.event.is_tombstone() && kept.stored_ms() < oldest_tombstone_ms;
        self.latest.get(key.as_ref()) == Some(&kept.seq) && !expired
    }

    /// Copies the events together once compaction has dropped more than it left, because one event that stays keeps
    /// the whole block it was committed with.
    fn repack(&mut self, block: &mut EventBlock) {
        if self.dropped_bytes <= self.bytes {
            return;
        }
        self.dropped_bytes = 0;
        let sparse = std::mem::take(&mut self.events);
        for (at, kept) in sparse.iter().enumerate() {
            block.copy(&kept.event);
            if block.bytes() >= BLOCK_BYTES || at + 1 == sparse.len() {
                let packed = block.take().map(|event| Kept {
                    seq: event.seq(),
                    event,
                });
                self.events.extend(packed);
            }
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(oldest) = self.events.pop_front() {
            self.by_time.remove_oldest((oldest.event.ts(), oldest.seq));
            self.let_go(&oldest);
        }
    }

    /// Removes what finds an event by id and key, and its bytes from the count.
    fn let_go(&mut self, kept: &Kept) {
        self.bytes -= kept.event.stored_bytes() as u64;
        if kept.event.has_client_id() {
            self.client_ids.remove(kept.event.id().as_ref());
        }
        if let Some(key) = kept.event.key()
            && self.latest.get(key.as_ref()) == Some(&kept.seq)
        {
            self.latest.remove(key.as_ref());
        }
    }

    /// Where nothing is kept, the first position to read is the next one.
    fn note_if_empty(&mut self) {
        if self.events.is_empty() {
            self.first_seq = self.tail_seq + 1;
        }
    }
}
