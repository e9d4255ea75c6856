//! Writing a sealed segment whose events are grouped by topic.

use super::pieces::{Pace, PacedFile};
use crate::damage::{keep_copy, write_whole};
use crate::files::{File, Files};
use crate::maintainer::Maintainer;
use crate::pace::{PIECE_BYTES, STRETCH_BYTES};
use crate::record::StoredEvent;
use crate::segment::cache::SectionCache;
use crate::segment::index::{Index, IndexBuilder, IndexError, IndexFor, RunInfo};
use crate::segment::sealed::{RunItem, Sealed};
use crate::segment::{Layout, SegmentHeader, data_name, index_name, unfinished};
use prombus_store::LockExt;
use prombus_store::ReadError;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// Writes records one after the other and collects their index.
pub(super) struct GroupedWriter<'a> {
    header: SegmentHeader,
    file: PacedFile<'a>,
    /// Not written yet.
    buffer: Vec<u8>,
    index: IndexBuilder,
}

impl<'a> GroupedWriter<'a> {
    pub(super) fn create(
        files: &dyn Files,
        header: SegmentHeader,
        pace: &'a Pace<'a>,
    ) -> io::Result<Self> {
        let file = files.create(&unfinished(&data_name(header.number)))?;
        Ok(Self {
            file: PacedFile::new(file, pace),
            header,
            buffer: header.encode(),
            index: IndexBuilder::new(header.created_ms),
        })
    }

    /// Adds the next event of a topic.
    pub(super) fn add(&mut self, event: &StoredEvent) -> io::Result<()> {
        let offset = self.file.bytes + self.buffer.len() as u64;
        self.buffer.extend_from_slice(event.record());
        self.index.add(offset as u32, event);
        if self.buffer.len() >= PIECE_BYTES {
            self.flush()
        } else {
            Ok(())
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
    ) -> io::Result<Arc<Sealed>> {
        self.flush()?;
        self.file.finish()?;
        let number = self.header.number;
        let owner = IndexFor {
            number,
            generation: self.header.generation,
            data_bytes: self.file.bytes,
        };
        let index = self.index.finish(owner, Vec::new());
        files.rename(&unfinished(&data_name(number)), &data_name(number))?;
        write_whole(files, &index_name(number), &index)?;
        cache.forget(number);
        let index = Index::open(files.open(&index_name(number))?, owner, cache.clone());
        let (file, bytes) = (self.file.file, self.file.bytes);
        let sealed = index.and_then(|index| Sealed::new(self.header, file, bytes, index));
        sealed.map(Arc::new).map_err(as_io)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

impl Maintainer {
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
        // Pauses go by what is read, which is more than what is written.
        let pace = |_| Ok(self.background.pacer.may_pause());
        let unfinished_name = unfinished(&data_name(header.number));
        let copied = GroupedWriter::create(&*self.files, header, &pace)
            .and_then(|writer| self.copy_wanted(segments, &keep, writer));
        let copied = copied.inspect_err(|_| {
            // It does no harm, but it takes space.
            let _ = self.files.remove(&unfinished_name);
        })?;
        let Some(writer) = copied else {
            return self.files.remove(&unfinished_name);
        };
        if writer.is_empty() {
            self.files.remove(&unfinished_name)?;
            return self.remove_segments(segments);
        }
        // The caller that makes an index again must not do it from the old data beside the new.
        let _no_rebuild = self.reader.rebuilding.guard();
        let rewritten = writer.finish(&*self.files, &self.reader.cache)?;
        self.committer
            .stats
            .written
            .sealed(rewritten.data_bytes + rewritten.index.bytes());
        self.reader.replace_sealed(segments, Some(&rewritten))?;
        self.record_removed(&segments[1..])?;
        for segment in &segments[1..] {
            let number = segment.header.number;
            self.reader.cache.forget(number);
            self.files.remove(&data_name(number))?;
            self.files.remove(&index_name(number))?;
        }
        self.files.sync_names()
    }

    /// Copies the wanted events of segments, topic by topic; `None` if an index had to be made again first.
    fn copy_wanted<'a>(
        &self,
        segments: &[Arc<Sealed>],
        keep: &impl Fn(&StoredEvent) -> Result<bool, ReadError>,
        mut writer: GroupedWriter<'a>,
    ) -> io::Result<Option<GroupedWriter<'a>>> {
        let mut read_bytes = 0;
        for (topic, runs) in runs_by_topic(segments) {
            let Some(first_seq) = self.wanted_from(topic) else {
                continue;
            };
            for segment in runs {
                let Some(run) = self.run_to_rewrite(segment, topic)? else {
                    return Ok(None);
                };
                let mut reader = segment.reader(&run, run.data.start);
                while let Some(item) = reader.next()? {
                    let event = match item {
                        RunItem::Event { event, .. } => event,
                        RunItem::Damage(range) => {
                            self.reader.note_damage(segment, range);
                            self.quarantine(segment.header.number, &*segment.file)?;
                            continue;
                        }
                    };
                    read_bytes += event.record().len() as u64;
                    if event.seq() >= first_seq && keep(&event).map_err(io::Error::other)? {
                        writer.add(&event)?;
                    }
                    if read_bytes >= STRETCH_BYTES {
                        self.pace_rewriting(std::mem::take(&mut read_bytes))?;
                    }
                }
            }
        }
        self.pace_rewriting(read_bytes)?;
        Ok(Some(writer))
    }

    /// A run that is to be rewritten; `None` if its index had to be made again first.
    fn run_to_rewrite(&self, segment: &Arc<Sealed>, topic: u32) -> io::Result<Option<RunInfo>> {
        match segment.run(topic) {
            Ok(run) => Ok(run),
            Err(IndexError::Io(error)) => Err(error),
            Err(IndexError::Damaged) => {
                self.reader.rebuild_index(segment)?;
                Ok(None)
            }
        }
    }

    /// The first position that a topic keeps; `None` if it is gone.
    fn wanted_from(&self, topic: u32) -> Option<u64> {
        let view = self.reader.view();
        Some(view.topics.get(&topic)?.first_seq)
    }

    /// Keeps a damaged segment as it is before a rewrite leaves the bad bytes behind.
    pub(super) fn quarantine(&self, number: u64, file: &dyn File) -> io::Result<()> {
        let mut bytes = vec![0; file.bytes()? as usize];
        let read = file.read_at(&mut bytes, 0)?;
        bytes.truncate(read);
        keep_copy(&*self.files, &data_name(number), &bytes).map(drop)
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
