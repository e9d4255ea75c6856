//! The latest event of keys as of a time: of each key's events up to that time, the one with the highest position.
//! Runs are asked from the newest to the oldest, so that most answers come from one run's table of keys.

use super::unknown;
use crate::files::File;
use crate::key_index::KeyRef;
use crate::reader::Reader;
use crate::record::StoredEvent;
use crate::segment::active::ActiveEntry;
use crate::segment::index::{KEY_SPACE, RunInfo};
use crate::segment::sealed::RunItem;
use crate::view::{SealedRun, View};
use prombus_store::{LatestEvent, ReadError};
use std::collections::HashMap;
use std::sync::Arc;

/// How many events of a segment in commit order are read in one go, from its end on.
const STEP_EVENTS: usize = 1024;

/// What is asked, and what has been found so far.
struct Search<'a> {
    at_ts: u64,
    first_seq: u64,
    /// Keys without an answer, with their place among the answers.
    open: HashMap<&'a str, usize>,
    answers: Vec<LatestEvent>,
    /// The position that the runs looked at so far begin with.
    reached_seq: u64,
    /// Whether they hold every position from there to the tail.
    is_whole: bool,
}

/// A topic's events in a segment in commit order, as far as they are asked for.
struct ActiveAsOf {
    segment: u64,
    file: Arc<dyn File>,
    first_seq: u64,
    last_seq: u64,
    events: u64,
    /// Those up to the time, if the run has one of the keys; in the order of positions.
    entries: Vec<ActiveEntry>,
}

impl Reader {
    /// For each key, its latest event among those with this ts or an earlier one.
    pub(crate) fn latest_at(
        &self,
        topic: &str,
        keys: &[String],
        at_ts: u64,
    ) -> Result<Vec<LatestEvent>, ReadError> {
        let (runs, active_segments, number, mut search) = {
            let view = self.view();
            let place = view.topic(topic).ok_or_else(|| unknown(topic))?;
            let search = Search::new(keys, at_ts, place.first_seq, place.tail_seq());
            let active_segments = active_of(&view, place.number, &search);
            (
                place.kept_runs().to_vec(),
                active_segments,
                place.number,
                search,
            )
        };
        for active in active_segments.iter().rev() {
            self.search_active(active, &mut search)?;
        }
        for run in runs.iter().rev() {
            if search.open.is_empty() {
                break;
            }
            if !self.search_sealed(run, number, &mut search)? {
                // An index was made again; the runs are other ones now.
                return self.latest_at(topic, keys, at_ts);
            }
        }
        Ok(search.finish())
    }

    /// Reads a segment in commit order from its end on until every key has its answer.
    fn search_active(&self, run: &ActiveAsOf, search: &mut Search<'_>) -> Result<(), ReadError> {
        search.enter(run.first_seq, run.last_seq, run.events);
        let mut rest = run.entries.as_slice();
        while !rest.is_empty() && !search.open.is_empty() {
            let (before, last) = rest.split_at(rest.len().saturating_sub(STEP_EVENTS));
            rest = before;
            let events = self.read_entries(run.segment, &run.file, last)?;
            search.is_whole &= events.len() == last.len();
            for event in events.into_iter().rev() {
                search.offer(event);
            }
        }
        Ok(())
    }

    /// Looks the keys up in a sealed run; false where its index had to be made again.
    fn search_sealed(
        &self,
        run: &SealedRun,
        number: u32,
        search: &mut Search<'_>,
    ) -> Result<bool, ReadError> {
        let Some(info) = self.run_info(run, number)? else {
            return Ok(false);
        };
        if info.last_seq < search.first_seq {
            return Ok(true);
        }
        search.enter(info.first_seq, info.last_seq, info.events);
        if info.min_ts > search.at_ts {
            return Ok(true);
        }
        let mut later = false;
        let keys: Vec<&str> = search.open.keys().copied().collect();
        for key in keys {
            let name = KeyRef {
                space: KEY_SPACE,
                topic: number,
                name: key.as_bytes(),
            };
            let Some(found) = self.or_rebuild(&run.segment, run.segment.index.find(&name))? else {
                return Ok(false);
            };
            let Some(entry) = found else { continue };
            match self.sealed_event(&run.segment, number, entry.offset, entry.seq)? {
                Some(event) if event.ts() <= search.at_ts => search.offer(event),
                // Its latest event here is later, or damaged; an earlier one may be what is asked for.
                Some(_) => later = true,
                None => (later, search.is_whole) = (true, false),
            }
        }
        if later {
            self.scan_sealed(run, &info, search)?;
        }
        Ok(true)
    }

    /// Reads a sealed run up to the time, and remembers where each key's last event is rather than the event, which
    /// would keep its block in memory.
    fn scan_sealed(
        &self,
        run: &SealedRun,
        info: &RunInfo,
        search: &mut Search<'_>,
    ) -> Result<(), ReadError> {
        let mut found: HashMap<&str, (u32, u64)> = HashMap::new();
        let mut reader = run.segment.reader(info, info.data.start);
        while let Some(item) = reader.next()? {
            match item {
                RunItem::Damage(range) => {
                    search.is_whole = false;
                    self.note_damage(&run.segment, range);
                }
                RunItem::Event { event, .. } if event.ts() > search.at_ts && info.ordered => break,
                RunItem::Event { event, offset } if event.ts() <= search.at_ts => {
                    let key = event.key();
                    let asked = key.and_then(|key| search.open.get_key_value(&*key));
                    if let Some((key, _)) = asked {
                        found.insert(key, (offset, event.seq()));
                    }
                }
                RunItem::Event { .. } => {}
            }
        }
        for (offset, seq) in found.into_values() {
            if let Some(event) = self.sealed_event(&run.segment, info.topic, offset, seq)? {
                search.offer(event);
            }
        }
        Ok(())
    }
}

impl<'a> Search<'a> {
    fn new(keys: &'a [String], at_ts: u64, first_seq: u64, tail_seq: u64) -> Self {
        Self {
            at_ts,
            first_seq,
            open: keys
                .iter()
                .enumerate()
                .map(|(place, key)| (key.as_str(), place))
                .collect(),
            answers: vec![LatestEvent::default(); keys.len()],
            reached_seq: tail_seq + 1,
            is_whole: true,
        }
    }

    /// Goes on to the run before those looked at so far.
    fn enter(&mut self, first_seq: u64, last_seq: u64, events: u64) {
        let has_all = events == last_seq + 1 - first_seq && last_seq + 1 == self.reached_seq;
        self.is_whole &= has_all;
        self.reached_seq = first_seq;
    }

    /// Takes an event that is the last one up to the time, as far as its key has no answer yet.
    fn offer(&mut self, event: StoredEvent) {
        if event.seq() < self.first_seq {
            return;
        }
        let place = event.key().and_then(|key| self.open.remove(&*key));
        if let Some(place) = place {
            self.answers[place] = LatestEvent {
                event: Some(event),
                is_certain: self.is_whole,
            };
        }
    }

    /// Keys of which nothing was found have none, if everything that the topic keeps was looked at.
    fn finish(mut self) -> Vec<LatestEvent> {
        let is_certain = self.is_whole && self.reached_seq <= self.first_seq;
        for place in self.open.into_values() {
            self.answers[place].is_certain = is_certain;
        }
        self.answers
    }
}

/// What the segments in commit order hold of a topic, oldest first.
fn active_of(view: &View, number: u32, search: &Search<'_>) -> Vec<ActiveAsOf> {
    let mut active_segments = Vec::new();
    for active in &view.active_segments {
        let Some(run) = active.runs.get(&number) else {
            continue;
        };
        let (Some(first), Some(last)) = (run.entries.first(), run.entries.last()) else {
            continue;
        };
        let latest = search
            .open
            .keys()
            .filter_map(|key| run.latest_of_key(key))
            .max();
        let wanted = |entry: &&ActiveEntry| {
            entry.ts <= search.at_ts
                && entry.seq >= search.first_seq
                && latest.is_some_and(|latest| entry.seq <= latest)
        };
        active_segments.push(ActiveAsOf {
            segment: active.number,
            file: active.file.clone(),
            first_seq: first.seq,
            last_seq: last.seq,
            events: run.entries.len() as u64,
            entries: match latest {
                Some(_) => run.entries.iter().filter(wanted).copied().collect(),
                None => Vec::new(),
            },
        });
    }
    active_segments
}
