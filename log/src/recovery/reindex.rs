//! Making the index of a sealed segment again from its data.

use crate::damage::{Damage, DamageList, DamagedEvent, write_whole};
use crate::files::Files;
use crate::record::{Kind, StoredEvent};
use crate::segment::cache::SectionCache;
use crate::segment::index::{Index, IndexBuilder, IndexError, IndexFor, RunInfo, Section};
use crate::segment::sealed::Sealed;
use crate::segment::{Found, Scanner, SegmentHeader, data_name, index_name};
use std::io;
use std::sync::Arc;

/// Reads a segment's events and gives it an index with a copy of the checkpoint behind it, the old index's unless
/// another is given. What the old index knew and the data has no more is noted, and so are bad stretches.
pub(crate) fn reindex(
    files: &dyn Files,
    cache: &Arc<SectionCache>,
    header: SegmentHeader,
    damage: &DamageList,
    checkpoint: Option<Vec<u8>>,
) -> io::Result<Arc<Sealed>> {
    let number = header.number;
    let file = files.open(&data_name(number))?;
    let data_bytes = file.bytes()?;
    let mut builder = IndexBuilder::default();
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
    let old = old_index(files, cache, number);
    let checkpoint = checkpoint.or_else(|| old.as_ref().map(|(_, state)| state.clone()));
    let owner = IndexFor {
        number,
        generation: header.generation,
        data_bytes,
    };
    let bytes = builder.finish(owner, checkpoint.unwrap_or_default());
    write_whole(files, &index_name(number), &bytes)?;
    cache.forget(number);
    let index = Index::open(files.open(&index_name(number))?, owner, cache.clone());
    let sealed = index.and_then(|index| Sealed::new(header, file, data_bytes, index));
    let sealed = sealed.map_err(|error| match error {
        IndexError::Io(error) => error,
        IndexError::Damaged => io::Error::other("an index that was just written is damaged"),
    })?;
    for run in old.into_iter().flat_map(|(runs, _)| runs) {
        note_missing(files, damage, &sealed, &run);
    }
    Ok(Arc::new(sealed))
}

/// What the old index said, whatever data it was made for.
fn old_index(
    files: &dyn Files,
    cache: &Arc<SectionCache>,
    number: u64,
) -> Option<(Vec<RunInfo>, Vec<u8>)> {
    let file = files.open(&index_name(number)).ok()?;
    let index = Index::open_for_any_data(file, cache.clone()).ok()?;
    let runs = RunInfo::read_all(&index.load(Section::Directory).ok()?)?;
    let checkpoint = index.load(Section::Checkpoint).unwrap_or_default();
    Some((runs, checkpoint))
}

/// Notes the positions at a run's ends that are gone. Gaps inside are noted by whoever finds the bad bytes there.
fn note_missing(files: &dyn Files, damage: &DamageList, sealed: &Sealed, old: &RunInfo) {
    let found = sealed.slot_of(old.topic).map(|slot| &sealed.runs[slot]);
    let (first, last) = found.map_or((u64::MAX, 0), |run| (run.first_seq, run.last_seq));
    let missing = (old.first_seq..=old.last_seq)
        .filter(|&seq| seq > last || seq < first)
        .take(1000);
    let events: Vec<DamagedEvent> = missing
        .map(|seq| DamagedEvent {
            topic: Some(old.name.to_string()),
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
