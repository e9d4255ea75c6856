//! Making the index of a sealed segment again from its data.

use super::event_scan::scan_events;
use crate::damage::{DamageList, write_whole};
use crate::files::{File, Files};
use crate::segment::cache::SectionCache;
use crate::segment::index::{Index, IndexBuilder, IndexError, IndexFor, RunInfo, Section};
use crate::segment::sealed::Sealed;
use crate::segment::{Layout, SegmentHeader, data_name, index_name};
use prombus_store::{Damage, DamageKind, LostSeqs};
use std::io;
use std::sync::Arc;

/// What the index beside a segment says, whatever data it was made for.
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

    /// Notes what this index knew and the data has no more. False if nothing is missing.
    pub(crate) fn note_missing(
        &self,
        files: &dyn Files,
        damage: &DamageList,
        sealed: &Sealed,
    ) -> bool {
        let missing = self
            .runs
            .iter()
            .filter(|(run, topic)| note_missing(files, damage, sealed, run, topic));
        missing.count() > 0
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
    let dense = header.layout == Layout::Active && header.generation == 0;
    let scanned = scan_events(number, &file, data_bytes, dense, |at, event| {
        builder.add(at, event);
    })?;
    for bad in &scanned.damage {
        let is_named = |lost: &LostSeqs| {
            let topic = lost.topic.as_deref().unwrap_or_default();
            damage.names(topic, lost.from) && damage.names(topic, lost.to)
        };
        // A gap without bad bytes may be what an earlier recovery left.
        if bad.to > bad.from || !bad.lost.iter().all(is_named) {
            damage.add(files, bad);
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

/// The positions that an older index knew at the ends of a run and that are gone. Gaps inside are named by whoever
/// finds the bad bytes there, and, where nothing else tells, by the number of events.
fn note_missing(
    files: &dyn Files,
    damage: &DamageList,
    sealed: &Sealed,
    old: &RunInfo,
    topic: &str,
) -> bool {
    let found = sealed.run(old.topic).ok().flatten();
    let mut lost = Damage::of(DamageKind::LostPositions, sealed.header.number);
    let all = old.first_seq..old.last_seq + 1;
    match found {
        None => lost.lose(Some(topic), all),
        Some(run) => {
            lost.lose(Some(topic), all.start..run.first_seq.min(all.end));
            lost.lose(Some(topic), (run.last_seq + 1).max(all.start)..all.end);
            if lost.lost.is_empty() && run.events < old.events {
                lost.lose(Some(topic), all);
            }
        }
    }
    let is_missing = !lost.lost.is_empty();
    if is_missing {
        damage.add(files, &lost);
    }
    is_missing
}
