//! Sealing: a full segment gets its index, and its events are grouped by topic unless one topic has it alone.

use super::gather::{GATHERED_BYTES, gather};
use super::rewrite::GroupedWriter;
use crate::record::{Kind, StoredEvent};
use crate::recovery::{reindex, write_index};
use crate::segment::index::IndexBuilder;
use crate::segment::sealed::Sealed;
use crate::segment::stream::StreamEntry;
use crate::segment::{Found, HEADER_BYTES, Layout, Scanner, SegmentHeader, data_name};
use crate::shared::Shared;
use std::io;
use std::sync::{Arc, PoisonError};

/// What sealing needs of a full segment, copied out of the view.
struct Full {
    number: u64,
    file: Arc<dyn crate::files::File>,
    /// The numbers of the topics that have events in it, in order.
    topics: Vec<u32>,
    /// The segment behind it, which starts with the state at its end.
    next: Arc<dyn crate::files::File>,
}

/// Events on their way from a full segment to a sealed one.
#[derive(Default)]
struct Gathering {
    /// In the order in which they are to be written.
    wanted: Vec<StreamEntry>,
    /// Of all that are wanted.
    bytes: usize,
    memory: Vec<u8>,
    has_damage: bool,
}

impl Shared {
    /// Seals every segment that is full.
    pub(super) fn seal_full_segments(&self) -> io::Result<()> {
        let _one_at_a_time = self
            .rewriting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        while let Some(full) = self.oldest_full() {
            let number = full.number;
            let sealed = match full.topics.len() {
                0 => None,
                1 => Some(self.seal_in_place(&full)?),
                _ => {
                    let sealed = self.seal_grouped(&full);
                    Some(sealed.inspect_err(|_| self.discard_unfinished(number))?)
                }
            };
            let mut view = self.view_mut();
            let stream = view.streams.remove(0);
            view.spare_entries.keep(stream);
            if let Some(sealed) = &sealed {
                view.add_sealed(sealed);
            }
            drop(view);
            // Only now that readers find the ids in the sealed segment are they forgotten here.
            let forgotten = self.front().own_ids.forget_segment(number);
            drop(forgotten);
            if sealed.is_none() {
                self.files.remove(&data_name(number))?;
                self.files.sync_names()?;
            }
            self.upkeep_wake.notify_all();
        }
        Ok(())
    }

    fn oldest_full(&self) -> Option<Full> {
        let view = self.view();
        let [full, next, ..] = view.streams.as_slice() else {
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
            next: next.file.clone(),
        })
    }

    /// The data stays as it is. It is read again only for what is not known of it.
    fn seal_in_place(&self, full: &Full) -> io::Result<Arc<Sealed>> {
        let header = header_of(full)?;
        let checkpoint = checkpoint_of(&full.next)?;
        match self.known_index(full) {
            Some(index) => {
                let file = full.file.clone();
                write_index(&*self.files, &self.cache, header, file, index, checkpoint)
            }
            None => reindex(&*self.files, &self.cache, header, &self.damage, checkpoint),
        }
    }

    /// The index of a segment of one topic, if the view knows all that it has to say.
    fn known_index(&self, full: &Full) -> Option<IndexBuilder> {
        let view = self.view();
        let [number] = full.topics.as_slice() else {
            return None;
        };
        let (topic, run) = (view.topics.get(number)?, view.run(full.number, *number)?);
        let mut index = IndexBuilder::default();
        run.is_nameless().then(|| {
            index.add_nameless(*number, &topic.name, &run.entries);
            index
        })
    }

    fn seal_grouped(&self, full: &Full) -> io::Result<Arc<Sealed>> {
        let old = header_of(full)?;
        let header = SegmentHeader {
            layout: Layout::Grouped,
            generation: old.generation + 1,
            ..old
        };
        let mut writer = GroupedWriter::create(&*self.files, header)?;
        let mut gathering = Gathering::default();
        for topic in &full.topics {
            let entries = match self.view().run(full.number, *topic) {
                Some(run) => run.entries.clone(),
                // It was deleted meanwhile.
                None => continue,
            };
            for entry in entries {
                if gathering.bytes + entry.bytes as usize > GATHERED_BYTES {
                    self.write_gathered(full, &mut gathering, &mut writer)?;
                }
                gathering.bytes += entry.bytes as usize;
                gathering.wanted.push(entry);
            }
        }
        self.write_gathered(full, &mut gathering, &mut writer)?;
        if gathering.has_damage {
            self.quarantine(full.number, &*full.file)?;
        }
        let checkpoint = checkpoint_of(&full.next)?;
        writer.finish(&*self.files, &self.cache, checkpoint)
    }

    /// Writes what is wanted, except what is damaged.
    fn write_gathered(
        &self,
        full: &Full,
        gathering: &mut Gathering,
        writer: &mut GroupedWriter,
    ) -> io::Result<()> {
        gather(&*full.file, &gathering.wanted, &mut gathering.memory)?;
        let block = Arc::new(std::mem::take(&mut gathering.memory));
        let mut at = 0;
        for entry in &gathering.wanted {
            match StoredEvent::read(block.clone(), at) {
                Ok(event) => writer.add(&event)?,
                Err(_) => {
                    let bytes = &block[at..at + entry.bytes as usize];
                    self.note_bad_entry(full.number, entry, bytes);
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

/// The records of the checkpoint that a segment starts with.
fn checkpoint_of(file: &Arc<dyn crate::files::File>) -> io::Result<Vec<u8>> {
    let mut scanner = Scanner::whole(file.clone(), file.bytes()?);
    let mut checkpoint = Vec::new();
    while let Some(Found::Record {
        frame,
        block,
        in_block,
        ..
    }) = scanner.next()?
    {
        checkpoint.extend_from_slice(&block[in_block..in_block + frame.bytes]);
        if frame.kind == Kind::CheckpointEnd {
            return Ok(checkpoint);
        }
    }
    // Damaged: opening the log will say so. A copy of a part would be worse than none.
    Ok(Vec::new())
}
