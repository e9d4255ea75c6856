//! Checking a log: the very examination that a start does, on a folder in memory over the real one, and then every
//! record of every segment and every index. Nothing is changed.

use crate::files::{Files, OverlayFiles};
use crate::log::Log;
use crate::options::LogOptions;
use crate::reader::Reader;
use crate::recovery::{OpenError, check_log, scan_events};
use crate::segment::index::{IndexError, Section};
use crate::segment::index_number_of;
use crate::segment::sealed::{RunItem, Sealed};
use prombus_store::Damage;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Segments that were read.
    pub segments: u64,
    /// Whole events in them, those that retention let go included.
    pub events: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Everything that is damaged, with what it held, up to [`crate::MAX_FINDINGS`]; earlier findings included.
    pub damage: Vec<Damage>,
    /// How many findings there are, those that are not listed included.
    pub damage_count: u64,
    /// Bytes behind the last whole batch; opening the log will cut them off.
    pub torn_tail_bytes: u64,
    /// Segments whose index has to be made again, which opening the log or reading does.
    pub bad_indexes: Vec<u64>,
}

/// What was read of an open log.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    segments: u64,
    events: u64,
    bytes: u64,
    bad_indexes: Vec<u64>,
}

/// Reads the whole log in `files`, which no other process may have open.
pub fn verify(files: Arc<dyn Files>) -> Result<VerifyReport, OpenError> {
    check_log(&*files)?;
    let overlay = Arc::new(OverlayFiles::new(files));
    let options = LogOptions {
        threads: false,
        ..LogOptions::default()
    };
    let (log, opened) = Log::open(overlay.clone(), options)?;
    let rewritten = overlay.rewritten();
    let checked = log.check()?;
    let mut bad_indexes = checked.bad_indexes;
    bad_indexes.extend(rewritten.iter().filter_map(|name| index_number_of(name)));
    bad_indexes.sort_unstable();
    bad_indexes.dedup();
    Ok(VerifyReport {
        segments: checked.segments,
        events: checked.events,
        bytes: checked.bytes,
        damage: log.damage(),
        damage_count: log.damage_count(),
        torn_tail_bytes: opened.cut_tail.map_or(0, |cut| cut.bytes),
        bad_indexes,
    })
}

impl Reader {
    /// Reads every record of every segment and every index, and notes what is damaged.
    pub(crate) fn check(&self) -> io::Result<Checked> {
        let mut checked = Checked::default();
        let sealed: Vec<Arc<Sealed>> = self.view().sealed.values().cloned().collect();
        for segment in &sealed {
            self.check_index(segment, &mut checked)?;
            let current = self.view().sealed.get(&segment.header.number).cloned();
            self.check_sealed(current.as_ref().unwrap_or(segment), &mut checked)?;
        }
        let active_segments: Vec<_> = {
            let view = self.view();
            let active_segments = view.active_segments.iter().map(|active| {
                let entries = active.runs.values().flat_map(|run| run.entries.clone());
                (
                    active.number,
                    active.file.clone(),
                    entries.collect::<Vec<_>>(),
                )
            });
            active_segments.collect()
        };
        for (number, file, entries) in active_segments {
            checked.segments += 1;
            checked.bytes += file.bytes()?;
            checked.events += self.read_entries(number, &file, &entries)?.len() as u64;
        }
        Ok(checked)
    }

    fn check_index(&self, segment: &Arc<Sealed>, checked: &mut Checked) -> io::Result<()> {
        for section in Section::ALL {
            match segment.index.load(section) {
                Ok(_) => {}
                Err(IndexError::Io(error)) => return Err(error),
                Err(IndexError::Damaged) => {
                    checked.bad_indexes.push(segment.header.number);
                    return self.rebuild_index(segment);
                }
            }
        }
        Ok(())
    }

    fn check_sealed(&self, segment: &Arc<Sealed>, checked: &mut Checked) -> io::Result<()> {
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        let (number, end) = (segment.header.number, segment.data_bytes);
        let scanned = scan_events(number, &segment.file, end, false, |_, event| {
            *counts.entry(event.topic_number()).or_default() += 1;
        })?;
        checked.segments += 1;
        checked.bytes += end;
        checked.events += counts.values().sum::<u64>();
        for bad in scanned.damage {
            self.note_damage(segment, bad.from..bad.to);
        }
        // Records that were copied over others are whole; what they replaced is missing from its run.
        for run in segment.index.runs().unwrap_or_default() {
            if counts.get(&run.topic) == Some(&run.events) {
                continue;
            }
            let mut reader = segment.reader(&run, run.data.start);
            while let Some(item) = reader.next()? {
                if let RunItem::Damage(range) = item {
                    self.note_damage(segment, range);
                }
            }
        }
        Ok(())
    }
}
