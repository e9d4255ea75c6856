//! Reading by time: all runs that touch the range are merged in (ts, seq) order. Runs are opened only when the merge
//! reaches their time, so in the usual case, where time and position agree, one is open at a time.

use super::{ActivePlaces, PageBuilder, unknown};
use crate::reader::Reader;
use crate::record::StoredEvent;
use crate::segment::active::{ActiveEntry, ActiveRun};
use crate::segment::index::{Point, Points, RunInfo, Section};
use crate::segment::sealed::{RunItem, RunReader, Sealed};
use crate::view::SealedRun;
use prombus_store::{Page, ReadError, ReadLimit, TimeRange};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// How many events of a segment in commit order are read in one go.
const ACTIVE_READ_EVENTS: usize = 256;

/// A run with what its directory says of it.
#[derive(Clone)]
struct OpenRun {
    segment: Arc<Sealed>,
    info: RunInfo,
}

/// A run that may have events in the range.
struct Waiting {
    min_ts: u64,
    run: WaitingRun,
}

enum WaitingRun {
    Sealed(OpenRun),
    /// What a segment in commit order has in the range, already in order.
    Active(ActivePlaces),
}

/// Runs outside of sealed segments, those in sealed ones, the number of the topic, and the bounds.
type AllRuns = (Vec<Waiting>, Vec<SealedRun>, u32, Bounds);

/// An open run.
enum Source {
    /// Its order is that of its positions.
    Ordered { run: OpenRun, reader: RunReader },
    /// Its events are read one by one, as its index lists them by time.
    Listed {
        run: OpenRun,
        points: std::vec::IntoIter<Point>,
    },
    /// Events of a segment in commit order, read some at a time.
    Active {
        places: ActivePlaces,
        read: std::vec::IntoIter<StoredEvent>,
    },
}

/// (ts, seq) bounds: behind the first, up to the second, and no position before `first_seq`.
#[derive(Clone, Copy)]
struct Bounds {
    behind: (u64, u64),
    to_ts: u64,
    first_seq: u64,
}

impl Reader {
    /// Reads a topic by time.
    pub(crate) fn read_by_time(
        &self,
        topic: &str,
        range: TimeRange,
        limit: ReadLimit,
    ) -> Result<Page, ReadError> {
        let (mut waiting, bounds) = self.runs_in(topic, range, limit)?;
        waiting.sort_by_key(|waiting| Reverse(waiting.min_ts));
        let mut sources: Vec<Source> = Vec::new();
        let mut next: BinaryHeap<Reverse<(u64, u64, usize)>> = BinaryHeap::new();
        let mut heads: Vec<Option<StoredEvent>> = Vec::new();
        let mut builder = PageBuilder {
            events: Vec::new(),
            bytes: 0,
            limit,
        };
        while !builder.is_full() {
            let reached = next.peek().map(|Reverse((ts, _, _))| *ts);
            if waiting
                .last()
                .is_some_and(|run| reached.is_none_or(|ts| run.min_ts <= ts))
            {
                let Some(run) = waiting.pop() else { break };
                sources.push(self.open_run(run.run, bounds, limit)?);
                heads.push(None);
                let at = sources.len() - 1;
                self.advance(&mut sources[at], bounds, at, &mut heads, &mut next)?;
                continue;
            }
            let Some(Reverse((_, _, at))) = next.pop() else {
                break;
            };
            builder.events.extend(
                heads[at]
                    .take()
                    .inspect(|event| builder.bytes += event.stored_bytes()),
            );
            self.advance(&mut sources[at], bounds, at, &mut heads, &mut next)?;
        }
        let more = builder.is_full() && !(next.is_empty() && waiting.is_empty());
        let last = builder.events.last();
        let next_time = last.filter(|_| more).map(|event| (event.ts(), event.seq()));
        self.page(topic, builder.events, next_time)
    }

    /// The runs of a topic that touch the range.
    fn runs_in(
        &self,
        name: &str,
        range: TimeRange,
        limit: ReadLimit,
    ) -> Result<(Vec<Waiting>, Bounds), ReadError> {
        loop {
            let (mut waiting, runs, topic, bounds) = self.all_runs(name, range, limit)?;
            if self.open_runs(&runs, topic, bounds, &mut waiting)? {
                return Ok((waiting, bounds));
            }
        }
    }

    /// Adds those of the sealed runs that touch the range; false if an index was made again and the runs are others now.
    fn open_runs(
        &self,
        runs: &[SealedRun],
        topic: u32,
        bounds: Bounds,
        waiting: &mut Vec<Waiting>,
    ) -> Result<bool, ReadError> {
        for run in runs {
            let Some(info) = self.run_info(run, topic)? else {
                return Ok(false);
            };
            let touches = info.max_ts >= bounds.behind.0
                && info.min_ts <= bounds.to_ts
                && info.last_seq >= bounds.first_seq;
            if touches {
                let segment = run.segment.clone();
                waiting.push(Waiting {
                    min_ts: info.min_ts,
                    run: WaitingRun::Sealed(OpenRun { segment, info }),
                });
            }
        }
        Ok(true)
    }

    /// What a topic has outside of sealed segments in the range, and all its sealed runs, as of one moment.
    fn all_runs(
        &self,
        name: &str,
        range: TimeRange,
        limit: ReadLimit,
    ) -> Result<AllRuns, ReadError> {
        let view = self.view();
        let topic = view.topic(name).ok_or_else(|| unknown(name))?;
        let start = (range.from_ts, 0);
        let bounds = Bounds {
            behind: range.after.map_or(start, |after| after.max(start)),
            to_ts: range.to_ts,
            first_seq: topic.first_seq,
        };
        let mut waiting = Vec::new();
        for active in &view.active_segments {
            let Some(run) = active.runs.get(&topic.number) else {
                continue;
            };
            let entries = bounds.entries_of(run, limit);
            if let Some(first) = entries.first() {
                waiting.push(Waiting {
                    min_ts: first.ts,
                    run: WaitingRun::Active(ActivePlaces {
                        segment: active.number,
                        file: active.file.clone(),
                        entries,
                    }),
                });
            }
        }
        Ok((waiting, topic.kept_runs().to_vec(), topic.number, bounds))
    }

    fn open_run(
        &self,
        run: WaitingRun,
        bounds: Bounds,
        limit: ReadLimit,
    ) -> Result<Source, ReadError> {
        let run = match run {
            WaitingRun::Active(places) => {
                let read = Vec::new().into_iter();
                return Ok(Source::Active { places, read });
            }
            WaitingRun::Sealed(run) => run,
        };
        let mut run = run;
        loop {
            let segment = run.segment.clone();
            let opened = if run.info.ordered {
                segment
                    .offset_behind(&run.info, bounds.behind)
                    .map(|offset| Source::Ordered {
                        reader: segment.reader(&run.info, offset),
                        run: run.clone(),
                    })
            } else {
                segment.index.section(Section::Order).map(|order| {
                    let order = Points::of(&order, &run.info.order);
                    let start =
                        order.partition_point(|point| (point.ts, point.seq) <= bounds.behind);
                    let points = (start..order.len()).map_while(|at| order.get(at));
                    let points: Vec<Point> = points
                        .take_while(|point| point.ts <= bounds.to_ts)
                        .filter(|point| point.seq >= bounds.first_seq)
                        .take(limit.events.saturating_add(1))
                        .collect();
                    Source::Listed {
                        run: run.clone(),
                        points: points.into_iter(),
                    }
                })
            };
            if let Some(source) = self.or_rebuild(&segment, opened)? {
                return Ok(source);
            }
            // The index was made again; the same run is in the view with its new index.
            let number = segment.header.number;
            let rebuilt = self.view().sealed.get(&number).cloned();
            let Some(segment) = rebuilt else {
                let points = Vec::new().into_iter();
                return Ok(Source::Listed { run, points });
            };
            match self.or_rebuild(&segment, segment.run(run.info.topic))? {
                Some(Some(info)) => run = OpenRun { segment, info },
                Some(None) => {
                    let points = Vec::new().into_iter();
                    return Ok(Source::Listed { run, points });
                }
                None => {}
            }
        }
    }

    /// Puts the next event of a source, if it has one in the range, among those to be merged.
    fn advance(
        &self,
        source: &mut Source,
        bounds: Bounds,
        at: usize,
        heads: &mut [Option<StoredEvent>],
        next: &mut BinaryHeap<Reverse<(u64, u64, usize)>>,
    ) -> Result<(), ReadError> {
        let event = match source {
            Source::Ordered { run, reader } => loop {
                match reader.next()? {
                    Some(RunItem::Damage(range)) => self.note_damage(&run.segment, range),
                    Some(RunItem::Event { event, .. }) if event.ts() > bounds.to_ts => break None,
                    Some(RunItem::Event { event, .. }) if bounds.hold(event.ts(), event.seq()) => {
                        break Some(event);
                    }
                    Some(RunItem::Event { .. }) => {}
                    None => break None,
                }
            },
            Source::Listed { run, points } => loop {
                let Some(point) = points.next() else {
                    break None;
                };
                let event =
                    self.sealed_event(&run.segment, run.info.topic, point.offset, point.seq)?;
                if event.is_some() {
                    break event;
                }
            },
            Source::Active { places, read } => loop {
                let event = read.next();
                if event.is_some() || places.entries.is_empty() {
                    break event;
                }
                let now = places.entries.len().min(ACTIVE_READ_EVENTS);
                let entries = places.entries.drain(..now).collect();
                let some = ActivePlaces {
                    segment: places.segment,
                    file: places.file.clone(),
                    entries,
                };
                *read = self.read_places(&some)?.into_iter();
            },
        };
        if let Some(event) = &event {
            next.push(Reverse((event.ts(), event.seq(), at)));
        }
        heads[at] = event;
        Ok(())
    }
}

impl Bounds {
    fn hold(&self, ts: u64, seq: u64) -> bool {
        (ts, seq) > self.behind && ts <= self.to_ts && seq >= self.first_seq
    }

    /// What a run has inside, in order. It is one more than fits on a page, so that it is seen whether the range is
    /// exhausted.
    fn entries_of(&self, run: &ActiveRun, limit: ReadLimit) -> Vec<ActiveEntry> {
        let most = limit.events.saturating_add(1);
        if run.ordered {
            // Where time never falls, what is inside is together, and looking at the rest would cost each page more.
            let kept = run.entries_from(self.first_seq);
            let start = kept.partition_point(|entry| (entry.ts, entry.seq) <= self.behind);
            let inside = kept[start..].iter();
            let inside = inside.take_while(|entry| entry.ts <= self.to_ts);
            return inside.take(most).copied().collect();
        }
        let inside = |entry: &&ActiveEntry| self.hold(entry.ts, entry.seq);
        let mut entries: Vec<ActiveEntry> = run.entries.iter().filter(inside).copied().collect();
        entries.sort_unstable_by_key(|entry| (entry.ts, entry.seq));
        entries.truncate(most);
        entries
    }
}
