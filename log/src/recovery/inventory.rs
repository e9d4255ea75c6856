//! What the files of a folder are, before any of them is believed: which segments belong to this log and are where
//! their names say, which are missing, and which files are to be moved aside. Nothing is changed here.
//!
//! **Whose log it is.** Every segment that is where its name says, the record of segments and the mark of a clean stop
//! name a log id. The id that most of them name wins; where two are named equally often, the one that the record of
//! segments names does. What names another id is foreign.

use super::SegmentScan;
use crate::client_ids::segments_of_name;
use crate::closed_mark::{CLOSED_NAME, ClosedMark};
use crate::files::Files;
use crate::prepare::prepared_name;
use crate::segment::cache::SectionCache;
use crate::segment::index::{Index, IndexFor, RunInfo};
use crate::segment::{
    HEADER_BYTES, HeaderError, Layout, SegmentHeader, data_name, index_name, index_number_of,
    number_of, unfinished,
};
use crate::segment_set::{SEGMENTS_NAME, SegmentSet};
use crate::state_runs::run_number_of;
use prombus_store::{Damage, DamageKind};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// A segment's file by name.
pub(super) struct SegmentFile {
    pub(super) number: u64,
    pub(super) header: Result<SegmentHeader, HeaderError>,
    /// The header says that the log keeps a record of its segments.
    is_recorded: bool,
}

/// A file that is not to be used.
pub(super) struct Aside {
    pub(super) name: String,
    pub(super) damage: Damage,
}

/// The files of a log.
pub(super) struct Inventory {
    /// Those that belong to the log, in order.
    pub(super) segments: Vec<SegmentFile>,
    /// Whose log it is, where anything says so.
    pub(super) log_id: Option<u64>,
    /// The record of segments, where it can be believed.
    pub(super) set: Option<SegmentSet>,
    /// The mark of a clean stop, where it can be believed.
    pub(super) closed: Option<ClosedMark>,
    /// Files that are moved aside.
    pub(super) aside: Vec<Aside>,
    /// Files that are certainly leftovers of finished or unfinished work, on which nothing depends.
    pub(super) leftovers: Vec<String>,
    /// Damage to files that are not there to be moved.
    pub(super) damage: Vec<Damage>,
    /// Segments that must be there and are not.
    pub(super) missing: Vec<RangeInclusive<u64>>,
    /// How many of them come behind all that are there.
    pub(super) missing_at_end: u64,
    /// What the indexes of missing segments say of them.
    pub(super) orphans: Vec<(u64, Vec<RunInfo>)>,
}

impl Inventory {
    pub(super) fn take(files: &dyn Files) -> io::Result<Self> {
        let names: BTreeSet<String> = files.list()?.into_iter().collect();
        let mut segments = Vec::new();
        for number in names.iter().filter_map(|name| number_of(name)) {
            segments.push(SegmentFile::read(files, number)?);
        }
        segments.sort_unstable_by_key(|segment| segment.number);
        let set = SegmentSet::read(files);
        let closed = ClosedMark::read(files);
        let mut inventory = Self {
            log_id: whose(&segments, set.as_ref(), closed.as_ref()),
            segments,
            set,
            closed,
            aside: Vec::new(),
            leftovers: Vec::new(),
            damage: Vec::new(),
            missing: Vec::new(),
            missing_at_end: 0,
            orphans: Vec::new(),
        };
        inventory.check_records(&names);
        inventory.check_segments(files)?;
        inventory.find_missing(files, &names)?;
        inventory.check_unfinished(&names);
        Ok(inventory)
    }

    /// Leaves out the record and the mark where they are damaged or foreign.
    fn check_records(&mut self, names: &BTreeSet<String>) {
        let log_id = self.log_id;
        let is_foreign = |named: Option<u64>| named.is_some() && named != log_id;
        let set_id = self.set.as_ref().map(|set| set.log_id);
        let closed_id = self.closed.as_ref().and_then(|closed| closed.log_id);
        let has_set = names.contains(SEGMENTS_NAME);
        if is_foreign(set_id) {
            self.set = None;
            self.move_aside(SEGMENTS_NAME.to_owned(), DamageKind::ForeignFile, 0);
        } else if has_set && self.set.is_none() {
            self.move_aside(SEGMENTS_NAME.to_owned(), DamageKind::BadFile, 0);
        } else if !has_set && self.segments.iter().any(|one| one.is_recorded) {
            let mut damage = Damage::of(DamageKind::BadFile, 0);
            damage.file = Some(SEGMENTS_NAME.to_owned());
            self.damage.push(damage);
        }
        if is_foreign(closed_id) {
            self.closed = None;
            self.move_aside(CLOSED_NAME.to_owned(), DamageKind::ForeignFile, 0);
        } else if names.contains(CLOSED_NAME) && self.closed.is_none() {
            self.move_aside(CLOSED_NAME.to_owned(), DamageKind::BadFile, 0);
        }
    }

    /// Leaves out segments that are not what their name says, of another log, or contained in another one.
    fn check_segments(&mut self, files: &dyn Files) -> io::Result<()> {
        let found = std::mem::take(&mut self.segments);
        let mut merged_to: Option<(SegmentHeader, bool)> = None;
        for segment in found {
            let (number, name) = (segment.number, data_name(segment.number));
            let is_ours = |header: &SegmentHeader| Some(header.log_id) == self.log_id;
            match segment.header {
                Ok(header) if header.number != number => {
                    self.move_aside(name, DamageKind::MisplacedSegment, number);
                    continue;
                }
                Ok(header) if !is_ours(&header) => {
                    self.move_aside(name, DamageKind::ForeignFile, number);
                    continue;
                }
                _ => {}
            }
            let set = self.set.as_ref();
            if set.is_some_and(|set| set.is_removed(number)) && segment.header.is_ok() {
                self.leftovers.push(name);
                continue;
            }
            let covering = merged_to.filter(|(header, _)| header.covers_to >= number);
            if let Some((header, is_proven)) = covering {
                let is_sound = is_proven || is_whole(files, &header)?;
                merged_to = Some((header, is_sound));
                if is_sound && segment.header.is_ok() {
                    self.leftovers.push(name)
                } else {
                    self.move_aside(name, DamageKind::UnprovenMerge, number)
                }
                continue;
            }
            if let Ok(header) = segment.header {
                merged_to = Some((header, false));
            }
            self.segments.push(segment);
        }
        Ok(())
    }

    /// Looks for segments that must be there. A log without a record of its segments cannot tell those that it removed
    /// from those that are missing, except behind the last one.
    fn find_missing(&mut self, files: &dyn Files, names: &BTreeSet<String>) -> io::Result<()> {
        let used: BTreeSet<u64> = self.segments.iter().map(|one| one.number).collect();
        let indexes = names.iter().filter_map(|name| index_number_of(name));
        let indexes: Vec<u64> = indexes.filter(|number| !used.contains(number)).collect();
        let mut orphans = Vec::new();
        for &number in &indexes {
            let runs = directory_of(files, number);
            self.orphans.extend(runs.map(|runs| (number, runs)));
        }
        let present: Vec<RangeInclusive<u64>> =
            self.segments.iter().map(SegmentFile::covers).collect();
        let end = present.last().map_or(0, |range| *range.end());
        let mut to = end;
        if let Some(last) = self.segments.last()
            && last.is_sealed(files)?
        {
            to += 1;
        }
        to = to.max(self.set.as_ref().map_or(0, |set| set.highest));
        to = to.max(self.closed.as_ref().map_or(0, |mark| mark.segment));
        to = to.max(
            self.orphans
                .iter()
                .map(|(number, _)| *number)
                .max()
                .unwrap_or(0),
        );
        let is_recorded = self.segments.iter().any(|one| one.is_recorded);
        let mut known = SegmentSet::new(0);
        if self.set.is_none() && !is_recorded {
            known.remove(1..=end);
        }
        let set = self.set.as_ref().unwrap_or(&known);
        self.missing = set.missing(&present, to);
        // The index of a segment that was removed outlives it if a crash comes between the two.
        let is_removed = |number: u64| {
            set.is_removed(number) || present.iter().any(|range| range.contains(&number))
        };
        for number in indexes {
            if is_removed(number) {
                self.leftovers.push(index_name(number))
            } else {
                orphans.push(number)
            }
        }
        let at_end = self.missing.last().filter(|range| *range.end() > end);
        self.missing_at_end = at_end.map_or(0, |range| range.end() - range.start() + 1);
        // What the indexes of missing segments say is the last word on what is lost.
        self.orphans.retain(|(number, _)| orphans.contains(number));
        for number in orphans {
            self.move_aside(index_name(number), DamageKind::OrphanIndex, number);
        }
        Ok(())
    }

    /// A rewrite or an index that was not finished is a leftover if what it was to replace is there. Other unfinished
    /// files are small and overwritten when they are written again.
    fn check_unfinished(&mut self, names: &BTreeSet<String>) {
        let used: Vec<u64> = self.segments.iter().map(|one| one.number).collect();
        for number in used {
            let both = [data_name(number), index_name(number)];
            let left = both.map(|name| unfinished(&name));
            self.leftovers
                .extend(left.into_iter().filter(|name| names.contains(name)));
        }
        for name in names {
            let finished = name.strip_suffix(".new");
            // State runs and runs of client ids are made from what is there; so is the file prepared for a segment.
            if name == &prepared_name()
                || finished.is_some_and(|name| {
                    run_number_of(name).is_some() || segments_of_name(name).is_some()
                })
            {
                self.leftovers.push(name.clone());
                continue;
            }
            let number = finished.and_then(number_of);
            let number = number.filter(|_| !self.leftovers.contains(name));
            if let Some(number) = number {
                self.move_aside(name.clone(), DamageKind::BadFile, number);
            }
        }
    }

    /// The numbers of segments that are there, and of those that must be.
    pub(super) fn explained(&self) -> Vec<RangeInclusive<u64>> {
        let present = self.segments.iter().map(SegmentFile::covers);
        present.chain(self.missing.iter().cloned()).collect()
    }

    fn move_aside(&mut self, name: String, kind: DamageKind, segment: u64) {
        let damage = Damage::of(kind, segment);
        self.aside.push(Aside { name, damage });
    }
}

impl SegmentFile {
    fn read(files: &dyn Files, number: u64) -> io::Result<Self> {
        let mut bytes = [0; HEADER_BYTES as usize];
        let read = files.open(&data_name(number))?.read_at(&mut bytes, 0)?;
        Ok(Self {
            number,
            header: SegmentHeader::decode(&bytes[..read]),
            is_recorded: SegmentHeader::is_recorded(&bytes[..read]),
        })
    }

    fn covers(&self) -> RangeInclusive<u64> {
        let covers_to = self.header.map_or(self.number, |header| header.covers_to);
        self.number..=covers_to.max(self.number)
    }

    /// Whether it was sealed, so that another one must follow.
    fn is_sealed(&self, files: &dyn Files) -> io::Result<bool> {
        Ok(match self.header {
            Ok(header) if header.layout == Layout::Grouped => true,
            Ok(header) => has_fitting_index(files, &header)?,
            Err(_) => false,
        })
    }
}

/// The log id that most files name.
fn whose(
    segments: &[SegmentFile],
    set: Option<&SegmentSet>,
    closed: Option<&ClosedMark>,
) -> Option<u64> {
    let mut votes: BTreeMap<u64, u64> = BTreeMap::new();
    for segment in segments {
        if let Ok(header) = segment.header
            && header.number == segment.number
        {
            *votes.entry(header.log_id).or_default() += 1;
        }
    }
    let named = set.map(|set| set.log_id);
    let marked = closed.and_then(|closed| closed.log_id);
    for log_id in [named, marked].into_iter().flatten() {
        *votes.entry(log_id).or_default() += 1;
    }
    let most = votes
        .into_iter()
        .max_by_key(|(log_id, count)| (*count, named == Some(*log_id)));
    let any = segments.iter().filter_map(|one| one.header.ok());
    most.map(|(log_id, _)| log_id)
        .or_else(|| any.map(|header| header.log_id).next())
}

fn has_fitting_index(files: &dyn Files, header: &SegmentHeader) -> io::Result<bool> {
    let Ok(index) = files.open(&index_name(header.number)) else {
        return Ok(false);
    };
    let owner = IndexFor {
        number: header.number,
        generation: header.generation,
        data_bytes: files.open(&data_name(header.number))?.bytes()?,
    };
    Ok(Index::open(index, owner, Arc::new(SectionCache::new(0))).is_ok())
}

/// Whether every record of a segment is sound and none is missing. A segment that was rewritten is synced before it gets
/// its name, so a crash leaves it whole with the index of the older data, or with none.
fn is_whole(files: &dyn Files, header: &SegmentHeader) -> io::Result<bool> {
    let scan = SegmentScan::of_file(files, header.number, u64::MAX)?;
    let index = files.open(&index_name(header.number)).ok();
    let cache = Arc::new(SectionCache::new(0));
    let index = index.and_then(|index| Index::open_for_any_data(index, cache).ok());
    let is_older = index.is_none_or(|index| index.generation() < header.generation);
    Ok(scan.damage.is_empty() && (is_older || has_fitting_index(files, header)?))
}

/// What an index says of its segment's events.
fn directory_of(files: &dyn Files, number: u64) -> Option<Vec<RunInfo>> {
    let file = files.open(&index_name(number)).ok()?;
    let index = Index::open_for_any_data(file, Arc::new(SectionCache::new(0))).ok()?;
    if index.number() != number {
        return None;
    }
    index.runs().ok()
}
