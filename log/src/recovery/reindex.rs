//! Making the index of a sealed segment again from its data.

use crate::damage::{Damage, DamageList, DamagedEvent, write_whole};
use crate::files::{File, Files};
use crate::record::{Kind, StoredEvent};
use crate::segment::cache::SectionCache;
use crate::segment::index::{Index, IndexBuilder, IndexError, IndexFor, RunInfo, Section};
use crate::segment::sealed::Sealed;
use crate::segment::{Found, Scanner, SegmentHeader, data_name, index_name};
use std::io;
use std::sync::Arc;

/// What the index that lies beside a segment says, whatever data it was made for.
pub(crate) struct OldIndex {
    pub(crate) generation: u32,
    runs: Vec<(RunInfo, Arc<str>)>,
    pub(crate) checkpoint: Vec<u8>,
}

impl OldIndex {
    pub(crate) fn read(files: &dyn Files, cache: &Arc<SectionCache>, number: u64) -> Option<Self> {
        let file = files.open(&index_name(number)).ok()?;
        let index = Index::open_for_any_data(file, cache.clone()).ok()?;
        Some(Self {
            generation: index.generation(),
            runs: std::iter::zip(index.runs().ok()?, index.topic_names().ok()?).collect(),
            checkpoint: index.load(Section::Checkpoint).unwrap_or_default(),
        })
    }

    /// Notes what this index knew and the data has no more.
    pub(crate) fn note_missing(&self, files: &dyn Files, damage: &DamageList, sealed: &Sealed) {
        for (run, topic) in &self.runs {
            note_missing(files, damage, sealed, run, topic);
        }
    }
}

/// Reads a segment's events and gives it an index with a copy of the checkpoint behind it. Bad stretches are noted.
pub(crate) fn reindex(
    files: &dyn Files,
    cache: &Arc<SectionCache>,
    header: SegmentHeader,
    damage: &DamageList,
    checkpoint: Vec<u8>,
) -> io::Result<Arc<Sealed>> {
    let number = header.number;
    let file = files.open(&data_name(number))?;
    let data_bytes = file.bytes()?;
    let mut builder = IndexBuilder::new(header.created_ms);
    let mut scanner = Scanner::whole(file.clone(), data_bytes);
    while let Some(found) = scanner.next()? {
        match found {
            Found::Record {
                at,
                frame,
                block,
                in_block,
            } if frame.kind == Kind::Event => {
                if let Ok(event) = StoredEvent::from_checked(block, in_block, frame.bytes) {
                    builder.add(at as u32, &event);
                }
            }
            Found::Record { .. } => {}
            Found::Damage { from, to } => {
                let bad = Damage::read(number, &*file, from..to)?;
                damage.add(files, &bad);
            }
        }
    }
    write_index(files, cache, header, file, builder, checkpoint)
}

/// Gives a segment that stays as it is the index that was built for it.
pub(crate) fn write_index(
    files: &dyn Files,
    cache: &Arc<SectionCache>,
    header: SegmentHeader,
    file: Arc<dyn File>,
    builder: IndexBuilder,
    checkpoint: Vec<u8>,
) -> io::Result<Arc<Sealed>> {
    let number = header.number;
    let data_bytes = file.bytes()?;
    let owner = IndexFor {
        number,
        generation: header.generation,
        data_bytes,
    };
    let bytes = builder.finish(owner, checkpoint);
    write_whole(files, &index_name(number), &bytes)?;
    cache.forget(number);
    let index = Index::open(files.open(&index_name(number))?, owner, cache.clone());
    let sealed = index.and_then(|index| Sealed::new(header, file, data_bytes, index));
    sealed.map(Arc::new).map_err(|error| match error {
        IndexError::Io(error) => error,
        IndexError::Damaged => io::Error::other("an index that was just written is damaged"),
    })
}

/// Notes the positions at a run's ends that are gone. Gaps inside are noted by whoever finds the bad bytes there.
fn note_missing(
    files: &dyn Files,
    damage: &DamageList,
    sealed: &Sealed,
    old: &RunInfo,
    topic: &str,
) {
    let found = sealed.run(old.topic).ok().flatten();
    let (first, last) = found.map_or((u64::MAX, 0), |run| (run.first_seq, run.last_seq));
    let missing = (old.first_seq..=old.last_seq)
        .filter(|&seq| seq > last || seq < first)
        .take(1000);
    let events: Vec<DamagedEvent> = missing
        .map(|seq| DamagedEvent {
            topic: Some(topic.to_owned()),
            seq: Some(seq),
            id: None,
        })
        .collect();
    if !events.is_empty() {
        let place = sealed.data_bytes;
        let damage_found = Damage {
            segment: sealed.header.number,
            from: place,
            to: place,
            events,
        };
        damage.add(files, &damage_found);
    }
}
