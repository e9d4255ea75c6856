//! Sealing: a full segment gets its index, and its events are grouped by topic unless one topic has it alone.

use super::gather::{GATHERED_BYTES, gather};
use super::rewrite::GroupedWriter;
use crate::maintainer::Maintainer;
use crate::pace::SEAL_AHEAD;
use crate::record::StoredEvent;
use crate::recovery::{reindex, write_index};
use crate::segment::active::ActiveEntry;
use crate::segment::index::IndexBuilder;
use crate::segment::sealed::Sealed;
use crate::segment::{HEADER_BYTES, Layout, SegmentHeader, data_name};
use crate::view::TOPICS_PER_HOLD;
use prombus_store::LockExt;
use std::cell::Cell;
use std::io;
use std::sync::Arc;

/// So many entries are copied while the view is locked: publishers wait for that.
const ENTRIES_AT_A_TIME: usize = 4_096;

/// What sealing needs of a full segment, copied out of the view.
struct Full {
    number: u64,
    file: Arc<dyn crate::files::File>,
    /// The numbers of the topics that have events in it, in order.
    topics: Vec<u32>,
}

/// Events on their way from a full segment to a sealed one.
#[derive(Default)]
struct Gathering {
    /// In the order in which they are to be written.
    wanted: Vec<ActiveEntry>,
    /// Of all that are wanted.
    bytes: usize,
    memory: Vec<u8>,
    has_damage: bool,
}

/// How far the sealing of a segment has come.
struct Progress {
    /// What publishers had written when it began.
    written_bytes: u64,
    /// What was scanned and gathered; each byte is, before it is sealed.
    read_bytes: Cell<u64>,
    sealed_bytes: Cell<u64>,
}

/// How often each byte of a segment is counted in [`Progress`].
const TIMES_COUNTED: u64 = 3;

impl Progress {
    fn new(written_bytes: u64) -> Self {
        Self {
            written_bytes,
            read_bytes: Cell::new(0),
            sealed_bytes: Cell::new(0),
        }
    }
}

impl Maintainer {
    /// Seals every segment that is full. Maintenance is woken for each: on a busy log the next one is full before this
    /// one is sealed, and this does not return.
    pub(crate) fn seal_full_segments(&self) -> io::Result<()> {
        let _one_at_a_time = self.sealing.guard();
        while let Some(full) = self.oldest_full() {
            let number = full.number;
            // From now on the one behind it is known to be there.
            self.record_segments(|set| set.highest = set.highest.max(number + 1))?;
            // What it changed beside its events is in no other place once it is sealed.
            let progress = Progress::new(self.background.pacer.written_bytes());
            let rest = |bytes| self.rest_from_sealing(&progress, bytes);
            self.store_state_changes(number, &full.file, &rest)?;
            let sealed = match full.topics.len() {
                0 => None,
                1 => Some(self.seal_in_place(&full)?),
                _ => {
                    let sealed = self.seal_grouped(&full, &progress);
                    Some(sealed.inspect_err(|_| self.discard_unfinished(number))?)
                }
            };
            self.reader.move_to_sealed(number, sealed.as_ref())?;
            if let Some(sealed) = &sealed {
                self.reader.client_ids.add_segment(sealed);
            }
            self.committer.throttle_by_backlog(&self.reader.view());
            let left = full.file.bytes().unwrap_or(0);
            self.background
                .pacer
                .note_sealed(left.saturating_sub(progress.sealed_bytes.get()));
            // Only now that readers find the ids in the sealed segment are they forgotten here.
            let forgotten = self.committer.buffer().unsealed_ids.forget_segment(number);
            drop(forgotten);
            if sealed.is_none() {
                self.record_segments(|set| set.remove(number..=number))?;
                self.files.remove(&data_name(number))?;
                self.files.sync_names()?;
            }
            self.background.signal().has_sealed = true;
            self.background.wake.notify_all();
        }
        Ok(())
    }

    fn oldest_full(&self) -> Option<Full> {
        let view = self.reader.view();
        let [full, next, ..] = view.active_segments.as_slice() else {
            return None;
        };
        if !next.is_durable {
            return None;
        }
        let topics = full.runs.keys().copied();
        let mut topics: Vec<u32> = topics
            .filter(|number| view.topics.contains_key(number))
            .collect();
        topics.sort_unstable();
        Some(Full {
            number: full.number,
            file: full.file.clone(),
            topics,
        })
    }

    /// The data stays as it is. It is read again only for what is not known of it.
    fn seal_in_place(&self, full: &Full) -> io::Result<Arc<Sealed>> {
        let header = header_of(full)?;
        let sealed = match self.known_index(full) {
            Some(index) => {
                let file = full.file.clone();
                write_index(
                    &*self.files,
                    &self.reader.cache,
                    header,
                    file,
                    index,
                    Vec::new(),
                )
            }
            None => reindex(
                &*self.files,
                &self.reader.cache,
                header,
                &self.reader.damage,
                Vec::new(),
            ),
        }?;
        self.committer.stats.written.sealed(sealed.index.bytes());
        Ok(sealed)
    }

    /// The index of a segment of one topic, if the view knows all that it has to say.
    fn known_index(&self, full: &Full) -> Option<IndexBuilder> {
        let [number] = full.topics.as_slice() else {
            return None;
        };
        let (name, count) = {
            let view = self.reader.view();
            let run = view.run(full.number, *number)?;
            let topic = view.topics.get(number)?;
            run.is_nameless()
                .then(|| (topic.name.clone(), run.entries.len()))?
        };
        let mut entries = Vec::with_capacity(count);
        loop {
            let more = self.entries_of(full, *number, entries.len());
            if more.is_empty() {
                break;
            }
            entries.extend(more);
        }
        let mut index = IndexBuilder::default();
        index.add_nameless(*number, &name, &entries);
        Some(index)
    }

    /// Some of a topic's entries, from the given one on; none at the end, or if the topic was deleted meanwhile.
    fn entries_of(&self, full: &Full, topic: u32, from: usize) -> Vec<ActiveEntry> {
        let view = self.reader.view();
        let entries = view.run(full.number, topic).map(|run| &*run.entries);
        let rest = entries.and_then(|entries| entries.get(from..));
        let some = rest.unwrap_or_default().iter().take(ENTRIES_AT_A_TIME);
        some.copied().collect()
    }

    /// Pauses after a piece, unless publishers are about as fast or other segments wait. False if it did not.
    fn pace_sealing(&self, progress: &Progress, bytes: u64) -> bool {
        progress.sealed_bytes.update(|sealed| sealed + bytes);
        self.background.pacer.note_sealed(bytes);
        let rate = self.committer.options.seal_bytes_per_second;
        self.may_pause_sealing(progress) && self.background.pacer.pause_sealing(bytes, rate)
    }

    /// Leaves the processor to others after a stretch of reading, by the same rule.
    fn rest_from_sealing(&self, progress: &Progress, bytes: u64) {
        progress.read_bytes.update(|read| read + bytes);
        if self.may_pause_sealing(progress) {
            self.background.pacer.rest();
        }
    }

    fn may_pause_sealing(&self, progress: &Progress) -> bool {
        let written_bytes = self.background.pacer.written_bytes() - progress.written_bytes;
        let done_bytes = progress.read_bytes.get() + progress.sealed_bytes.get();
        let is_late = written_bytes * SEAL_AHEAD * TIMES_COUNTED > done_bytes;
        // The last one is being written, and one is being sealed.
        self.committer.options.threads && !is_late && self.reader.view().active_segments.len() <= 2
    }

    fn seal_grouped(&self, full: &Full, progress: &Progress) -> io::Result<Arc<Sealed>> {
        let old = header_of(full)?;
        let header = SegmentHeader {
            layout: Layout::Grouped,
            generation: old.generation + 1,
            ..old
        };
        let pace = |bytes| Ok(self.pace_sealing(progress, bytes));
        let mut writer = GroupedWriter::create(&*self.files, header, &pace)?;
        let mut gathering = Gathering::default();
        for (at, topic) in full.topics.iter().enumerate() {
            if at % TOPICS_PER_HOLD == TOPICS_PER_HOLD - 1 {
                self.background.pacer.hand_over_lock();
            }
            let mut from = 0;
            loop {
                let entries = self.entries_of(full, *topic, from);
                if entries.is_empty() {
                    break;
                }
                from += entries.len();
                for entry in entries {
                    if gathering.bytes + entry.bytes as usize > GATHERED_BYTES {
                        self.write_gathered(full, progress, &mut gathering, &mut writer)?;
                    }
                    gathering.bytes += entry.bytes as usize;
                    gathering.wanted.push(entry);
                }
            }
        }
        self.write_gathered(full, progress, &mut gathering, &mut writer)?;
        if gathering.has_damage {
            self.quarantine(full.number, &*full.file)?;
        }
        let sealed = writer.finish(&*self.files, &self.reader.cache)?;
        self.committer
            .stats
            .written
            .sealed(sealed.data_bytes + sealed.index.bytes());
        Ok(sealed)
    }

    /// Writes what is wanted, except what is damaged.
    fn write_gathered(
        &self,
        full: &Full,
        progress: &Progress,
        gathering: &mut Gathering,
        writer: &mut GroupedWriter<'_>,
    ) -> io::Result<()> {
        let rest = |bytes| self.rest_from_sealing(progress, bytes);
        gather(&*full.file, &gathering.wanted, &mut gathering.memory, rest)?;
        let block = Arc::new(std::mem::take(&mut gathering.memory));
        let mut at = 0;
        for entry in &gathering.wanted {
            match StoredEvent::read(block.clone(), at) {
                Ok(event) if event.seq() == entry.seq => writer.add(&event)?,
                _ => {
                    let bytes = &block[at..at + entry.bytes as usize];
                    self.reader.note_bad_entry(full.number, entry, bytes);
                    gathering.has_damage = true;
                }
            }
            at += entry.bytes as usize;
        }
        gathering.wanted.clear();
        gathering.bytes = 0;
        gathering.memory = Arc::try_unwrap(block).unwrap_or_default();
        Ok(())
    }
}

fn header_of(full: &Full) -> io::Result<SegmentHeader> {
    let mut bytes = [0; HEADER_BYTES as usize];
    full.file.read_at(&mut bytes, 0)?;
    SegmentHeader::decode(&bytes).map_err(|_| {
        let name = data_name(full.number);
        io::Error::other(format!(
            "the header of {name} is damaged; open the log anew"
        ))
    })
}
