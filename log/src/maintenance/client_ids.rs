//! Keeping the set of client ids: runs for segments that have none, and merges, so that there are few runs.

use crate::client_ids::{Covered, IdEntry, IdRun, RunWriter, segments_of_name};
use crate::maintainer::Maintainer;
use crate::segment::index::IndexError;
use prombus_store::LockExt;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A run is made of as many segments as hold this many ids, or of one: so many are sorted in memory.
const GATHERED_IDS: usize = 1 << 20;
/// A merge looks this often, in entries, whether something more urgent is to be done.
const ENTRIES_BETWEEN_LOOKS: usize = 1 << 16;

impl Maintainer {
    /// Makes and merges runs of client ids until none is due.
    pub(super) fn index_client_ids(&self) -> io::Result<()> {
        let building = &self.reader.client_ids.building;
        let _one_at_a_time = building.guard();
        self.remove_stale_runs()?;
        while let Some(segments) = self.reader.client_ids.set().uncovered().first().cloned() {
            if !self.cover(&segments)? || !self.may_go_on()? {
                return Ok(());
            }
        }
        while let Some(runs) = self.reader.client_ids.set().merge_due() {
            if !self.merge_runs(&runs)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Removes the files of runs that were merged, or are damaged. The caller holds `building`.
    fn remove_stale_runs(&self) -> io::Result<()> {
        if !self
            .reader
            .client_ids
            .has_stale_files
            .swap(false, Ordering::AcqRel)
        {
            return Ok(());
        }
        let set = self.reader.client_ids.set();
        for name in self.files.list()? {
            // One that was not finished is not being written: the caller is the only one who does that.
            let run_name = name.strip_suffix(".new").unwrap_or(&name);
            if segments_of_name(run_name).is_some() && !set.names().any(|one| one == name) {
                self.files.remove(&name)?;
            }
        }
        Ok(())
    }

    /// Makes a run of the first of these segments; false where an index had to be made again first.
    fn cover(&self, segments: &RangeInclusive<u64>) -> io::Result<bool> {
        let (start, mut end) = (*segments.start(), *segments.end());
        let mut entries: Vec<IdEntry> = Vec::new();
        let mut covered = Vec::new();
        for segment in self.reader.sealed_in(segments) {
            let number = segment.header.number;
            if entries.len() >= GATHERED_IDS {
                end = number - 1;
                break;
            }
            let add = |hash| {
                let segment = number.max(start);
                entries.push(IdEntry { hash, segment });
            };
            match segment.index.client_id_hashes(add) {
                Ok(()) => covered.push(Covered::of(&segment)),
                Err(IndexError::Io(error)) => return Err(error),
                Err(IndexError::Damaged) => {
                    self.reader.rebuild_index(&segment)?;
                    return Ok(false);
                }
            }
        }
        if entries.is_empty() {
            self.reader.client_ids.cover_without_run(&(start..=end));
            return Ok(true);
        }
        entries.sort_unstable();
        let mut writer = self.run_writer(start..=end, entries.len() as u64)?;
        for entry in entries {
            writer.push(entry)?;
        }
        let (run, filter) = writer.finish(&*self.files, &covered)?;
        self.reader.client_ids.install(run, filter, &[]);
        Ok(true)
    }

    /// Merges neighbouring runs into one; false where one turned out damaged or the log is being closed.
    fn merge_runs(&self, runs: &[Arc<IdRun>]) -> io::Result<bool> {
        let (Some(first), Some(last)) = (runs.first(), runs.last()) else {
            return Ok(false);
        };
        let segments = *first.segments.start()..=*last.segments.end();
        let sealed = self.reader.sealed_in(&segments);
        let is_kept = |segment: u64| {
            let behind = sealed.partition_point(|one| one.header.number <= segment);
            let candidate = behind.checked_sub(1).map(|at| &sealed[at]);
            candidate.is_some_and(|one| one.numbers().contains(&segment))
        };
        let most = runs.iter().map(|run| run.entries).sum();
        let mut writer = self.run_writer(segments, most)?;
        let mut scans: Vec<_> = runs.iter().map(|run| run.scan()).collect();
        let mut heads = BinaryHeap::new();
        let mut next = |at: usize, heads: &mut BinaryHeap<Reverse<(IdEntry, usize)>>| {
            match scans[at].next() {
                Ok(entry) => heads.extend(entry.map(|entry| Reverse((entry, at)))),
                Err(IndexError::Io(error)) => return Err(error),
                Err(IndexError::Damaged) => {
                    self.reader.client_ids.discard(&scans[at].run);
                    return Ok(false);
                }
            }
            Ok(true)
        };
        for at in 0..runs.len() {
            if !next(at, &mut heads)? {
                return Ok(false);
            }
        }
        let mut since_look = 0;
        while let Some(Reverse((entry, at))) = heads.pop() {
            if is_kept(entry.segment) {
                writer.push(entry)?;
            }
            since_look += 1;
            let may_go_on = since_look < ENTRIES_BETWEEN_LOOKS || self.may_go_on()?;
            since_look %= ENTRIES_BETWEEN_LOOKS;
            if !may_go_on || !next(at, &mut heads)? {
                return Ok(false);
            }
        }
        // Segments between those of two runs hold no ids, which for some is known only because they were looked at.
        let covered: Vec<Covered> = sealed.iter().map(|one| Covered::of(one)).collect();
        let (run, filter) = writer.finish(&*self.files, &covered)?;
        self.reader.client_ids.install(run, filter, runs);
        self.remove_stale_runs()?;
        Ok(true)
    }

    /// Lets sealing go first, which writers may be waiting for. False if the log is being closed.
    fn may_go_on(&self) -> io::Result<bool> {
        let is_wanted = std::mem::take(&mut self.background.signal().wanted);
        if is_wanted {
            self.seal_full_segments()?;
        }
        Ok(!self.background.signal().stopping)
    }

    fn run_writer(&self, segments: RangeInclusive<u64>, most: u64) -> io::Result<RunWriter> {
        let limit_bytes = self.reader.client_ids.filter_limit_bytes();
        RunWriter::create(
            &*self.files,
            self.committer.log_id,
            segments,
            most,
            limit_bytes,
        )
    }
}
