//! The latest event of every key, in the order of keys: all runs' keys are merged, and of equal ones the newest wins.

use super::{ACTIVE_STEP_EVENTS, PageBuilder, unknown};
use crate::key_index::{self, KeyRef};
use crate::reader::Reader;
use crate::record::StoredEvent;
use crate::segment::active::ActiveEntry;
use crate::segment::index::{IndexError, KEY_SPACE, Section};
use crate::segment::sealed::{RunItem, Sealed};
use crate::view::SealedRun;
use prombus_store::record::EventBlock;
use prombus_store::{Page, ReadError, ReadLimit};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// How many keys are found before their events are read: first some, to learn how large they are, then as many as the
/// page has room for, so that of many some are close to each other.
const FIRST_KEYS: usize = 1_024;
const MOST_KEYS: usize = 32_768;
/// How large the blocks are that events are moved to.
const TOGETHER_BYTES: usize = 64 << 10;

/// The keys of one run behind a given one, in order.
struct KeySource {
    run: KeyRun,
    /// Keys that were read and not used yet.
    ready: VecDeque<(Box<[u8]>, Latest)>,
    /// Blocks of names still to be read, last first.
    blocks: Vec<Range<u32>>,
    after: Option<Box<[u8]>>,
}

enum KeyRun {
    Sealed(SealedRun),
    Active {
        segment: u64,
        file: Arc<dyn crate::files::File>,
    },
}

/// Where the latest event of a key in a run is.
#[derive(Clone, Copy)]
struct Latest {
    seq: u64,
    offset: u32,
    /// Known for segments in commit order only.
    bytes: u32,
}

/// All runs' keys, merged.
pub(crate) struct KeyMerge {
    sources: Vec<KeySource>,
    topic: u32,
    first_seq: u64,
}

/// The latest event of a key in a run, with the run's place among the sources.
type Holder = (usize, Latest);

impl KeyMerge {
    /// Hands over everyone who has the next key; false where there is none. An index that turns out damaged is named by
    /// its segment.
    fn next(
        &mut self,
        mut each: impl FnMut(&KeyRun, Holder),
    ) -> Result<bool, (Arc<Sealed>, IndexError)> {
        for source in &mut self.sources {
            if let Err(error) = source.fill(self.topic)
                && let KeyRun::Sealed(run) = &source.run
            {
                return Err((run.segment.clone(), error));
            }
        }
        let heads = self.sources.iter().enumerate().filter_map(|(at, source)| {
            let (key, _) = source.ready.front()?;
            Some((key, at))
        });
        let Some(first) = heads.min().map(|(_, at)| at) else {
            return Ok(false);
        };
        let Some((key, latest)) = self.sources[first].ready.pop_front() else {
            return Ok(false);
        };
        each(&self.sources[first].run, (first, latest));
        for (at, source) in self.sources.iter_mut().enumerate().skip(first + 1) {
            if source.ready.front().is_some_and(|(head, _)| *head == key)
                && let Some((_, latest)) = source.ready.pop_front()
            {
                each(&source.run, (at, latest));
            }
        }
        Ok(true)
    }

    /// The next keys' latest events, up to `count` of them.
    fn newest(&mut self, count: usize) -> Result<Vec<Holder>, (Arc<Sealed>, IndexError)> {
        let mut found = Vec::with_capacity(count);
        while found.len() < count {
            let mut newest: Option<Holder> = None;
            let has_next = self.next(|_, holder| {
                if newest.is_none_or(|(_, other)| other.seq < holder.1.seq) {
                    newest = Some(holder);
                }
            })?;
            if !has_next {
                break;
            }
            found.extend(newest.filter(|(_, latest)| latest.seq >= self.first_seq));
        }
        Ok(found)
    }

    /// How many keys of each sealed segment have a newer event in another one, by the segment's number. What is not
    /// sealed does not count: a crash may still undo it.
    pub(crate) fn count_superseded(
        mut self,
    ) -> Result<HashMap<u64, u64>, (Arc<Sealed>, IndexError)> {
        let mut counts = HashMap::new();
        let mut holders: Vec<(u64, u64)> = Vec::new();
        while self.next(|run, (_, latest)| {
            if let KeyRun::Sealed(run) = run {
                holders.push((run.segment.header.number, latest.seq));
            }
        })? {
            let newest = holders.iter().map(|(_, seq)| *seq).max();
            for (segment, _) in holders.drain(..).filter(|(_, seq)| Some(*seq) < newest) {
                *counts.entry(segment).or_default() += 1;
            }
        }
        Ok(counts)
    }
}

impl Reader {
    /// Reads the latest events of all keys behind `after`.
    pub(crate) fn read_by_key(
        &self,
        topic: &str,
        after: Option<&str>,
        limit: ReadLimit,
    ) -> Result<Page, ReadError> {
        let mut builder = PageBuilder {
            events: Vec::new(),
            bytes: 0,
            limit,
        };
        let mut merge = self.merge_keys(topic, after, limit.events)?;
        loop {
            let newest = match merge.newest(builder.keys_to_find()) {
                Ok(newest) if newest.is_empty() => break,
                Ok(newest) => newest,
                Err((segment, error)) => {
                    // The index is made again if it can be, and the merge starts over with the new one.
                    self.or_rebuild::<()>(&segment, Err(error))?;
                    return self.read_by_key(topic, after, limit);
                }
            };
            for event in self.key_events(&merge, &newest)?.into_iter().flatten() {
                if builder.is_full() {
                    return self.page(topic, builder.events, None);
                }
                builder.push(event);
            }
        }
        self.page(topic, builder.events, None)
    }

    /// The events of keys, `None` where one is damaged. They are read in the order they are in.
    fn key_events(
        &self,
        merge: &KeyMerge,
        newest: &[Holder],
    ) -> Result<Vec<Option<StoredEvent>>, ReadError> {
        let mut by_place: Vec<usize> = (0..newest.len()).collect();
        by_place.sort_unstable_by_key(|&at| (newest[at].0, newest[at].1.offset));
        let mut events = vec![None; newest.len()];
        for together in by_place.chunk_by(|&one, &other| newest[one].0 == newest[other].0) {
            let Some(source) = together.first().map(|&at| &merge.sources[newest[at].0]) else {
                continue;
            };
            let latest = together.iter().map(|&at| newest[at].1);
            // Those that are damaged are passed over.
            let mut places = together.iter();
            for event in self.events_of(&source.run, merge.topic, latest)? {
                if let Some(&at) = places.find(|&&at| newest[at].1.seq == event.seq()) {
                    events[at] = Some(event);
                }
            }
        }
        Ok(events)
    }

    /// Events of one run, in the order they are in, without those that are damaged. Much of what is read with them may
    /// be unwanted, so they are moved together.
    fn events_of(
        &self,
        run: &KeyRun,
        topic: u32,
        latest: impl Iterator<Item = Latest>,
    ) -> Result<Vec<StoredEvent>, ReadError> {
        let mut together = Together::default();
        match run {
            KeyRun::Sealed(run) => {
                let (offsets, seqs): (Vec<u32>, Vec<u64>) =
                    latest.map(|latest| (latest.offset, latest.seq)).unzip();
                for (item, seq) in run.segment.events_at(topic, &offsets).zip(seqs) {
                    match item? {
                        RunItem::Event { event, .. } if event.seq() == seq => together.add(&event),
                        RunItem::Event { offset, event } => {
                            let at = u64::from(offset);
                            let range = at..at + event.stored_bytes() as u64;
                            self.note_damage(&run.segment, range);
                        }
                        RunItem::Damage(range) => self.note_damage(&run.segment, range),
                    }
                }
            }
            KeyRun::Active { segment, file } => {
                let entries = latest.map(|latest| ActiveEntry {
                    seq: latest.seq,
                    ts: 0,
                    offset: latest.offset,
                    bytes: latest.bytes,
                });
                let entries: Vec<ActiveEntry> = entries.collect();
                for some in entries.chunks(ACTIVE_STEP_EVENTS) {
                    let events = self.read_entries(*segment, file, some)?;
                    events.iter().for_each(|event| together.add(event));
                }
            }
        }
        Ok(together.take())
    }

    /// A merge of all keys of a topic behind `after`, of which at most `most` will be asked for.
    pub(crate) fn merge_keys(
        &self,
        name: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<KeyMerge, ReadError> {
        let view = self.view();
        let topic = view.topic(name).ok_or_else(|| unknown(name))?;
        let after_key: Option<Box<[u8]>> = after.map(|key| key.as_bytes().into());
        let mut sources = Vec::new();
        for active in &view.active_segments {
            let Some(run) = active.runs.get(&topic.number) else {
                continue;
            };
            let mut keys: Vec<(&str, u64)> = run
                .latest_of_keys()
                .filter(|(key, seq)| {
                    *seq >= topic.first_seq && after.is_none_or(|after| *key > after)
                })
                .collect();
            // Of many keys only the first are wanted; putting all in order for each page would cost more than reading.
            if most < keys.len() {
                keys.select_nth_unstable(most);
                keys.truncate(most);
            }
            keys.sort_unstable();
            let ready = keys.into_iter().filter_map(|(key, seq)| {
                let entry = run.entries_from(seq).first()?;
                let latest = Latest {
                    seq,
                    offset: entry.offset,
                    bytes: entry.bytes,
                };
                Some((key.as_bytes().into(), latest))
            });
            sources.push(KeySource {
                run: KeyRun::Active {
                    segment: active.number,
                    file: active.file.clone(),
                },
                ready: ready.collect(),
                blocks: Vec::new(),
                after: None,
            });
        }
        let sealed: Vec<SealedRun> = topic.runs.clone();
        let (number, first_seq) = (topic.number, topic.first_seq);
        drop(view);
        for run in sealed {
            let from = KeyRef {
                space: KEY_SPACE,
                topic: number,
                name: after_key.as_deref().unwrap_or_default(),
            };
            let fences = match run.segment.index.section(Section::Fences) {
                Ok(fences) => fences,
                Err(error) => {
                    self.or_rebuild::<()>(&run.segment, Err(error))?;
                    return self.merge_keys(name, after, most);
                }
            };
            let mut blocks: Vec<Range<u32>> = key_index::blocks_from(&fences, &from).collect();
            blocks.reverse();
            sources.push(KeySource {
                run: KeyRun::Sealed(run),
                ready: VecDeque::new(),
                blocks,
                after: after_key.clone(),
            });
        }
        Ok(KeyMerge {
            sources,
            topic: number,
            first_seq,
        })
    }
}

/// Events that are moved into blocks of nothing else.
#[derive(Default)]
struct Together {
    block: EventBlock,
    events: Vec<StoredEvent>,
}

impl Together {
    fn add(&mut self, event: &StoredEvent) {
        self.block.copy(event);
        if self.block.bytes() >= TOGETHER_BYTES {
            self.events.extend(self.block.take());
        }
    }

    fn take(mut self) -> Vec<StoredEvent> {
        self.events.extend(self.block.take());
        self.events
    }
}

impl PageBuilder {
    /// How many keys there is room for, going by those that were read before.
    fn keys_to_find(&self) -> usize {
        let left = self.limit.events.max(1).saturating_sub(self.events.len());
        let fit = match self.bytes / self.events.len().max(1) {
            0 => FIRST_KEYS,
            each => self.limit.bytes.saturating_sub(self.bytes) / each + 1,
        };
        left.min(fit).min(MOST_KEYS)
    }
}

impl KeySource {
    /// Reads the next block of names if none is ready.
    fn fill(&mut self, topic: u32) -> Result<(), IndexError> {
        let KeyRun::Sealed(run) = &self.run else {
            return Ok(());
        };
        while self.ready.is_empty()
            && let Some(range) = self.blocks.pop()
        {
            let block = run.segment.index.name_block(range)?;
            let entries = key_index::entries(&block).map_err(|_| IndexError::Damaged)?;
            for (name, entry) in entries {
                if (name.space, name.topic) > (KEY_SPACE, topic) {
                    self.blocks.clear();
                    break;
                }
                let is_behind = self.after.as_deref().is_none_or(|after| name.name > after);
                if (name.space, name.topic) == (KEY_SPACE, topic) && is_behind {
                    let latest = Latest {
                        seq: entry.seq,
                        offset: entry.offset,
                        bytes: 0,
                    };
                    self.ready.push_back((name.name.into(), latest));
                }
            }
        }
        Ok(())
    }
}
