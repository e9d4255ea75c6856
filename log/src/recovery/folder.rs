//! Checks whether a folder is a log that can be read, without changing anything.

use super::{CUT_TAIL_NAME, OpenError, SegmentScan};
use crate::client_ids::segments_of_name;
use crate::closed_mark::CLOSED_NAME;
use crate::damage::is_about_damage;
use crate::files::Files;
use crate::reserve::RESERVE_NAME;
use crate::segment::{
    HEADER_BYTES, HeaderError, SegmentHeader, data_name, index_number_of, number_of,
};
use crate::segment_set::{SEGMENTS_NAME, SegmentSet};
use crate::state_runs::run_number_of;
use std::io;

/// Looks whether the folder is a log that can be read, or can become one.
pub(super) fn check_folder(files: &dyn Files) -> Result<(), OpenError> {
    let names = files.list()?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| number_of(name)).collect();
    numbers.sort_unstable();
    let foreign = names.iter().find(|name| !is_ours(name));
    if let (true, Some(found)) = (numbers.is_empty(), foreign) {
        let found = found.clone();
        return Err(OpenError::NotALog { found });
    }
    let mut sound = numbers.is_empty() || SegmentSet::read(files).is_some();
    for &number in &numbers {
        match read_header(files, number)? {
            Ok(_) => sound = true,
            Err(HeaderError::Newer { version }) => {
                return Err(OpenError::NewerFormat {
                    version,
                    readable: crate::segment::FORMAT_VERSION,
                });
            }
            Err(HeaderError::Damaged) => {
                sound |= SegmentScan::of_file(files, number, 0)?.is_log();
            }
        }
    }
    // A single file may be a log that was never finished; anything else has to prove itself.
    if let (false, [number]) = (sound, numbers.as_slice()) {
        let mut bytes = [0; HEADER_BYTES as usize];
        let read = files.open(&data_name(*number))?.read_at(&mut bytes, 0)?;
        sound = SegmentHeader::may_be_unfinished(&bytes[..read]);
    }
    if sound {
        Ok(())
    } else {
        Err(OpenError::NotALog {
            found: data_name(numbers[0]),
        })
    }
}

/// The same for those who want to read a log and not make one.
pub(crate) fn check_log(files: &dyn Files) -> Result<(), OpenError> {
    check_folder(files)?;
    let names = files.list()?;
    let is_log = |name: &String| {
        number_of(name).is_some() || index_number_of(name).is_some() || name == SEGMENTS_NAME
    };
    if names.iter().any(is_log) {
        Ok(())
    } else {
        Err(OpenError::NoLog)
    }
}

fn is_ours(name: &str) -> bool {
    let name = name.strip_suffix(".new").unwrap_or(name);
    number_of(name).is_some()
        || index_number_of(name).is_some()
        || run_number_of(name).is_some()
        || segments_of_name(name).is_some()
        || [CLOSED_NAME, CUT_TAIL_NAME, SEGMENTS_NAME, RESERVE_NAME].contains(&name)
        || is_about_damage(name)
}

pub(super) fn read_header(
    files: &dyn Files,
    number: u64,
) -> io::Result<Result<SegmentHeader, HeaderError>> {
    let mut bytes = [0; HEADER_BYTES as usize];
    let read = files.open(&data_name(number))?.read_at(&mut bytes, 0)?;
    Ok(SegmentHeader::decode(&bytes[..read]))
}
