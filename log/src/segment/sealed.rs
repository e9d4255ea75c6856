//! A sealed segment: immutable data and its index. The caller that holds one can read it even after it was rewritten.

use super::header::SegmentHeader;
use super::index::{IdPrefix, Index, IndexError, Points, RunInfo, Section};
use super::scan::{Found, Scanner};
use crate::files::File;
use crate::record::{Kind, StoredEvent};
use std::io;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

/// How much a reader of one run reads at a time. An event that is kept keeps its block, so this also bounds what one
/// slow consumer's event costs.
const READ_BLOCK_BYTES: usize = 64 << 10;

/// A sealed segment.
pub(crate) struct Sealed {
    pub(crate) header: SegmentHeader,
    pub(crate) file: Arc<dyn File>,
    pub(crate) data_bytes: u64,
    pub(crate) index: Index,
    /// The numbers of the topics that have events in it, in order; the place of one is the slot of its run.
    pub(crate) topics: Box<[u32]>,
    may_hold_client_ids: bool,
    /// All runs, if the index is of a version in which one cannot be read alone.
    runs: Option<Box<[RunInfo]>>,
}

/// The next event of a run, or a place where there was one.
pub(crate) enum RunItem {
    Event { offset: u32, event: StoredEvent },
    Damage(Range<u64>),
}

/// Reads a run's events in the order of positions.
pub(crate) struct RunReader {
    scanner: Scanner,
    topic: u32,
    /// The run's positions: an event with another one was copied there from elsewhere.
    seqs: Range<u64>,
    /// No position between the run's ends was left out, so that a gap is a loss.
    is_dense: bool,
    /// The position before the next one, where it is known.
    last_seq: Option<u64>,
    /// A gap behind the last event was reported already.
    is_told: bool,
    /// Where the run ends, if it is read up to there.
    end: Option<u32>,
    /// Found behind a gap.
    waiting: Option<RunItem>,
}

impl Sealed {
    /// Opens a sealed segment's index and directory.
    pub(crate) fn new(
        header: SegmentHeader,
        file: Arc<dyn File>,
        data_bytes: u64,
        index: Index,
    ) -> Result<Self, IndexError> {
        let runs = index.runs()?;
        if !runs.is_sorted_by(|one, next| one.topic < next.topic) {
            return Err(IndexError::Damaged);
        }
        Ok(Self {
            topics: runs.iter().map(|run| run.topic).collect(),
            may_hold_client_ids: runs.iter().any(|run| run.highest_id != IdPrefix::default()),
            runs: (!index.has_fixed_entries()).then(|| runs.into()),
            header,
            file,
            data_bytes,
            index,
        })
    }

    /// The run of a topic, if it has one.
    pub(crate) fn run(&self, topic: u32) -> Result<Option<RunInfo>, IndexError> {
        let Ok(slot) = self.topics.binary_search(&topic) else {
            return Ok(None);
        };
        if let Some(runs) = &self.runs {
            return Ok(runs.get(slot).cloned());
        }
        let run = self.index.run(slot)?;
        if run.topic != topic {
            return Err(IndexError::Damaged);
        }
        Ok(Some(run))
    }

    /// The numbers of the segments whose events it holds: its own, and those of the ones that were merged into it.
    pub(crate) fn numbers(&self) -> RangeInclusive<u64> {
        self.header.number..=self.header.covers_to
    }

    /// False if it certainly holds no client ids.
    pub(crate) fn may_hold_client_ids(&self) -> bool {
        self.may_hold_client_ids
    }

    /// Reads a run from `offset` on.
    pub(crate) fn reader(&self, run: &RunInfo, offset: u32) -> RunReader {
        let range = u64::from(offset)..u64::from(run.data.end).min(self.data_bytes);
        let scanner = Scanner::over(self.file.clone(), range, READ_BLOCK_BYTES);
        let mut reader = RunReader::new(scanner, run);
        if offset == run.data.start {
            reader.last_seq = Some(run.first_seq - 1);
        }
        reader.end = Some(run.data.end);
        reader
    }

    /// Where to start reading to get the event at `seq` and those behind it.
    pub(crate) fn offset_for_seq(&self, run: &RunInfo, seq: u64) -> Result<u32, IndexError> {
        self.offset_before(run, |points| {
            points.partition_point(|point| point.seq <= seq)
        })
    }

    /// Where to start reading to get the first event at or after `ts` in the order of positions.
    pub(crate) fn offset_for_ts(&self, run: &RunInfo, ts: u64) -> Result<u32, IndexError> {
        self.offset_before(run, |points| points.partition_point(|point| point.ts < ts))
    }

    /// Where to start reading an ordered run to get the first event behind (ts, seq).
    pub(crate) fn offset_behind(
        &self,
        run: &RunInfo,
        behind: (u64, u64),
    ) -> Result<u32, IndexError> {
        self.offset_before(run, |points| {
            points.partition_point(|point| (point.ts, point.seq) <= behind)
        })
    }

    /// The one event at `offset`, or what is damaged there.
    pub(crate) fn event_at(&self, topic: u32, offset: u32) -> io::Result<RunItem> {
        self.picker(topic, ONE_EVENT_BYTES).pick(offset)
    }

    /// The events at offsets that rise. Those that are close to each other are read together.
    pub(crate) fn events_at(
        &self,
        topic: u32,
        offsets: &[u32],
    ) -> impl Iterator<Item = io::Result<RunItem>> {
        let ends = offsets.first().zip(offsets.last());
        let span = ends.map_or(0, |(first, last)| last.saturating_sub(*first)) as usize;
        let block_bytes = match span / offsets.len().max(1) {
            apart if apart <= NEAR_BYTES => READ_BLOCK_BYTES,
            _ => ONE_EVENT_BYTES,
        };
        let mut picker = self.picker(topic, block_bytes);
        offsets.iter().map(move |&offset| picker.pick(offset))
    }

    fn picker(&self, topic: u32, block_bytes: usize) -> RunReader {
        let scanner = Scanner::over(self.file.clone(), 0..self.data_bytes, block_bytes);
        RunReader::of_topic(scanner, topic)
    }

    /// The positions of a run that a bad stretch held: those between the events around it.
    pub(crate) fn lost_seqs(&self, run: &RunInfo, bad: &Range<u64>) -> io::Result<Range<u64>> {
        let data = u64::from(run.data.start)..u64::from(run.data.end);
        let is_inside = bad.start < data.end && data.start < bad.end.max(bad.start + 1);
        if !is_inside {
            return Ok(0..0);
        }
        let before = |points: &Points<'_>| {
            points.partition_point(|point| u64::from(point.offset) < bad.start)
        };
        let start = self.offset_before(run, before).unwrap_or(run.data.start);
        let mut lost = run.first_seq..run.last_seq + 1;
        let mut reader = self.reader(run, start);
        while let Some(item) = reader.next()? {
            match item {
                RunItem::Event { offset, event } if u64::from(offset) < bad.start => {
                    lost.start = event.seq() + 1;
                }
                RunItem::Event { offset, event } if u64::from(offset) >= bad.end => {
                    lost.end = event.seq();
                    break;
                }
                _ => {}
            }
        }
        Ok(lost)
    }

    /// The offset of the point before the one that `count` of the points ends at.
    fn offset_before(
        &self,
        run: &RunInfo,
        count: impl Fn(&Points<'_>) -> usize,
    ) -> Result<u32, IndexError> {
        let section = self.index.section(Section::Points)?;
        let points = Points::of(&section, &run.points);
        let point = count(&points).checked_sub(1).and_then(|at| points.get(at));
        Ok(point.map_or(run.data.start, |point| point.offset))
    }
}

/// Events that are this close to each other on average are read with what is between them.
const NEAR_BYTES: usize = 4 << 10;
/// Enough for most single events; a larger one is read in a second go.
const ONE_EVENT_BYTES: usize = 2 << 10;

impl RunReader {
    fn new(scanner: Scanner, run: &RunInfo) -> Self {
        Self {
            seqs: run.first_seq..run.last_seq + 1,
            is_dense: run.events == run.last_seq + 1 - run.first_seq,
            ..Self::of_topic(scanner, run.topic)
        }
    }

    /// Reads events whose positions the caller checks.
    fn of_topic(scanner: Scanner, topic: u32) -> Self {
        Self {
            scanner,
            topic,
            seqs: 0..u64::MAX,
            is_dense: false,
            last_seq: None,
            is_told: false,
            end: None,
            waiting: None,
        }
    }

    /// The event at exactly this place, or what is damaged there.
    fn pick(&mut self, offset: u32) -> io::Result<RunItem> {
        self.scanner.seek(u64::from(offset));
        (self.last_seq, self.waiting) = (None, None);
        Ok(match self.next()? {
            Some(item @ RunItem::Event { offset: at, .. }) if at == offset => item,
            Some(RunItem::Damage(range)) => RunItem::Damage(range),
            _ => RunItem::Damage(u64::from(offset)..u64::from(offset)),
        })
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<RunItem>> {
        if let Some(waiting) = self.waiting.take() {
            return Ok(Some(waiting));
        }
        while let Some(found) = self.scanner.next()? {
            let (at, frame, block, in_block) = match found {
                Found::Damage { from, to } => {
                    self.is_told = true;
                    return Ok(Some(RunItem::Damage(from..to)));
                }
                Found::Record {
                    at,
                    frame,
                    block,
                    in_block,
                } => (at, frame, block, in_block),
            };
            if frame.kind != Kind::Event {
                continue;
            }
            match StoredEvent::from_checked(block, in_block, frame.bytes) {
                Ok(event) if event.topic_number() == self.topic => {
                    return Ok(Some(self.in_order(at as u32, event)));
                }
                Ok(_) => {}
                Err(_) => {
                    self.is_told = true;
                    return Ok(Some(RunItem::Damage(at..at + frame.bytes as u64)));
                }
            }
        }
        Ok(self.missing_at_end().map(RunItem::Damage))
    }

    /// An event whose position fits, else what is wrong there.
    fn in_order(&mut self, offset: u32, event: StoredEvent) -> RunItem {
        let (at, seq) = (u64::from(offset), event.seq());
        let is_behind = self.last_seq.is_none_or(|last| seq > last);
        if !self.seqs.contains(&seq) || !is_behind {
            self.is_told = true;
            return RunItem::Damage(at..at + event.stored_bytes() as u64);
        }
        let is_gap = self.last_seq.is_some_and(|last| seq > last + 1);
        let is_lost = is_gap && self.is_dense && !self.is_told;
        (self.last_seq, self.is_told) = (Some(seq), false);
        let found = RunItem::Event { offset, event };
        if is_lost {
            self.waiting = Some(found);
            RunItem::Damage(at..at)
        } else {
            found
        }
    }

    /// The place behind the last event, once, if more must follow there.
    fn missing_at_end(&mut self) -> Option<Range<u64>> {
        let end = u64::from(self.end.take()?);
        let is_short = self.last_seq.is_some_and(|last| last + 1 < self.seqs.end);
        (is_short && self.is_dense && !self.is_told).then(|| end.saturating_sub(1)..end)
    }
}
