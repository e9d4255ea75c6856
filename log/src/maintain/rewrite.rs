//! Writing a sealed segment whose events lie grouped by topic.

use crate::damage::{quarantine_name, write_whole};
use crate::error::ReadError;
use crate::files::{File, Files};
use crate::record::StoredEvent;
use crate::segment::cache::SectionCache;
use crate::segment::index::{Index, IndexBuilder, IndexError, IndexFor, Section};
use crate::segment::sealed::{RunItem, Sealed};
use crate::segment::{Layout, SegmentHeader, data_name, index_name, unfinished};
use crate::shared::Shared;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, PoisonError};

const WRITE_BYTES: usize = 1 << 20;

/// Writes records one after the other and collects their index.
pub(super) struct GroupedWriter {
    header: SegmentHeader,
    file: Arc<dyn File>,
    /// Written so far.
    written: u64,
    /// Not written yet.
    buffer: Vec<u8>,
    index: IndexBuilder,
}

impl GroupedWriter {
    pub(super) fn create(files: &dyn Files, header: SegmentHeader) -> io::Result<Self> {
        Ok(Self {
            file: files.create(&unfinished(&data_name(header.number)))?,
            header,
            written: 0,
            buffer: header.encode(),
            index: IndexBuilder::new(header.created_ms),
        })
    }

    /// Adds the next event of a topic.
    pub(super) fn add(&mut self, event: &StoredEvent) -> io::Result<()> {
        let offset = self.written + self.buffer.len() as u64;
        self.buffer.extend_from_slice(event.record());
        self.index.add(offset as u32, event);
        match self.buffer.len() >= WRITE_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Whether no event was added.
    pub(super) fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Puts the segment in its place. Until the last step the old one is there, and between the two renames the
    /// index is found not to fit and is made again.
    pub(super) fn finish(
        mut self,
        files: &dyn Files,
        cache: &Arc<SectionCache>,
        checkpoint: Vec<u8>,
    ) -> io::Result<Arc<Sealed>> {
        self.flush()?;
        self.file.sync()?;
        let number = self.header.number;
        let owner = IndexFor {
            number,
            generation: self.header.generation,
            data_bytes: self.written,
        };
        let index = self.index.finish(owner, checkpoint);
        files.rename(&unfinished(&data_name(number)), &data_name(number))?;
        write_whole(files, &index_name(number), &index)?;
        cache.forget(number);
        let index = Index::open(files.open(&index_name(number))?, owner, cache.clone());
        let sealed =
            index.and_then(|index| Sealed::new(self.header, self.file, self.written, index));
        sealed.map(Arc::new).map_err(as_io)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_at(&self.buffer, self.written)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

impl Shared {
    /// Writes the wanted events of neighbouring sealed segments into one, which takes the place of the first. Beside
    /// what retention let go, only events for which `keep` is true are wanted. The caller holds `rewriting`.
    pub(super) fn rewrite(
        &self,
        segments: &[Arc<Sealed>],
        keep: impl Fn(&StoredEvent) -> Result<bool, ReadError>,
    ) -> io::Result<()> {
        let outcome = self.rewrite_kept(segments, keep);
        if let (Err(_), Some(first)) = (&outcome, segments.first()) {
            self.discard_unfinished(first.header.number);
        }
        outcome
    }

    /// Removes what a segment that could not be finished takes: on a full disk it would be missing elsewhere.
    pub(super) fn discard_unfinished(&self, number: u64) {
        // There may be none, and opening the log removes it too.
        let _ = self.files.remove(&unfinished(&data_name(number)));
    }

    fn rewrite_kept(
        &self,
        segments: &[Arc<Sealed>],
        keep: impl Fn(&StoredEvent) -> Result<bool, ReadError>,
    ) -> io::Result<()> {
        let (Some(first), Some(last)) = (segments.first(), segments.last()) else {
            return Ok(());
        };
        let header = SegmentHeader {
            layout: Layout::Grouped,
            generation: 1 + segments
                .iter()
                .map(|segment| segment.header.generation)
                .max()
                .unwrap_or(0),
            covers_to: last.header.covers_to,
            ..first.header
        };
        let mut writer = GroupedWriter::create(&*self.files, header)?;
        for (topic, runs) in runs_by_topic(segments) {
            let Some(first_seq) = self.wanted_from(topic) else {
                continue;
            };
            for (segment, slot) in runs {
                let start = segment.runs[slot].data.start;
                let mut reader = segment.reader(slot, start);
                while let Some(item) = reader.next()? {
                    match item {
                        RunItem::Event { event, .. } if event.seq() >= first_seq => {
                            if keep(&event).map_err(io::Error::other)? {
                                writer.add(&event)?;
                            }
                        }
                        RunItem::Event { .. } => {}
                        RunItem::Damage(range) => {
                            self.note_damage(segment, range);
                            self.quarantine(segment.header.number, &*segment.file)?;
                        }
                    }
                }
            }
        }
        if writer.is_empty() {
            self.files.remove(&unfinished(&data_name(header.number)))?;
            return self.remove_segments(segments);
        }
        // Whoever makes an index again must not do it from the old data beside the new.
        let _no_healing = self.healing.lock().unwrap_or_else(PoisonError::into_inner);
        let checkpoint = last.index.load(Section::Checkpoint).unwrap_or_default();
        let rewritten = writer.finish(&*self.files, &self.cache, checkpoint)?;
        let mut view = self.view_mut();
        for segment in segments {
            view.remove_sealed(segment.header.number);
        }
        view.add_sealed(&rewritten);
        drop(view);
        for segment in &segments[1..] {
            let number = segment.header.number;
            self.cache.forget(number);
            self.files.remove(&data_name(number))?;
            self.files.remove(&index_name(number))?;
        }
        self.files.sync_names()
    }

    /// The first position that a topic keeps; `None` if it is gone.
    fn wanted_from(&self, topic: u32) -> Option<u64> {
        let view = self.view();
        Some(view.topics.get(&topic)?.first_seq)
    }

    /// Keeps a damaged segment as it is before a rewrite leaves the bad bytes behind.
    pub(super) fn quarantine(&self, number: u64, file: &dyn File) -> io::Result<()> {
        let mut bytes = vec![0; file.bytes()? as usize];
        let read = file.read_at(&mut bytes, 0)?;
        bytes.truncate(read);
        write_whole(&*self.files, &quarantine_name(number), &bytes)
    }
}

/// The runs of each topic, in the order of the segments.
fn runs_by_topic(segments: &[Arc<Sealed>]) -> BTreeMap<u32, Vec<(&Arc<Sealed>, usize)>> {
    let mut runs: BTreeMap<u32, Vec<(&Arc<Sealed>, usize)>> = BTreeMap::new();
    for segment in segments {
        for (slot, run) in segment.runs.iter().enumerate() {
            runs.entry(run.topic).or_default().push((segment, slot));
        }
    }
    runs
}

fn as_io(error: IndexError) -> io::Error {
    match error {
        IndexError::Io(error) => error,
        IndexError::Damaged => io::Error::other("an index that was just written is damaged"),
    }
}
