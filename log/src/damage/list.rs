//! All findings of a log, and the notes that keep them beside the data.

use super::note;
use crate::files::{Files, read_whole, write_whole};
use crate::options::Listener;
use prombus_store::LockExt;
use prombus_store::{Damage, DamageKind, LostSeqs, MAX_NAMED};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

/// The most findings that are remembered; beyond it only the count grows.
pub const MAX_FINDINGS: usize = 10_000;
const PREFIX: &str = "damaged-";

/// All damage that is known of a log.
#[derive(Default)]
pub(crate) struct DamageList {
    known: Mutex<Known>,
    listener: Option<Arc<dyn Listener>>,
}

#[derive(Default)]
struct Known {
    findings: Vec<Damage>,
    /// Findings that were not remembered.
    dropped: u64,
}

impl DamageList {
    /// Reads the notes that earlier findings left. The listener is notified of new ones only.
    pub(crate) fn load(files: &dyn Files, listener: Option<Arc<dyn Listener>>) -> io::Result<Self> {
        let mut findings = Vec::new();
        let mut names = files.list()?;
        names.sort();
        for name in names.iter().filter(|name| is_note(name)) {
            let text = read_whole(files, name)?;
            let text = String::from_utf8_lossy(&text);
            let left = MAX_FINDINGS - findings.len();
            findings.extend(text.lines().take(left).map(|line| read_line(name, line)));
        }
        let known = Known {
            findings,
            dropped: 0,
        };
        Ok(Self {
            known: Mutex::new(known),
            listener,
        })
    }

    /// All findings.
    pub(crate) fn all(&self) -> Vec<Damage> {
        self.known().findings.clone()
    }

    /// The findings behind the first `known` ones.
    pub(crate) fn since(&self, known: usize) -> Vec<Damage> {
        let all = self.known();
        all.findings.get(known..).unwrap_or_default().to_vec()
    }

    /// How many there are, those that were not remembered included.
    pub(crate) fn count(&self) -> u64 {
        let known = self.known();
        known.findings.len() as u64 + known.dropped
    }

    /// Whether a finding names the position.
    pub(crate) fn names(&self, topic: &str, seq: u64) -> bool {
        let known = self.known();
        known.findings.iter().any(|one| one.names(topic, seq))
    }

    /// Takes in a finding and writes it down. False if it was known. Writing it down may fail without harm: the next
    /// reader of the same place tries again.
    pub(crate) fn add(&self, files: &dyn Files, damage: &Damage) -> bool {
        let mut known = self.known();
        let mut places = known.findings.iter();
        let is_new = match places.position(|one| one.is_same_place(damage)) {
            Some(at) => merge_finding(&mut known.findings[at], damage),
            None if known.findings.len() >= MAX_FINDINGS => {
                known.dropped += 1;
                false
            }
            None => {
                known.findings.push(damage.clone());
                true
            }
        };
        if !is_new {
            return false;
        }
        let of_segment = known.findings.iter();
        let of_segment = of_segment.filter(|one| one.segment == damage.segment);
        let text: String = of_segment.map(|one| format!("{one}\n")).collect();
        let written = write_whole(files, &note_name(damage.segment), text.as_bytes());
        drop(known);
        if let Some(listener) = &self.listener {
            listener.damage_found(damage);
        }
        written.is_ok()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.guard()
    }
}

/// Takes over what another finding about the same place knows more. False if it knows nothing more.
fn merge_finding(known: &mut Damage, other: &Damage) -> bool {
    let mut has_learned = false;
    for lost in &other.lost {
        let covers =
            |one: &LostSeqs| one.topic == lost.topic && one.from <= lost.from && lost.to <= one.to;
        if known.lost.len() < MAX_NAMED && !known.lost.iter().any(covers) {
            known.lost.push(lost.clone());
            has_learned = true;
        }
    }
    if known.file.is_none() && other.file.is_some() {
        known.file.clone_from(&other.file);
        has_learned = true;
    }
    has_learned
}

/// A line of a note. What another version wrote still counts as damage of its segment.
fn read_line(name: &str, line: &str) -> Damage {
    note::parse(line).unwrap_or_else(|| {
        let number = name.strip_prefix(PREFIX).and_then(|name| name.get(..16));
        let number = number.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        Damage {
            file: Some(name.to_owned()),
            ..Damage::of(DamageKind::Corrupt, number.unwrap_or(0))
        }
    })
}

/// The note about a segment's damage.
fn note_name(segment: u64) -> String {
    format!("{PREFIX}{segment:016x}.txt")
}

/// A name under which a file can be kept as it was found: none that is taken.
pub(crate) fn kept_name(files: &dyn Files, name: &str) -> io::Result<String> {
    let names = files.list()?;
    let numbered = (2..).map(|count: u64| format!("{PREFIX}{name}.{count}.kept"));
    let mut free = std::iter::once(format!("{PREFIX}{name}.kept")).chain(numbered);
    let free = free.find(|name| !names.contains(name));
    free.ok_or_else(|| io::ErrorKind::AlreadyExists.into())
}

/// Keeps the bytes of a file as they were found, unless an earlier attempt has. Returns under which name.
pub(crate) fn keep_copy(files: &dyn Files, name: &str, bytes: &[u8]) -> io::Result<String> {
    let prefix = format!("{PREFIX}{name}.");
    let names = files.list()?;
    let mut earlier = names
        .into_iter()
        .filter(|kept| kept.starts_with(&prefix) && kept.ends_with(".kept"));
    if let Some(kept) = earlier.find(|kept| read_whole(files, kept).is_ok_and(|kept| kept == bytes))
    {
        return Ok(kept);
    }
    let kept = kept_name(files, name)?;
    write_whole(files, &kept, bytes)?;
    Ok(kept)
}

fn is_note(name: &str) -> bool {
    name.starts_with(PREFIX) && name.ends_with(".txt")
}

/// Whether a file is about damage and none of the log's own.
pub(crate) fn is_about_damage(name: &str) -> bool {
    name.starts_with(PREFIX)
}
