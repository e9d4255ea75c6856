//! Which client ids the sealed segments hold: a log-structured set of sorted hash runs beside the segments' own tables,
//! so that looking for a random id does not ask every segment.
//!
//! Each run stands for the ids of a range of segments (`run`); maintenance makes runs of newly sealed segments and merges
//! them, so that there are few. A filter over each run is kept in memory up to a limit, smallest runs first; a run
//! without one costs a look-up one block of 4 KiB. The set is derived from the segments' indexes and never believed when
//! it is damaged: a run that turns out so is dropped, its segments are asked one by one until it is made again. An entry
//! names its segment, which then says itself whether it holds the id, so entries that are out of date do no harm.

mod ranges;
mod run;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use run::{Covered, IdEntry, IdRun, segments_of_name};
pub(crate) use write::RunWriter;

use crate::files::Files;
use crate::filter::{self, HugeBytes, Probe};
use crate::segment::index::IndexError;
use crate::segment::sealed::Sealed;
use prombus_store::RwLockExt;
use ranges::{subtract, touch};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};

/// So many runs of about the same size are merged into one.
const FAN_IN: usize = 4;
/// Runs up to this many ids count as of the same size; beyond it each size is [`FAN_IN`] times the one before.
const SMALL_RUN_IDS: u64 = 1 << 16;
/// So many runs may be without a filter; with more of them they are merged whatever their size.
const UNFILTERED_RUNS: usize = 2;

/// The client ids of all sealed segments.
pub(crate) struct ClientIds {
    set: RwLock<Arc<IdSet>>,
    /// Filters in memory take this much.
    filter_limit_bytes: usize,
    /// Held while runs are made or merged.
    pub(crate) building: Mutex<()>,
    /// There may be files of runs that are not in the set.
    pub(crate) has_stale_files: AtomicBool,
}

/// The set as of some moment.
#[derive(Clone, Default)]
pub(crate) struct IdSet {
    /// By their segments, which do not overlap.
    runs: Vec<FilteredRun>,
    /// Numbers of segments that may hold ids and have no run.
    uncovered: Vec<RangeInclusive<u64>>,
}

#[derive(Clone)]
struct FilteredRun {
    run: Arc<IdRun>,
    filter: Option<Arc<HugeBytes>>,
}

impl ClientIds {
    /// Takes in the runs in `files` that fit the sealed segments. All others are made again by maintenance.
    pub(crate) fn open(
        files: &dyn Files,
        log_id: u64,
        sealed: &BTreeMap<u64, Arc<Sealed>>,
        filter_limit_bytes: usize,
    ) -> Self {
        let mut found: Vec<IdRun> = files
            .list()
            .unwrap_or_default()
            .iter()
            .filter_map(|name| IdRun::open(files, name, log_id).ok())
            .filter(|run| sealed.values().all(|segment| run.fits(segment)))
            .collect();
        // Of runs that overlap, a merge is the widest and replaces the others.
        found.sort_by_key(|run| (*run.segments.start(), u64::MAX - *run.segments.end()));
        let mut set = IdSet::default();
        for run in found {
            let end = set.runs.last().map(|last| *last.run.segments.end());
            if end.is_none_or(|end| end < *run.segments.start()) {
                let run = Arc::new(run);
                set.runs.push(FilteredRun { run, filter: None });
            }
        }
        let mut bytes = 0;
        for filtered in set.runs.iter_mut().rev() {
            bytes += filtered.run.filter_bytes();
            if bytes <= filter_limit_bytes {
                filtered.filter = filtered.run.load_filter().ok().flatten().map(Arc::new);
            }
        }
        for segment in sealed.values().filter(|one| one.may_hold_client_ids()) {
            set.uncover(segment.numbers());
        }
        Self {
            set: RwLock::new(Arc::new(set)),
            filter_limit_bytes,
            building: Mutex::default(),
            has_stale_files: AtomicBool::new(true),
        }
    }

    /// The set as it is now.
    pub(crate) fn set(&self) -> Arc<IdSet> {
        self.set.read_guard().clone()
    }

    /// Notes a segment that was just sealed. From here on look-ups ask it, until a run covers it.
    pub(crate) fn add_segment(&self, segment: &Sealed) {
        if !segment.may_hold_client_ids() {
            return;
        }
        let numbers = segment.numbers();
        let set = self.set();
        let runs = set.runs.iter().map(|one| &one.run);
        // A run of other segments with these numbers, which were lost.
        for run in runs.filter(|run| touch(&run.segments, &numbers)) {
            self.discard(run);
        }
        self.change(|set| set.uncover(numbers));
    }

    /// Puts a run in the place of those it was made of, or of the segments themselves if it was made of none. It is left out
    /// if one of them was dropped meanwhile.
    pub(crate) fn install(&self, run: IdRun, filter: Option<HugeBytes>, made_of: &[Arc<IdRun>]) {
        self.has_stale_files.store(true, Ordering::Release);
        let filter = filter.map(Arc::new);
        let run = Arc::new(run);
        let limit_bytes = self.filter_limit_bytes;
        self.change(|set| {
            if !made_of.iter().all(|old| set.holds(old)) {
                return;
            }
            set.cover(&run.segments);
            set.runs
                .retain(|old| !touch(&old.run.segments, &run.segments));
            let at = set
                .runs
                .partition_point(|old| old.run.segments.start() < run.segments.start());
            set.runs.insert(at, FilteredRun { run, filter });
            set.limit_filters(limit_bytes);
        });
    }

    /// Notes that segments hold no ids or are gone.
    pub(crate) fn cover_without_run(&self, segments: &RangeInclusive<u64>) {
        self.change(|set| set.cover(segments));
    }

    /// Drops a run that is damaged.
    pub(crate) fn discard(&self, run: &Arc<IdRun>) {
        self.has_stale_files.store(true, Ordering::Release);
        self.change(|set| {
            let before = set.runs.len();
            set.runs.retain(|one| !Arc::ptr_eq(&one.run, run));
            if set.runs.len() < before {
                set.uncover(run.segments.clone());
            }
        });
    }

    /// How large the filter of a run may be.
    pub(crate) fn filter_limit_bytes(&self) -> usize {
        self.filter_limit_bytes
    }

    fn change(&self, change: impl FnOnce(&mut IdSet)) {
        let mut current = self.set.write_guard();
        change(Arc::make_mut(&mut current));
    }
}

impl IdSet {
    /// Whether a run may hold an id; false is certain. Segments that are not covered have to be asked too.
    pub(crate) fn may_hold(&self, hash: u64) -> bool {
        let probe = Probe::new(hash);
        self.runs.iter().any(|one| one.may_hold(&probe))
    }

    /// Brings what [`Self::may_hold`] needs for these hashes into the processor's cache.
    pub(crate) fn touch(&self, hashes: impl Iterator<Item = u64>) {
        let mut touched = 0;
        for hash in hashes {
            for filter in self.runs.iter().filter_map(|one| one.filter.as_ref()) {
                touched ^= filter::touch(filter, hash);
            }
        }
        std::hint::black_box(touched);
    }

    /// Adds the numbers of the segments that a run says to hold an id with this hash. A damaged run is named.
    pub(crate) fn segments_of(
        &self,
        hash: u64,
        segments: &mut Vec<u64>,
    ) -> Result<(), (Arc<IdRun>, IndexError)> {
        let probe = Probe::new(hash);
        for one in self.runs.iter().filter(|one| one.may_hold(&probe)) {
            let found = one.run.find(hash, segments);
            found.map_err(|error| (one.run.clone(), error))?;
        }
        Ok(())
    }

    /// Numbers of segments that may hold ids and have no run.
    pub(crate) fn uncovered(&self) -> &[RangeInclusive<u64>] {
        &self.uncovered
    }

    /// The file names of all runs.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.runs.iter().map(|one| one.run.name())
    }

    /// Neighbouring runs that are to be merged, if there are any.
    pub(crate) fn merge_due(&self) -> Option<Vec<Arc<IdRun>>> {
        let due = self.unfiltered().or_else(|| self.of_one_size())?;
        Some(due.iter().map(|one| one.run.clone()).collect())
    }

    /// The newest runs, when [`FAN_IN`] of them are of one size and none behind those is larger.
    fn of_one_size(&self) -> Option<&[FilteredRun]> {
        let levels: Vec<u32> = self.runs.iter().map(|one| level(&one.run)).collect();
        let highest = levels.iter().copied().max()?;
        (0..=highest).find_map(|level| {
            let start = levels.iter().rposition(|&one| one > level);
            let start = start.map_or(0, |larger| larger + 1);
            let count = levels[start..].iter().filter(|&&one| one == level).count();
            (count >= FAN_IN).then(|| &self.runs[start..])
        })
    }

    /// The runs without a filter and what is between them, when there are too many.
    fn unfiltered(&self) -> Option<&[FilteredRun]> {
        let is_unfiltered = |one: &FilteredRun| one.filter.is_none() && one.run.entries > 0;
        let count = self.runs.iter().filter(|one| is_unfiltered(one)).count();
        let first = self.runs.iter().position(is_unfiltered)?;
        let last = self.runs.iter().rposition(is_unfiltered)?;
        (count > UNFILTERED_RUNS).then(|| &self.runs[first..=last])
    }

    fn holds(&self, run: &Arc<IdRun>) -> bool {
        self.runs.iter().any(|one| Arc::ptr_eq(&one.run, run))
    }

    fn uncover(&mut self, segments: RangeInclusive<u64>) {
        let covered = self.runs.iter().map(|one| &one.run.segments);
        let covered = covered.chain(&self.uncovered);
        let missing = subtract(segments, covered);
        self.uncovered.extend(missing);
        self.uncovered.sort_unstable_by_key(|range| *range.start());
    }

    fn cover(&mut self, segments: &RangeInclusive<u64>) {
        let uncovered = std::mem::take(&mut self.uncovered);
        let left = uncovered.into_iter();
        self.uncovered = left.flat_map(|range| subtract(range, [segments])).collect();
    }

    /// Lets go of the filters beyond the limit, those of the newest runs last.
    fn limit_filters(&mut self, limit_bytes: usize) {
        let mut bytes = 0;
        for one in self.runs.iter_mut().rev() {
            bytes += one.filter.as_ref().map_or(0, |filter| filter.len());
            if bytes > limit_bytes {
                one.filter = None;
            }
        }
    }
}

impl FilteredRun {
    fn may_hold(&self, probe: &Probe) -> bool {
        match &self.filter {
            Some(filter) => probe.may_be_in(filter),
            None => self.run.entries > 0,
        }
    }
}

fn level(run: &IdRun) -> u32 {
    (run.entries / SMALL_RUN_IDS).max(1).ilog(FAN_IN as u64)
}
