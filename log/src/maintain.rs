//! Upkeep: full segments are sealed, what retention and compaction let go is forgotten, and segments of which little
//! is left are rewritten. Positions never move and readers are not disturbed; a crash in the middle of a rewrite
//! leaves the old segment.

mod compaction;
mod gather;
mod retention;
mod rewrite;
mod seal;

use crate::segment::sealed::Sealed;
use crate::segment::{data_name, index_name};
use crate::shared::Shared;
use crate::view::View;
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// A segment is rewritten when less than one half of it is still wanted.
const REWRITE_BELOW: (u64, u64) = (1, 2);
/// Neighbours are merged when each is below one quarter of a full segment.
const MERGE_BELOW: (u64, u64) = (1, 4);

impl Shared {
    /// Does all upkeep that is due.
    pub(crate) fn maintain(&self) -> io::Result<()> {
        self.regain_reserve();
        // Where the disk is full sealing may fail, and what retention lets go is what makes room.
        let sealed = self.seal_full_segments();
        self.apply_retention();
        let compacted = self.compact_topics();
        self.reclaim()?;
        sealed.and(compacted)
    }

    /// What the maintenance thread does until the log is closed.
    pub(crate) fn run_maintenance_thread(&self) {
        let interval_ms = self.options.maintain_interval_ms;
        let interval = Duration::from_millis(interval_ms);
        let mut maintained_ms = self.options.clock.now_ms();
        loop {
            let mut upkeep = self.upkeep();
            if !upkeep.wanted && !upkeep.stopping {
                let woken = self.upkeep_wake.wait_timeout(upkeep, interval);
                upkeep = woken.unwrap_or_else(PoisonError::into_inner).0;
            }
            if upkeep.stopping {
                return;
            }
            let is_for_sealing = std::mem::take(&mut upkeep.wanted);
            drop(upkeep);
            // A log whose segments fill faster than the interval would else never come to the rest.
            let now_ms = self.options.clock.now_ms();
            let is_due = now_ms.saturating_sub(maintained_ms) >= interval_ms;
            let outcome = match is_for_sealing && !is_due {
                true => self.seal_full_segments(),
                false => {
                    maintained_ms = now_ms;
                    self.maintain()
                }
            };
            // A failure here harms no data; it is shown to operators, and the next round tries again.
            let failure = outcome.err().map(|error| error.to_string());
            *self
                .stats
                .upkeep_failure
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = failure;
        }
    }

    /// Frees what is not wanted any more: removes empty segments, rewrites sparse ones, merges small neighbours.
    fn reclaim(&self) -> io::Result<()> {
        let _one_at_a_time = self
            .rewriting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let groups = self.reclaimable().into_iter().map(|group| {
            let live_bytes: u64 = group.iter().map(|(_, live_bytes)| live_bytes).sum();
            let segments = group.into_iter().map(|(segment, _)| segment);
            (live_bytes, segments.collect::<Vec<Arc<Sealed>>>())
        });
        let mut groups: Vec<_> = groups.collect();
        // What needs no room comes first: it makes room for the rest.
        groups.sort_by_key(|(live_bytes, _)| *live_bytes);
        for (live_bytes, segments) in groups {
            match live_bytes {
                0 => self.remove_segments(&segments)?,
                _ if self.has_room_for(live_bytes) => self.rewrite(&segments, |_| Ok(true))?,
                _ => break,
            }
        }
        Ok(())
    }

    /// Groups of neighbouring segments that are worth rewriting into one, each with its live bytes.
    fn reclaimable(&self) -> Vec<Vec<(Arc<Sealed>, u64)>> {
        let view = self.view();
        let full = self.options.segment_bytes;
        let mut groups: Vec<Vec<(Arc<Sealed>, u64)>> = Vec::new();
        let mut small: Vec<(Arc<Sealed>, u64)> = Vec::new();
        let mut small_bytes = 0;
        for segment in view.sealed.values() {
            let live = live_bytes(&view, segment);
            let is_small = live > 0 && live * MERGE_BELOW.1 < full * MERGE_BELOW.0;
            if is_small && small_bytes + live <= full / 2 {
                small_bytes += live;
                small.push((segment.clone(), live));
                continue;
            }
            groups.push(std::mem::take(&mut small));
            small_bytes = 0;
            let entry = (segment.clone(), live);
            match is_small {
                true => {
                    small_bytes = live;
                    small.push(entry);
                }
                false => groups.push(vec![entry]),
            }
        }
        groups.push(small);
        groups.retain(|group| match group.as_slice() {
            [] => false,
            [(segment, live)] => live * REWRITE_BELOW.1 < segment.data_bytes * REWRITE_BELOW.0,
            _ => true,
        });
        groups
    }

    /// Removes segments of which nothing is wanted.
    fn remove_segments(&self, segments: &[Arc<Sealed>]) -> io::Result<()> {
        let _no_healing = self.healing.lock().unwrap_or_else(PoisonError::into_inner);
        for segment in segments {
            let number = segment.header.number;
            self.view_mut().remove_sealed(number);
            self.cache.forget(number);
            self.files.remove(&data_name(number))?;
            self.files.remove(&index_name(number))?;
        }
        self.files.sync_names()
    }
}

/// About how many bytes of a segment are still wanted.
fn live_bytes(view: &View, segment: &Sealed) -> u64 {
    let live = segment.runs.iter().map(|run| {
        let kept = view
            .topics
            .get(&run.topic)
            .map_or(0, |topic| run.kept_from(topic.first_seq));
        run.bytes * kept / run.events.max(1)
    });
    live.sum()
}
