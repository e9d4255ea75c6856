//! Damage: what it hit, told in words that name topics, positions and ids, and kept beside the data until an operator
//! removes the note.

use crate::files::{File, Files};
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The most that is remembered in one go; beyond it only the count grows.
const MAX_REMEMBERED: usize = 10_000;
const NOTE_PREFIX: &str = "damaged-";
/// No id, topic or position is longer in a damaged event.
const MAX_TEXT_BYTES: usize = 256;
/// What every event's JSON starts with.
const ID_MARK: &[u8] = br#"{"id":""#;

/// A stretch of a segment that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The segment's number.
    pub segment: u64,
    /// The first bad byte.
    pub from: u64,
    /// The byte behind the last bad one.
    pub to: u64,
    /// The events it hit, as far as they can be told.
    pub events: Vec<DamagedEvent>,
}

/// An event that was hit by damage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedEvent {
    /// Its topic, if it can be told.
    pub topic: Option<String>,
    /// Its position, if it can be told.
    pub seq: Option<u64>,
    /// Its id, if it can be told.
    pub id: Option<String>,
}

impl Damage {
    /// Describes a bad stretch of a segment's file.
    pub(crate) fn read(segment: u64, file: &dyn File, range: Range<u64>) -> io::Result<Self> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let read = file.read_at(&mut bytes, range.start)?;
        bytes.truncate(read);
        Ok(Self::describe(segment, range.start, &bytes))
    }

    /// Describes the bad bytes of a segment: the JSON in them usually still tells which events they were.
    pub(crate) fn describe(segment: u64, from: u64, bytes: &[u8]) -> Self {
        let starts: Vec<usize> = (0..bytes.len())
            .filter(|&at| starts_event(&bytes[at..]))
            .collect();
        let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
        let events = starts.iter().zip(ends).map(|(&start, end)| {
            let event = &bytes[start..end];
            let topic = text_after(event, br#","topic":""#, b'"');
            let seq = text_after(event, br#"","seq":"#, b',').and_then(|seq| seq.parse().ok());
            DamagedEvent {
                topic,
                seq,
                id: text_before(&event[ID_MARK.len()..], b'"'),
            }
        });
        Self {
            segment,
            from,
            to: from + bytes.len() as u64,
            events: events.collect(),
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            segment, from, to, ..
        } = self;
        write!(f, "segment {segment:016x}, bytes {from} to {to}: ")?;
        if self.events.is_empty() {
            return f.write_str("damaged; no event can be told from what is left");
        }
        f.write_str("damaged; it held")?;
        for (at, event) in self.events.iter().enumerate() {
            f.write_str(if at == 0 { " " } else { ", " })?;
            event.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for DamagedEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unknown = || "?".to_owned();
        let topic = self.topic.clone().unwrap_or_else(unknown);
        let seq = self.seq.map_or_else(unknown, |seq| seq.to_string());
        let id = self.id.clone().unwrap_or_else(unknown);
        write!(f, "{topic} seq {seq} id {id}")
    }
}

/// All damage that is known of a log.
#[derive(Debug, Default)]
pub(crate) struct DamageList(Mutex<Vec<String>>);

impl DamageList {
    /// Reads the notes that earlier findings left.
    pub(crate) fn load(files: &dyn Files) -> io::Result<Self> {
        let mut lines = Vec::new();
        let mut names = files.list()?;
        names.sort();
        for name in names.iter().filter(|name| is_note(name)) {
            let text = read_whole(files, name)?;
            let text = String::from_utf8_lossy(&text);
            lines.extend(text.lines().take(MAX_REMEMBERED).map(str::to_owned));
        }
        Ok(Self(Mutex::new(lines)))
    }

    /// All damage, a sentence each.
    pub(crate) fn all(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Takes in damage and writes it down. False if it was known. Writing it down may fail without harm: whoever
    /// meets the damage again will try again.
    pub(crate) fn add(&self, files: &dyn Files, damage: &Damage) -> bool {
        let line = damage.to_string();
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.contains(&line) || lines.len() >= MAX_REMEMBERED {
            return false;
        }
        lines.push(line);
        let marker = format!("segment {:016x},", damage.segment);
        let of_segment = lines.iter().filter(|line| line.starts_with(&marker));
        let text: String = of_segment.flat_map(|line| [line, "\n"]).collect();
        let written = write_whole(files, &note_name(damage.segment), text.as_bytes());
        written.is_ok()
    }
}

/// The note about a segment's damage.
fn note_name(segment: u64) -> String {
    format!("{NOTE_PREFIX}{segment:016x}.txt")
}

/// Where a damaged segment is kept as it was found.
pub(crate) fn quarantine_name(segment: u64) -> String {
    format!("{NOTE_PREFIX}{segment:016x}.seg.kept")
}

fn is_note(name: &str) -> bool {
    name.starts_with(NOTE_PREFIX) && name.ends_with(".txt")
}

/// Whether a file is about damage and none of the log's own.
pub(crate) fn is_about_damage(name: &str) -> bool {
    name.starts_with(NOTE_PREFIX)
}

pub(crate) fn read_whole(files: &dyn Files, name: &str) -> io::Result<Vec<u8>> {
    let file = files.open(name)?;
    let mut bytes = vec![0; file.bytes()? as usize];
    let read = file.read_at(&mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Writes a small file so that it is there whole or not at all.
pub(crate) fn write_whole(files: &dyn Files, name: &str, bytes: &[u8]) -> io::Result<()> {
    let unfinished = crate::segment::unfinished(name);
    let file = files.create(&unfinished)?;
    let written = file.write_at(bytes, 0).and_then(|()| file.sync());
    if let Err(error) = written {
        // On a full disk its space would be missing elsewhere.
        let _ = files.remove(&unfinished);
        return Err(error);
    }
    files.rename(&unfinished, name)?;
    files.sync_names()
}

fn find_all(bytes: &[u8], what: &[u8]) -> Vec<usize> {
    let last = bytes.len().saturating_sub(what.len());
    (0..=last)
        .filter(|&at| bytes[at..].starts_with(what))
        .collect()
}

/// Whether an event's JSON starts here. If one byte of its mark is damaged, what follows the id has to prove it.
fn starts_event(bytes: &[u8]) -> bool {
    let Some((mark, rest)) = bytes.split_at_checked(ID_MARK.len()) else {
        return false;
    };
    let wrong = mark.iter().zip(ID_MARK).filter(|(is, was)| is != was);
    match wrong.count() {
        0 => true,
        1 => {
            let behind = rest
                .iter()
                .take(MAX_TEXT_BYTES)
                .position(|&byte| byte == b'"');
            let behind = behind.map_or(&[][..], |end| &rest[end..]);
            behind.starts_with(br#"","ts":"#) || behind.starts_with(br#"","sid":"#)
        }
        _ => false,
    }
}

/// The text between `before` and `end`, if it is short.
fn text_after(bytes: &[u8], before: &[u8], end: u8) -> Option<String> {
    let start = find_all(bytes, before).first()? + before.len();
    text_before(&bytes[start..], end)
}

/// The printable text up to `end`, or up to where damage made that something else.
fn text_before(bytes: &[u8], end: u8) -> Option<String> {
    let mut shown = bytes.iter().take(MAX_TEXT_BYTES);
    let length = shown.position(|&byte| byte == end || !(0x20..0x7f).contains(&byte))?;
    let text = std::str::from_utf8(&bytes[..length]).ok()?;
    Some(text.to_owned())
}
