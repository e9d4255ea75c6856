//! Taking the sound records out of a damaged segment. The segment is first kept aside as it was found.

use super::SegmentScan;
use super::event_scan::{Scanned, scan_events};
use super::state::State;
use crate::damage::{DamageList, keep_copy, read_whole, write_whole};
use crate::files::Files;
use crate::record::{Kind, LAST_OF_BATCH, StateRecord};
use crate::segment::{Found, HEADER_BYTES, Layout, Scanner, SegmentHeader, data_name};
use prombus_store::{Damage, DamageKind};
use std::io;

/// Rewrites a segment in commit order: its start, then its sound records. Returns what was wrong.
pub(super) fn salvage_active(
    files: &dyn Files,
    damage: &DamageList,
    number: u64,
    scan: &SegmentScan,
    before: &State,
) -> io::Result<Scanned> {
    let scanned = note(files, damage, number, scan)?;
    // Where the start is damaged, the state is the one that the segments before it left; what is sound of a checkpoint
    // of format 1 says the same.
    let is_whole = |end: &u64| !scan.damage.iter().any(|range| range.start < *end);
    let mut content = match scan.checkpoint_end.filter(is_whole) {
        Some(_) => Vec::new(),
        None => before.segment_start(),
    };
    copy_records(files, number, scan.end, |_| true, &mut content)?;
    let header = salvaged_header(files, number, before.log_id)?;
    // Everything in the new file is synced before it gets its name.
    let synced = StateRecord::Synced {
        bytes: HEADER_BYTES + content.len() as u64,
    };
    synced.write(&mut content, LAST_OF_BATCH);
    replace(files, number, &header, &content)?;
    Ok(scanned)
}

/// Rewrites a segment that had been sealed: its sound events, in the order they are. Returns its header.
pub(crate) fn salvage_events(
    files: &dyn Files,
    damage: &DamageList,
    number: u64,
    scan: &SegmentScan,
    log_id: u64,
) -> io::Result<SegmentHeader> {
    note(files, damage, number, scan)?;
    let mut content = Vec::new();
    copy_records(
        files,
        number,
        scan.end,
        |kind| kind == Kind::Event,
        &mut content,
    )?;
    let header = salvaged_header(files, number, log_id)?;
    replace(files, number, &header, &content)?;
    Ok(header)
}

/// Writes down what was hit and keeps the segment as it is.
fn note(
    files: &dyn Files,
    damage: &DamageList,
    number: u64,
    scan: &SegmentScan,
) -> io::Result<Scanned> {
    let name = data_name(number);
    let bytes = read_whole(files, &name)?;
    let kept = keep_copy(files, &name, &bytes)?;
    let file = files.open(&name)?;
    let scanned = scan_events(number, &file, scan.end, false, |_, _| {})?;
    for bad in &scanned.damage {
        let file = Some(kept.clone());
        let bad = Damage {
            file,
            ..bad.clone()
        };
        damage.add(files, &bad);
    }
    if SegmentHeader::decode(&bytes).is_err() {
        let bad_header = Damage {
            to: HEADER_BYTES,
            file: Some(kept),
            ..Damage::of(DamageKind::Corrupt, number)
        };
        damage.add(files, &bad_header);
    }
    Ok(scanned)
}

fn copy_records(
    files: &dyn Files,
    number: u64,
    end: u64,
    keep: impl Fn(Kind) -> bool,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let mut scanner = Scanner::whole(files.open(&data_name(number))?, end);
    while let Some(found) = scanner.next()? {
        if let Found::Record {
            frame,
            block,
            in_block,
            ..
        } = found
            && frame.kind != Kind::Synced
            && keep(frame.kind)
        {
            out.extend_from_slice(&block[in_block..in_block + frame.bytes]);
        }
    }
    Ok(())
}

fn salvaged_header(files: &dyn Files, number: u64, log_id: u64) -> io::Result<SegmentHeader> {
    let known = super::folder::read_header(files, number)?.ok();
    Ok(SegmentHeader {
        layout: Layout::Active,
        generation: known.map_or(u32::MAX / 2, |header| header.generation + 1),
        log_id: known.map_or(log_id, |header| header.log_id),
        number,
        covers_to: known.map_or(number, |header| header.covers_to),
        created_ms: known.map_or(0, |header| header.created_ms),
    })
}

fn replace(
    files: &dyn Files,
    number: u64,
    header: &SegmentHeader,
    content: &[u8],
) -> io::Result<()> {
    let mut bytes = header.encode();
    bytes.extend_from_slice(content);
    write_whole(files, &data_name(number), &bytes)
}
