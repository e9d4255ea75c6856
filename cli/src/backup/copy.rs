//! Copying a snapshot into a folder, with hard links to an earlier copy for what has not changed.

use super::Snapshot;
use anyhow::{Context, bail};
use indicatif::ProgressBar;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Bytes that are read at a time.
const CHUNK_BYTES: usize = 1 << 20;
/// The header of a segment: magic, format, layout, generation, log id, number, and a checksum of all that.
const HEADER_BYTES: usize = 64;
const MAGIC: &[u8] = b"PROMBUS\n";
/// Where the header has the layout, and the one that is never appended to.
const LAYOUT_AT: usize = 10;
const GROUPED: u8 = 2;
/// Where the header has the log's id.
const LOG_ID: std::ops::Range<usize> = 16..24;

/// What a copy consists of.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Copied {
    pub(crate) copied_files: u64,
    pub(crate) copied_bytes: u64,
    /// Those that an earlier copy had already.
    pub(crate) reused_files: u64,
    pub(crate) reused_bytes: u64,
}

/// Copies into `folder`, which is empty, and makes it durable. Files that `earlier` has are linked.
pub(crate) fn copy_into(
    folder: &Path,
    snapshot: Snapshot,
    earlier: Option<&Path>,
    bar: &ProgressBar,
) -> anyhow::Result<Copied> {
    let mut copied = Copied::default();
    for (name, mut file) in snapshot.files {
        let target = folder.join(&name);
        let about = || format!("cannot copy {name} to {}", target.display());
        let bytes = file.metadata().with_context(about)?.len();
        let known = earlier.map(|earlier| earlier.join(&name));
        if let Some(known) = known
            && is_same(&mut file, &known).with_context(about)?
            && fs::hard_link(&known, &target).is_ok()
        {
            copied.reused_files += 1;
            copied.reused_bytes += bytes;
            bar.inc(bytes);
            continue;
        }
        let final_bytes = final_bytes(&mut file, bytes).with_context(about)?;
        copy_file(&mut file, &target, final_bytes, bytes, bar).with_context(about)?;
        copied.copied_files += 1;
        copied.copied_bytes += final_bytes;
    }
    Ok(copied)
}

/// Fails where the copy at `earlier` is of another log, so that nobody's backup is replaced by mistake.
pub(crate) fn check_same_log(snapshot: &Snapshot, earlier: &Path) -> anyhow::Result<()> {
    for (name, file) in &snapshot.files {
        let Some(ours) = header(&mut &*file)? else {
            continue;
        };
        let theirs = match File::open(earlier.join(name)) {
            Ok(mut file) => header(&mut file)?,
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        if theirs.is_some_and(|theirs| theirs[LOG_ID] != ours[LOG_ID]) {
            bail!(
                "{} holds a backup of another log; choose another folder",
                earlier.display()
            );
        }
    }
    Ok(())
}

/// Whether the earlier copy of a file can stand for it. A sealed segment is known by its header; anything else is
/// compared.
fn is_same(file: &mut File, known: &Path) -> io::Result<bool> {
    let mut known = match File::open(known) {
        Ok(known) => known,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    if file.metadata()?.len() != known.metadata()?.len() {
        return Ok(false);
    }
    if let Some(header_of_file) = header(file)? {
        let is_sealed = header_of_file[LAYOUT_AT] == GROUPED;
        return Ok(is_sealed && header(&mut known)? == Some(header_of_file));
    }
    file.seek(SeekFrom::Start(0))?;
    known.seek(SeekFrom::Start(0))?;
    let (mut ours, mut theirs) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
    loop {
        let count = read_full(file, &mut ours)?;
        if count != read_full(&mut known, &mut theirs)? || ours[..count] != theirs[..count] {
            return Ok(false);
        }
        if count == 0 {
            return Ok(true);
        }
    }
}

/// The header, where the file is a segment.
fn header(file: &mut (impl Read + Seek)) -> io::Result<Option<[u8; HEADER_BYTES]>> {
    let mut header = [0; HEADER_BYTES];
    file.seek(SeekFrom::Start(0))?;
    let count = read_full(file, &mut header)?;
    Ok((count == HEADER_BYTES && header.starts_with(MAGIC)).then_some(header))
}

/// How many bytes at the beginning of a file do not change any more. A segment that is appended to ends in zeros; what
/// precedes them is written, because records are written one after the other.
fn final_bytes(file: &mut File, bytes: u64) -> io::Result<u64> {
    match header(file)? {
        Some(header) if header[LAYOUT_AT] != GROUPED => {}
        _ => return Ok(bytes),
    }
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut end = bytes;
    while end > 0 {
        let start = end.saturating_sub(CHUNK_BYTES as u64);
        let part = &mut chunk[..(end - start) as usize];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(part)?;
        if let Some(last) = part.iter().rposition(|byte| *byte != 0) {
            return Ok(start + last as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Copies the first `final_bytes`; the rest of the file's length is zeros.
fn copy_file(
    file: &mut File,
    target: &Path,
    final_bytes: u64,
    bytes: u64,
    bar: &ProgressBar,
) -> io::Result<()> {
    let mut out = File::create_new(target)?;
    file.seek(SeekFrom::Start(0))?;
    let mut left = final_bytes;
    let mut chunk = vec![0; CHUNK_BYTES];
    while left > 0 {
        let wanted = left.min(CHUNK_BYTES as u64) as usize;
        file.read_exact(&mut chunk[..wanted])?;
        out.write_all(&chunk[..wanted])?;
        left -= wanted as u64;
        bar.inc(wanted as u64);
    }
    out.set_len(bytes)?;
    bar.inc(bytes - final_bytes);
    out.sync_all()
}

/// Reads until the buffer is full or the file ends.
fn read_full(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut count = 0;
    while count < buffer.len() {
        match file.read(&mut buffer[count..]) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(layout: u8, body: &[u8], zeros: usize) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.resize(HEADER_BYTES, 1);
        bytes[LAYOUT_AT] = layout;
        bytes.extend_from_slice(body);
        bytes.resize(bytes.len() + zeros, 0);
        bytes
    }

    fn copy(from: &Path, to: &Path, earlier: Option<&Path>) -> Copied {
        let snapshot = Snapshot::open(from).unwrap();
        copy_into(to, snapshot, earlier, &ProgressBar::hidden()).unwrap()
    }

    #[test]
    fn what_has_not_changed_is_linked() {
        let root = tempfile::tempdir().unwrap();
        let [log, first, second] = ["log", "first", "second"].map(|name| {
            let folder = root.path().join(name);
            fs::create_dir(&folder).unwrap();
            folder
        });
        fs::write(log.join("SEGMENTS"), "1 2").unwrap();
        fs::write(log.join("1.seg"), segment(GROUPED, b"sealed", 0)).unwrap();
        fs::write(log.join("2.seg"), segment(1, b"active", 3 << 20)).unwrap();
        let copied = copy(&log, &first, None);
        assert_eq!((copied.copied_files, copied.reused_files), (3, 0));
        // Grown in place, with its length as before.
        fs::write(
            log.join("2.seg"),
            segment(1, b"active and more", (3 << 20) - 9),
        )
        .unwrap();
        fs::write(log.join("SEGMENTS"), "1 2 3").unwrap();
        let copied = copy(&log, &second, Some(&first));
        assert_eq!((copied.copied_files, copied.reused_files), (2, 1));
        for name in ["SEGMENTS", "1.seg", "2.seg"] {
            let [original, copy] =
                [&log, &second].map(|folder| fs::read(folder.join(name)).unwrap());
            assert!(original == copy, "{name}");
        }
    }

    #[test]
    fn only_what_is_final_of_an_active_segment_is_copied() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("1.seg");
        fs::write(&path, segment(1, b"active", 5 << 20)).unwrap();
        let mut file = File::open(&path).unwrap();
        let bytes = file.metadata().unwrap().len();
        assert_eq!(
            final_bytes(&mut file, bytes).unwrap(),
            HEADER_BYTES as u64 + 6
        );
        fs::write(&path, segment(GROUPED, b"sealed", 7)).unwrap();
        let mut file = File::open(&path).unwrap();
        let bytes = file.metadata().unwrap().len();
        assert_eq!(final_bytes(&mut file, bytes).unwrap(), bytes);
    }
}
