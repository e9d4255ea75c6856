//! Maintenance: full segments are sealed, what retention and compaction let go is forgotten, and segments of which little
//! is left are rewritten. Positions never move and readers are not disturbed; a crash in the middle of a rewrite
//! leaves the old segment. Sealing has a thread of its own, so that publishers, who cannot go far without it, never
//! wait for a rewrite.

mod client_ids;
mod compaction;
mod freeing;
mod gather;
pub(crate) mod pieces;
mod retention;
mod rewrite;
mod seal;
mod state;

use crate::background::MaintenanceSignal;
use crate::maintainer::Maintainer;
use crate::options::Role;
use crate::pace::YieldTo;
use crate::segment::sealed::Sealed;
use crate::segment::{data_name, index_name};
use crate::view::{TOPICS_PER_HOLD, TopicView, View};
use prombus_store::LockExt;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A segment is rewritten when less than one half of it is still wanted.
const REWRITE_BELOW: (u64, u64) = (1, 2);
/// Removing a segment counts as this share of its bytes: the file system has to free them.
const REMOVAL_COST: u64 = 8;
/// Neighbours are merged when each is below one quarter of a full segment.
const MERGE_BELOW: (u64, u64) = (1, 4);
/// So many neighbours are merged at a time: their files stay open until the last reader has let go of them.
const MERGED_SEGMENTS: usize = 16;

impl Maintainer {
    /// Does all maintenance that is due, except sealing.
    pub(crate) fn maintain(&self) -> io::Result<()> {
        self.committer.regain_reserve();
        self.merge_state_runs()?;
        let compacted = match self.committer.options.role {
            Role::Primary => {
                self.apply_retention();
                // Where the disk is full compaction may fail, and what retention lets go is what makes room.
                self.compact_topics()
            }
            // What a copy holds is decided by the log that it copies.
            Role::Copy => Ok(()),
        };
        self.reclaim()?;
        compacted?;
        self.index_client_ids()
    }

    /// What the sealing thread does until the log is closed.
    pub(crate) fn run_sealing_thread(&self) {
        loop {
            let maintenance = self.wait_for_maintenance(|maintenance| maintenance.wanted);
            let Some(mut maintenance) = maintenance else {
                return;
            };
            maintenance.wanted = false;
            drop(maintenance);
            let outcome = self.seal_full_segments();
            keep_failure(&self.committer.stats.seal_failure, outcome);
        }
    }

    /// What the maintenance thread does until the log is closed.
    pub(crate) fn run_maintenance_thread(&self) {
        let interval_ms = self.committer.options.maintain_interval_ms;
        let mut maintained_ms = self.committer.options.clock.now_ms();
        loop {
            let maintenance = self.wait_for_maintenance(|maintenance| maintenance.has_sealed);
            let Some(mut maintenance) = maintenance else {
                return;
            };
            let has_sealed = std::mem::take(&mut maintenance.has_sealed);
            drop(maintenance);
            // A log whose segments fill faster than the interval is not looked at for each of them.
            let now_ms = self.committer.options.clock.now_ms();
            let is_due = now_ms.saturating_sub(maintained_ms) >= interval_ms;
            if has_sealed && !is_due {
                continue;
            }
            maintained_ms = now_ms;
            let outcome = self.maintain();
            if !self.background.pacer.is_interrupted() {
                keep_failure(&self.committer.stats.maintenance_failure, outcome);
            }
        }
    }

    /// Waits until there is something to do, at most for the interval. `None` if the log is being closed.
    fn wait_for_maintenance(
        &self,
        is_due: impl Fn(&MaintenanceSignal) -> bool,
    ) -> Option<MutexGuard<'_, MaintenanceSignal>> {
        let interval = Duration::from_millis(self.committer.options.maintain_interval_ms);
        let waits =
            |maintenance: &mut MaintenanceSignal| !is_due(maintenance) && !maintenance.stopping;
        let waited =
            self.background
                .wake
                .wait_timeout_while(self.background.signal(), interval, waits);
        let (maintenance, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (!maintenance.stopping).then_some(maintenance)
    }

    /// Pauses after so many bytes of rewriting. An error if the work has to end, because the log is being closed.
    pub(crate) fn pace_rewriting(&self, bytes: u64) -> io::Result<()> {
        if self.committer.options.threads {
            let yield_to = match self.reader.view().active_segments.len() {
                0 | 1 => YieldTo::Nobody,
                _ => YieldTo::Sealing,
            };
            let rate = self.committer.options.rewrite_bytes_per_second;
            self.background.pacer.pause_rewriting(bytes, rate, yield_to);
        }
        if self.background.pacer.is_interrupted() {
            Err(io::ErrorKind::Interrupted.into())
        } else {
            Ok(())
        }
    }

    /// Frees what is not wanted any more: removes empty segments, rewrites sparse ones, merges small neighbours.
    fn reclaim(&self) -> io::Result<()> {
        let _one_at_a_time = self.rewriting.guard();
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
                _ if self.committer.has_room_for(live_bytes) => {
                    self.rewrite(&segments, |_| Ok(true))?
                }
                _ => break,
            }
        }
        Ok(())
    }

    /// Groups of neighbouring segments that are worth rewriting into one, each with its live bytes.
    fn reclaimable(&self) -> Vec<Vec<(Arc<Sealed>, u64)>> {
        // Before their live bytes are counted, and without those that sealing has not moved all topics to yet: a segment
        // of which nothing was counted is removed.
        let segments: Vec<Arc<Sealed>> = {
            let view = self.reader.view();
            let is_moved = |segment: &&Arc<Sealed>| {
                let number = segment.header.number;
                view.active_segments
                    .iter()
                    .all(|active| active.number != number)
            };
            view.sealed.values().filter(is_moved).cloned().collect()
        };
        let live_bytes = self.live_bytes();
        let full = self.committer.options.segment_bytes;
        let mut groups: Vec<Vec<(Arc<Sealed>, u64)>> = Vec::new();
        let mut small: Vec<(Arc<Sealed>, u64)> = Vec::new();
        let mut small_bytes = 0;
        for segment in &segments {
            let live = live_bytes.get(&segment.header.number).copied().unwrap_or(0);
            let is_small = live > 0 && live * MERGE_BELOW.1 < full * MERGE_BELOW.0;
            let fits = small_bytes + live <= full / 2 && small.len() < MERGED_SEGMENTS;
            if is_small && fits {
                small_bytes += live;
                small.push((segment.clone(), live));
                continue;
            }
            groups.push(std::mem::take(&mut small));
            small_bytes = 0;
            let entry = (segment.clone(), live);
            if is_small {
                small_bytes = live;
                small.push(entry);
            } else {
                groups.push(vec![entry])
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

    /// About how many bytes of each segment are still wanted. The caller holds `rewriting`.
    fn live_bytes(&self) -> HashMap<u64, u64> {
        let mut live: HashMap<u64, u64> = HashMap::new();
        self.visit_topics(|view, topic| {
            for (run, end_seq) in view.runs_with_ends(topic) {
                let bytes = run.kept_bytes(topic.first_seq, end_seq);
                *live.entry(run.segment.header.number).or_default() += bytes;
            }
        });
        live
    }

    /// Looks at all topics, some at a time: publishers wait while the view is locked.
    fn visit_topics(&self, mut visit: impl FnMut(&View, &TopicView)) {
        let topics: Vec<u32> = self.reader.view().topics.keys().copied().collect();
        for some in topics.chunks(TOPICS_PER_HOLD) {
            let view = self.reader.view();
            for topic in some.iter().filter_map(|number| view.topics.get(number)) {
                visit(&view, topic);
            }
            drop(view);
            self.background.pacer.hand_over_lock();
        }
    }

    /// Removes segments of which nothing is wanted.
    fn remove_segments(&self, segments: &[Arc<Sealed>]) -> io::Result<()> {
        self.record_removed(segments)?;
        for segment in segments {
            self.remove_segment(segment)?;
            self.pace_rewriting(segment.data_bytes / REMOVAL_COST)?;
        }
        self.files.sync_names()
    }

    fn remove_segment(&self, segment: &Arc<Sealed>) -> io::Result<()> {
        let _no_rebuild = self.reader.rebuilding.guard();
        let number = segment.header.number;
        self.reader
            .replace_sealed(std::slice::from_ref(segment), None)?;
        self.reader.cache.forget(number);
        self.files.remove(&data_name(number))?;
        self.files.remove(&index_name(number))
    }

    /// Writes down that segments are going to be removed, or a segment that is missing could not be told from them.
    fn record_removed(&self, segments: &[Arc<Sealed>]) -> io::Result<()> {
        self.record_segments(|set| {
            for segment in segments {
                let header = &segment.header;
                set.remove(header.number..=header.covers_to.max(header.number));
            }
        })
    }
}

/// A failure of maintenance harms no data; it is shown to operators, and the next round tries again.
fn keep_failure(place: &Mutex<Option<String>>, outcome: io::Result<()>) {
    let failure = outcome.err().map(|error| error.to_string());
    *place.guard() = failure;
}
