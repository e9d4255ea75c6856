//! Reading a topic. A reader takes the view's lock only to see where to read; the reading itself needs no lock,
//! because whatever it found stays readable, even if it is rewritten or removed meanwhile.

mod as_of;
mod by_key;
mod by_time;
mod expected_keys;
mod find;

use crate::damage::{describe, read_damage};
use crate::files::File;
use crate::reader::Reader;
use crate::record::StoredEvent;
use crate::recovery::reindex;
use crate::segment::active::{ActiveEntry, near};
use crate::segment::index::{IndexError, RunInfo, Section};
use crate::segment::sealed::{RunItem, Sealed};
use crate::view::{SealedRun, TopicView, View};
use prombus_store::LockExt;
use prombus_store::{Page, ReadError, ReadLimit, UnknownTopic};
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Events of a segment in commit order are read in one go if little of other topics is between them: reading more
/// than this costs more than asking again, and stays in memory as long as one of the events does.
const ACTIVE_GAP_BYTES: u64 = 4 << 10;
/// How much is read of such a segment in one go.
const ACTIVE_BLOCK_BYTES: u64 = 64 << 10;
/// How many events' places are copied out of the view at a time.
const ACTIVE_STEP_EVENTS: usize = 1024;

/// What a page is filled with, and when it is full.
struct PageBuilder {
    events: Vec<StoredEvent>,
    bytes: usize,
    limit: ReadLimit,
}

/// The next stretch of a topic.
enum Step {
    /// Nothing more to see.
    End,
    /// These came from memory.
    Cached(Vec<StoredEvent>),
    /// Read these from a sealed segment, whose positions end before `end_seq`.
    Sealed {
        run: SealedRun,
        topic: u32,
        end_seq: u64,
    },
    /// Read these from a segment in commit order.
    Active(ActivePlaces),
}

/// Events of a segment that is not sealed, to be read from its file.
struct ActivePlaces {
    segment: u64,
    file: Arc<dyn File>,
    entries: Vec<ActiveEntry>,
}

impl Reader {
    /// Reads a topic from a position on.
    pub(crate) fn read(
        &self,
        topic: &str,
        from_seq: u64,
        limit: ReadLimit,
    ) -> Result<Page, ReadError> {
        let page = self.read_steps(topic, from_seq, limit, true)?;
        page.ok_or_else(|| unknown(topic))
    }

    /// The same as far as it can be done from memory; `None` where nothing can.
    pub(crate) fn read_cached(
        &self,
        topic: &str,
        from_seq: u64,
        limit: ReadLimit,
    ) -> Result<Option<Page>, ReadError> {
        self.read_steps(topic, from_seq, limit, false)
    }

    fn read_steps(
        &self,
        name: &str,
        from_seq: u64,
        limit: ReadLimit,
        may_do_io: bool,
    ) -> Result<Option<Page>, ReadError> {
        let mut builder = PageBuilder {
            events: Vec::new(),
            bytes: 0,
            limit,
        };
        let mut next_seq = from_seq;
        let (first_seq, tail_seq) = loop {
            let (step, first_seq, tail_seq) = {
                let view = self.view();
                let topic = view.topic(name).ok_or_else(|| unknown(name))?;
                next_seq = next_seq.max(topic.first_seq);
                let step = next_step(&view, topic, next_seq, &builder);
                (step, topic.first_seq, topic.tail_seq())
            };
            match step {
                Step::End => {
                    next_seq = next_seq.max(tail_seq + 1);
                    break (first_seq, tail_seq);
                }
                Step::Cached(events) => {
                    for event in events {
                        next_seq = event.seq() + 1;
                        builder.push(event);
                    }
                }
                Step::Sealed { .. } | Step::Active(_) if !may_do_io => match builder.events.len() {
                    0 => return Ok(None),
                    _ => break (first_seq, tail_seq),
                },
                Step::Sealed {
                    run,
                    topic,
                    end_seq,
                } => {
                    let range = next_seq..end_seq;
                    next_seq = self.read_sealed(&run, topic, range, &mut builder)?;
                }
                Step::Active(places) => {
                    for event in self.read_places(&places)? {
                        next_seq = event.seq() + 1;
                        builder.push(event);
                    }
                    let last = places.entries.last().map_or(0, |entry| entry.seq);
                    next_seq = next_seq.max(last + 1);
                }
            }
            if builder.is_full() {
                break (first_seq, tail_seq);
            }
        };
        Ok(Some(Page {
            events: builder.events,
            next_seq,
            next_time: None,
            first_seq,
            tail_seq,
        }))
    }

    /// A page that was not read by position.
    fn page(
        &self,
        topic: &str,
        events: Vec<StoredEvent>,
        next_time: Option<(u64, u64)>,
    ) -> Result<Page, ReadError> {
        let view = self.view();
        let topic = view.topic(topic).ok_or_else(|| unknown(topic))?;
        Ok(Page {
            events,
            next_seq: topic.tail_seq() + 1,
            next_time,
            first_seq: topic.first_seq,
            tail_seq: topic.tail_seq(),
        })
    }

    /// Reads a sealed run until the page is full or the run ends; returns where to go on.
    fn read_sealed(
        &self,
        run: &SealedRun,
        topic: u32,
        range: Range<u64>,
        builder: &mut PageBuilder,
    ) -> Result<u64, ReadError> {
        let (segment, from_seq) = (&run.segment, range.start);
        let Some(info) = self.run_info(run, topic)? else {
            return Ok(from_seq);
        };
        let Some(offset) = self.or_rebuild(segment, segment.offset_for_seq(&info, from_seq))?
        else {
            return Ok(from_seq);
        };
        let mut next_seq = from_seq;
        let mut reader = segment.reader(&info, offset);
        while let Some(item) = reader.next()? {
            match item {
                RunItem::Damage(range) => self.note_damage(segment, range),
                RunItem::Event { event, .. } if event.seq() >= from_seq => {
                    next_seq = event.seq() + 1;
                    builder.push(event);
                    if builder.is_full() {
                        return Ok(next_seq);
                    }
                }
                RunItem::Event { .. } => {}
            }
        }
        Ok(next_seq.max(range.end))
    }

    /// What the directory says of a topic's run; `None` says to look at the view anew.
    fn run_info(&self, run: &SealedRun, topic: u32) -> Result<Option<RunInfo>, ReadError> {
        let info = self.or_rebuild(&run.segment, run.segment.run(topic))?;
        Ok(info.flatten())
    }

    /// Reads events of a segment in commit order, in the order given; neighbours are read together.
    pub(crate) fn read_entries(
        &self,
        segment: u64,
        file: &Arc<dyn File>,
        entries: &[ActiveEntry],
    ) -> io::Result<Vec<StoredEvent>> {
        let mut events = Vec::with_capacity(entries.len());
        let mut rest = entries;
        while let Some(first) = rest.first() {
            let start = first.range().start;
            let near = near(
                rest,
                ActiveEntry::range,
                ACTIVE_GAP_BYTES,
                ACTIVE_BLOCK_BYTES,
            );
            let (together, behind) = rest.split_at(near);
            rest = behind;
            let end = together.last().map_or(start, |last| last.range().end);
            let block = Arc::new(file.read_block(start, (end - start) as usize)?);
            for entry in together {
                let at = (u64::from(entry.offset) - start) as usize;
                match StoredEvent::read(block.clone(), at) {
                    Ok(event) if event.seq() == entry.seq => events.push(event),
                    _ => {
                        let bad = block.get(at..at + entry.bytes as usize).unwrap_or_default();
                        self.note_bad_entry(segment, entry, bad);
                    }
                }
            }
        }
        Ok(events)
    }

    /// Notes that an event of a segment that is not sealed is damaged.
    pub(crate) fn note_bad_entry(&self, segment: u64, entry: &ActiveEntry, bytes: &[u8]) {
        let mut damage = describe(segment, u64::from(entry.offset), bytes);
        damage.to = damage.from + u64::from(entry.bytes);
        let topic = self.view().topic_of(segment, entry);
        damage.lose(topic.as_deref(), entry.seq..entry.seq + 1);
        self.damage.add(&*self.files, &damage);
    }

    fn read_places(&self, places: &ActivePlaces) -> io::Result<Vec<StoredEvent>> {
        self.read_entries(places.segment, &places.file, &places.entries)
    }

    /// The event that an index says to be at `offset` with this position; `None` where it is damaged.
    fn sealed_event(
        &self,
        segment: &Sealed,
        topic: u32,
        offset: u32,
        seq: u64,
    ) -> io::Result<Option<StoredEvent>> {
        let range = match segment.event_at(topic, offset)? {
            RunItem::Event { event, .. } if event.seq() == seq => return Ok(Some(event)),
            RunItem::Event { event, .. } => {
                let offset = u64::from(offset);
                offset..offset + event.stored_bytes() as u64
            }
            RunItem::Damage(range) => range,
        };
        self.note_damage(segment, range);
        Ok(None)
    }

    /// Writes down damage that was met while reading, with the positions that it held.
    pub(crate) fn note_damage(&self, segment: &Sealed, range: Range<u64>) {
        let number = segment.header.number;
        let Ok(mut damage) = read_damage(number, &*segment.file, range.clone()) else {
            return;
        };
        let runs = segment.index.runs().unwrap_or_default();
        let names = segment.index.topic_names().unwrap_or_default();
        for (run, name) in runs.iter().zip(names) {
            // What cannot be read to tell it is named as a whole.
            let all = || run.first_seq..run.last_seq + 1;
            let lost = segment.lost_seqs(run, &range).unwrap_or_else(|_| all());
            damage.lose(Some(&name), lost);
        }
        self.damage.add(&*self.files, &damage);
    }

    /// What an index said; if it turns out damaged it is made again and `None` says to look at the view anew.
    pub(crate) fn or_rebuild<T>(
        &self,
        segment: &Arc<Sealed>,
        outcome: Result<T, IndexError>,
    ) -> Result<Option<T>, ReadError> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(IndexError::Io(error)) => Err(error.into()),
            Err(IndexError::Damaged) => {
                self.rebuild_index(segment)?;
                Ok(None)
            }
        }
    }

    /// Makes the index of a sealed segment again, unless someone has replaced the segment meanwhile.
    pub(crate) fn rebuild_index(&self, segment: &Arc<Sealed>) -> io::Result<()> {
        let _one_at_a_time = self.rebuilding.guard();
        let number = segment.header.number;
        let is_current = |view: &View| {
            let current = view.sealed.get(&number);
            current.is_some_and(|current| Arc::ptr_eq(current, segment))
        };
        if !is_current(&self.view()) {
            return Ok(());
        }
        let checkpoint = segment.index.load(Section::Checkpoint).unwrap_or_default();
        let rebuilt = reindex(
            &*self.files,
            &self.cache,
            segment.header,
            &self.damage,
            checkpoint,
        )?;
        // Nothing else replaces or removes a segment meanwhile.
        self.replace_sealed(std::slice::from_ref(segment), Some(&rebuilt))
    }
}

/// Where the next events of a topic are.
fn next_step(view: &View, topic: &TopicView, next_seq: u64, builder: &PageBuilder) -> Step {
    if next_seq > topic.tail_seq() {
        return Step::End;
    }
    let unsealed_from = view.unsealed_from(topic);
    let behind = topic.runs_up_to(next_seq).max(1);
    if next_seq < unsealed_from
        && let Some(run) = topic.runs.get(behind - 1)
    {
        let next = topic.runs.get(behind);
        return Step::Sealed {
            run: run.clone(),
            topic: topic.number,
            end_seq: next.map_or(unsealed_from, |next| next.first_seq),
        };
    }
    for active in &view.active_segments {
        let Some(run) = active.runs.get(&topic.number) else {
            continue;
        };
        let entries = run.entries_from(next_seq);
        if entries.is_empty() {
            continue;
        }
        let mut room = builder.room();
        let mut events = Vec::new();
        for entry in entries {
            if !room.take(entry.bytes as usize) {
                break;
            }
            let (offset, bytes) = (u64::from(entry.offset), entry.bytes as usize);
            match view.tail_cache.event(active.number, offset, bytes) {
                Some(Ok(event)) => events.push(event),
                _ => break,
            }
        }
        if !events.is_empty() {
            return Step::Cached(events);
        }
        let mut room = builder.room();
        let wanted = entries
            .iter()
            .take(ACTIVE_STEP_EVENTS)
            .take_while(|entry| room.take(entry.bytes as usize))
            .copied();
        return Step::Active(ActivePlaces {
            segment: active.number,
            file: active.file.clone(),
            entries: wanted.collect(),
        });
    }
    Step::End
}

/// How much more a page takes. The last event may go over the limit, so the first one always fits.
struct Room {
    events: usize,
    bytes: usize,
    is_first: bool,
}

impl Room {
    fn take(&mut self, bytes: usize) -> bool {
        let fits = self.is_first || (self.events > 0 && self.bytes > 0);
        self.is_first = false;
        self.events = self.events.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
        fits
    }
}

impl PageBuilder {
    fn push(&mut self, event: StoredEvent) {
        self.bytes += event.stored_bytes();
        self.events.push(event);
    }

    fn is_full(&self) -> bool {
        self.events.len() >= self.limit.events || self.bytes >= self.limit.bytes
    }

    fn room(&self) -> Room {
        Room {
            events: self.limit.events.saturating_sub(self.events.len()),
            bytes: self.limit.bytes.saturating_sub(self.bytes),
            is_first: self.events.is_empty(),
        }
    }
}

fn unknown(topic: &str) -> ReadError {
    UnknownTopic {
        topic: topic.into(),
    }
    .into()
}
