//! Writing a sealed segment whose events lie grouped by topic.

use crate::damage::{quarantine_name, write_whole};
use crate::error::ReadError;
use crate::files::{File, Files};
use crate::record::StoredEvent;
use crate::segment::cache::SectionCache;
use crate::segment::index::{Index, IndexBuilder, IndexError, IndexFor, RunInfo, Section};
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
            index: IndexBuilder::default(),
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
            for segment in runs {
                let Some(run) = self.run_to_rewrite(segment, topic)? else {
                    self.files.remove(&unfinished(&data_name(header.number)))?;
                    return Ok(());
                };
                let mut reader = segment.reader(&run, run.data.start);
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
        self.replace_sealed(segments, Some(&rewritten))?;
        for segment in &segments[1..] {
            let number = segment.header.number;
            self.cache.forget(number);
            self.files.remove(&data_name(number))?;
            self.files.remove(&index_name(number))?;
        }
        self.files.sync_names()
    }

    /// A run that is to be rewritten; `None` if its index had to be made again first.
    fn run_to_rewrite(&self, segment: &Arc<Sealed>, topic: u32) -> io::Result<Option<RunInfo>> {
        match segment.run(topic) {
            Ok(run) => Ok(run),
            Err(IndexError::Io(error)) => Err(error),
            Err(IndexError::Damaged) => {
                self.heal(segment)?;
                Ok(None)
            }
        }
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

/// The segments that each topic has events in, in their order.
fn runs_by_topic(segments: &[Arc<Sealed>]) -> BTreeMap<u32, Vec<&Arc<Sealed>>> {
    let mut runs: BTreeMap<u32, Vec<&Arc<Sealed>>> = BTreeMap::new();
    for segment in segments {
        for topic in &segment.topics {
            runs.entry(*topic).or_default().push(segment);
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
