//! Checking a log that nobody has open: every record of every segment, and every index. Nothing is changed.

use crate::closed_mark::ClosedMark;
use crate::damage::Damage;
use crate::files::Files;
use crate::record::Kind;
use crate::recovery::Survey;
use crate::segment::cache::SectionCache;
use crate::segment::index::{Index, IndexFor, Section};
use crate::segment::{
    Found, HEADER_BYTES, Scanner, SegmentHeader, data_name, index_name, number_of,
};
use crate::state_runs::verify_state;
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
    /// Bad stretches, with what they held.
    pub damage: Vec<Damage>,
    /// Bytes behind the last whole batch; opening the log will cut them off.
    pub torn_tail_bytes: u64,
    /// Segments whose index has to be made again, which opening the log or reading does.
    pub bad_indexes: Vec<u64>,
    /// What is wrong with the state runs, a sentence each.
    pub state_damage: Vec<String>,
}

/// Reads the whole log in `files`.
pub fn verify(files: &dyn Files) -> io::Result<VerifyReport> {
    let mut numbers: Vec<u64> = files
        .list()?
        .iter()
        .filter_map(|name| number_of(name))
        .collect();
    numbers.sort_unstable();
    let mark = ClosedMark::read(files);
    let mut report = VerifyReport::default();
    for &number in &numbers {
        let is_last = Some(&number) == numbers.last();
        let proven = match &mark {
            _ if !is_last => u64::MAX,
            Some(mark) if mark.segment == number => mark.segment_bytes,
            _ => 0,
        };
        verify_segment(files, number, proven, &mut report)?;
    }
    report.state_damage = verify_state(files)?;
    Ok(report)
}

fn verify_segment(
    files: &dyn Files,
    number: u64,
    proven: u64,
    report: &mut VerifyReport,
) -> io::Result<()> {
    let file = files.open(&data_name(number))?;
    let survey = Survey::of_file(files, number, proven)?;
    report.segments += 1;
    report.bytes += survey.file_bytes;
    report.torn_tail_bytes += survey.file_bytes - survey.end;
    for range in &survey.damage {
        let damage = Damage::read(number, &*file, range.clone())?;
        report.damage.push(damage);
    }
    let missing = proven.saturating_sub(survey.file_bytes);
    if proven != u64::MAX && missing > 0 {
        let mut cut_short = Damage::describe(number, survey.file_bytes, &[]);
        cut_short.to = proven;
        report.damage.push(cut_short);
    }
    let mut header = [0; HEADER_BYTES as usize];
    let read = file.read_at(&mut header, 0)?;
    match SegmentHeader::decode(&header[..read]) {
        Ok(header) if !index_is_sound(files, &header, survey.file_bytes)? => {
            report.bad_indexes.push(number);
        }
        Ok(_) => {}
        Err(_) => report
            .damage
            .push(Damage::describe(number, 0, &header[..read])),
    }
    let mut scanner = Scanner::whole(file, survey.end);
    while let Some(found) = scanner.next()? {
        if matches!(found, Found::Record { frame, .. } if frame.kind == Kind::Event) {
            report.events += 1;
        }
    }
    Ok(())
}

/// Whether a segment's index, if it has one, can be used in all its parts.
fn index_is_sound(files: &dyn Files, header: &SegmentHeader, data_bytes: u64) -> io::Result<bool> {
    let Ok(file) = files.open(&index_name(header.number)) else {
        return Ok(header.layout == crate::segment::Layout::Stream);
    };
    let owner = IndexFor {
        number: header.number,
        generation: header.generation,
        data_bytes,
    };
    let Ok(index) = Index::open(file, owner, Arc::new(SectionCache::new(0))) else {
        return Ok(false);
    };
    Ok(Section::ALL
        .into_iter()
        .all(|section| index.load(section).is_ok()))
}
