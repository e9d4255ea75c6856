//! A topic's runs in sealed segments, as far as they are in memory: what is asked of all runs at once, in 24 bytes each.
//! Everything else is read from the segments' directories when it is asked for.

use super::{TopicView, View};
use crate::reader::Reader;
use crate::segment::active::ActiveRun;
use crate::segment::index::{IndexError, RunInfo};
use crate::segment::sealed::Sealed;
use std::io;
use std::sync::Arc;

/// So many topics are looked at or change their runs while the view is locked, so that no one waits for long.
pub(crate) const TOPICS_PER_HOLD: usize = 512;

/// Room for runs is made for at least so many.
const FEWEST_MORE_RUNS: usize = 4;

/// A topic's events in one sealed segment.
#[derive(Clone)]
pub(crate) struct SealedRun {
    pub(crate) segment: Arc<Sealed>,
    pub(crate) first_seq: u64,
    /// A segment is below 4 GiB, and an event has some bytes.
    events: u32,
    bytes: u32,
}

const _: () = assert!(size_of::<SealedRun>() == 24);

impl SealedRun {
    fn new(segment: &Arc<Sealed>, info: &RunInfo) -> Self {
        Self {
            segment: segment.clone(),
            first_seq: info.first_seq,
            events: info.events as u32,
            bytes: info.bytes as u32,
        }
    }

    pub(crate) fn events(&self) -> u64 {
        u64::from(self.events)
    }

    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.bytes)
    }

    /// About how many of its events are at or behind `first_seq`, if its positions end before `end_seq`: exact unless
    /// compaction left gaps.
    pub(crate) fn kept_from(&self, first_seq: u64, end_seq: u64) -> u64 {
        let positions = end_seq.saturating_sub(self.first_seq);
        let kept = end_seq.saturating_sub(first_seq).min(positions);
        match kept {
            _ if kept == positions => self.events(),
            _ => (self.events() * kept)
                .div_ceil(positions)
                .min(self.events()),
        }
    }

    /// About how many bytes those take.
    pub(crate) fn kept_bytes(&self, first_seq: u64, end_seq: u64) -> u64 {
        self.bytes() * self.kept_from(first_seq, end_seq) / self.events().max(1)
    }
}

impl TopicView {
    /// Adds a run in the order of positions.
    fn insert_run(&mut self, segment: &Arc<Sealed>, info: &RunInfo) {
        let run = SealedRun::new(segment, info);
        self.highest_id = self.highest_id.max(info.highest_id);
        self.sealed_events += run.events();
        self.sealed_bytes += run.bytes();
        if self.runs.len() == self.runs.capacity() {
            // There are many topics, so their room may not be doubled.
            let more = (self.runs.len() / 8).max(FEWEST_MORE_RUNS);
            self.runs.reserve_exact(more);
        }
        let at = self
            .runs
            .partition_point(|other| other.first_seq < run.first_seq);
        self.runs.insert(at, run);
    }

    /// Takes runs out, say those of a segment that was rewritten.
    fn remove_runs(&mut self, is_removed: impl Fn(&SealedRun) -> bool) {
        self.runs.retain(|run| !is_removed(run));
        self.sealed_events = self.runs.iter().map(SealedRun::events).sum();
        self.sealed_bytes = self.runs.iter().map(SealedRun::bytes).sum();
    }

    /// The runs without those that end before the first position kept.
    pub(crate) fn kept_runs(&self) -> &[SealedRun] {
        &self.runs[self.runs_up_to(self.first_seq).saturating_sub(1)..]
    }

    /// How many runs begin at `seq` or before it.
    pub(crate) fn runs_up_to(&self, seq: u64) -> usize {
        self.runs.partition_point(|run| run.first_seq <= seq)
    }
}

impl View {
    /// The first position of a topic that is not sealed.
    pub(crate) fn unsealed_from(&self, topic: &TopicView) -> u64 {
        let first = self.active_segments.iter().find_map(|active| {
            let run = active.runs.get(&topic.number)?;
            run.entries.first().map(|entry| entry.seq)
        });
        first.unwrap_or_else(|| topic.tail_seq() + 1)
    }

    /// About how many events and bytes of a topic are sealed and kept. Only runs that begin before the first position
    /// kept are looked at.
    pub(crate) fn sealed_size(&self, topic: &TopicView) -> (u64, u64) {
        let (mut events, mut bytes) = (topic.sealed_events, topic.sealed_bytes);
        let trimmed = self.runs_with_ends(topic);
        for (run, end_seq) in trimmed.take_while(|(run, _)| run.first_seq < topic.first_seq) {
            events -= run.events() - run.kept_from(topic.first_seq, end_seq);
            bytes -= run.bytes() - run.kept_bytes(topic.first_seq, end_seq);
        }
        (events, bytes)
    }

    /// A topic's runs, each with the position before which it ends.
    pub(crate) fn runs_with_ends<'v>(
        &self,
        topic: &'v TopicView,
    ) -> impl DoubleEndedIterator<Item = (&'v SealedRun, u64)> + use<'v> {
        let last_end = self.unsealed_from(topic);
        let runs = &topic.runs;
        (0..runs.len()).map(move |at| {
            let end = runs.get(at + 1).map_or(last_end, |next| next.first_seq);
            (&runs[at], end)
        })
    }

    /// Adds a segment with all its runs. Those of topics that are gone are left out.
    pub(crate) fn add_sealed(&mut self, segment: &Arc<Sealed>, runs: &[RunInfo]) {
        self.sealed.insert(segment.header.number, segment.clone());
        for info in runs {
            if let Some(topic) = self.topics.get_mut(&info.topic) {
                topic.insert_run(segment, info);
            }
        }
    }
}

impl Reader {
    /// Puts a sealed segment in the place of others, topic by topic: a reader of one sees its old runs or its new one.
    pub(crate) fn replace_sealed(
        &self,
        removed: &[Arc<Sealed>],
        added: Option<&Arc<Sealed>>,
    ) -> io::Result<()> {
        let runs = match added {
            Some(added) => added.index.runs().map_err(as_io)?,
            None => Vec::new(),
        };
        let mut topics: Vec<u32> = runs.iter().map(|run| run.topic).collect();
        topics.extend(removed.iter().flat_map(|segment| &segment.topics));
        topics.sort_unstable();
        topics.dedup();
        {
            // What was merged stays within the numbers of what it was merged into, so it is found there at once.
            let mut view = self.view_mut();
            for segment in removed {
                view.sealed.remove(&segment.header.number);
            }
            let added = added.map(|added| (added.header.number, added.clone()));
            view.sealed.extend(added);
        }
        // By their numbers: a segment that is removed may have got a new index since it was looked at.
        let is_removed = |run: &SealedRun| {
            let number = run.segment.header.number;
            removed.iter().any(|old| old.header.number == number)
        };
        for some in topics.chunks(TOPICS_PER_HOLD) {
            let mut view = self.view_mut();
            for number in some {
                let Some(topic) = view.topics.get_mut(number) else {
                    continue;
                };
                topic.remove_runs(is_removed);
                let new = runs.binary_search_by_key(number, |run| run.topic);
                if let (Some(added), Ok(at)) = (added, new) {
                    topic.insert_run(added, &runs[at]);
                }
            }
            drop(view);
            self.background.pacer.hand_over_lock();
        }
        Ok(())
    }

    /// Moves the events of a full segment to the one that it was sealed as, if anything is left of it.
    pub(crate) fn move_to_sealed(
        &self,
        number: u64,
        sealed: Option<&Arc<Sealed>>,
    ) -> io::Result<()> {
        let mut moved: Vec<(u32, ActiveRun)> = Vec::new();
        if let Some(sealed) = sealed {
            let runs = sealed.index.runs().map_err(as_io)?;
            self.view_mut().sealed.insert(number, sealed.clone());
            for some in runs.chunks(TOPICS_PER_HOLD) {
                let mut view = self.view_mut();
                for info in some {
                    moved.extend(view.move_run(number, sealed, info));
                }
                drop(view);
                self.background.pacer.hand_over_lock();
            }
        }
        // What took little memory is let go of while no one waits.
        moved.retain(|(_, run)| run.is_large());
        let mut view = self.view_mut();
        let at = view
            .active_segments
            .iter()
            .position(|active| active.number == number);
        let rest = at.map(|at| view.active_segments.remove(at));
        let Some(mut active) = rest else {
            return Ok(());
        };
        let rest = std::mem::replace(&mut active.runs, moved.into_iter().collect());
        view.spare_entries.keep(&mut active);
        drop(view);
        // What is left may be much to let go of, so that is done without the lock.
        drop(active);
        drop(rest);
        Ok(())
    }
}

impl View {
    /// Moves one topic from a full segment to the sealed one. Returns what it had in memory.
    fn move_run(
        &mut self,
        number: u64,
        sealed: &Arc<Sealed>,
        info: &RunInfo,
    ) -> Option<(u32, ActiveRun)> {
        let topic = self.topics.get_mut(&info.topic)?;
        topic.insert_run(sealed, info);
        let mut active_segments = self.active_segments.iter_mut();
        let active = active_segments.find(|active| active.number == number)?;
        active.runs.remove_entry(&info.topic)
    }
}

fn as_io(error: IndexError) -> io::Error {
    match error {
        IndexError::Io(error) => error,
        IndexError::Damaged => io::Error::other("an index that was just written is damaged"),
    }
}
