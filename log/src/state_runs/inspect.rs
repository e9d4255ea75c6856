//! Which runs of a folder count, and what is wrong with them: a run that cannot be read in full, one that is missing, one
//! that is of another log. Opening a log and checking it say the same.

use super::file::{RunHeaderError, RunItem, RunReader};
use super::order::StateKey;
use super::{RunHeader, run_name, run_number_of};
use crate::files::Files;
use crate::record::StateRecord;
use std::io;
use std::ops::Range;

/// The runs of a folder.
#[derive(Default)]
pub(super) struct Folder {
    /// Those that make up the state, oldest first.
    pub(super) runs: Vec<Listed>,
    /// Those that another one replaces: a crash came before they were removed.
    pub(super) replaced: Vec<u64>,
    /// Those that are none of this log.
    pub(super) foreign: Vec<u64>,
    /// A sentence for each thing that is wrong.
    pub(super) problems: Vec<String>,
}

/// A run as its name and its header tell of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Listed {
    /// As far as it is known: the range of one whose header is damaged is taken to begin behind the one before.
    pub(super) header: RunHeader,
    has_header: bool,
}

/// A run while it is read; says what of it is lost.
pub(super) struct CheckedRun {
    listed: Listed,
    reader: RunReader,
    file_bytes: u64,
    before: Option<StateKey>,
    bad: Option<Range<u64>>,
    found: u64,
    pub(super) problems: Vec<String>,
    /// Topics of these numbers, both ends excluded, may have been in what is lost.
    pub(super) lost_topics: Vec<(u32, u32)>,
}

impl Folder {
    /// Looks at the headers of all runs, and at what they cover.
    pub(super) fn look(files: &dyn Files, log_id: Option<u64>) -> io::Result<Self> {
        let names = files.list()?;
        let mut numbers: Vec<u64> = names
            .iter()
            .filter_map(|name| run_number_of(name))
            .collect();
        numbers.sort_unstable();
        let mut folder = Self::default();
        let mut found = Vec::new();
        for number in numbers {
            let file = files.open(&run_name(number))?;
            match RunHeader::read(&*file)? {
                Ok(header)
                    if header.to != number || log_id.is_some_and(|id| id != header.log_id) =>
                {
                    folder.foreign.push(number);
                    let text = "does not belong here: it is of another log or another range";
                    folder.problems.push(about(number, text));
                }
                Ok(header) => found.push((number, Some(header))),
                Err(RunHeaderError::Damaged) => found.push((number, None)),
                Err(RunHeaderError::Newer { version }) => {
                    let text = format!("state run {number:016x} has the newer format {version}");
                    return Err(io::Error::other(text));
                }
            }
        }
        folder.choose(&found);
        Ok(folder)
    }

    fn choose(&mut self, found: &[(u64, Option<RunHeader>)]) {
        let covering = |number: u64| {
            let mut later = found.iter().filter_map(|(_, header)| *header);
            later.any(|later| later.from <= number && number < later.to)
        };
        let mut next = 1;
        for &(number, header) in found {
            if covering(number) {
                self.replaced.push(number);
                continue;
            }
            let has_header = header.is_some();
            let assumed = RunHeader::for_segments(next, number, 1, 0);
            let header = header.unwrap_or(assumed);
            if header.from > next {
                self.problems.push(missing(next..header.from));
            }
            next = number + 1;
            self.runs.push(Listed { header, has_header });
        }
    }
}

impl Listed {
    /// A run whose header was read before.
    pub(super) fn sound(header: RunHeader) -> Self {
        Self {
            header,
            has_header: true,
        }
    }
}

impl CheckedRun {
    pub(super) fn open(files: &dyn Files, listed: Listed) -> io::Result<Self> {
        let file = files.open(&run_name(listed.header.to))?;
        let mut run = Self {
            listed,
            file_bytes: file.bytes()?,
            reader: RunReader::new(file)?,
            before: None,
            bad: None,
            found: 0,
            problems: Vec::new(),
            lost_topics: Vec::new(),
        };
        if !listed.has_header {
            run.problem("bytes 0 to 64: damaged; how many records there were is not known");
            run.lost_topics.push((0, u32::MAX));
        }
        Ok(run)
    }

    /// The next sound record.
    pub(super) fn next(&mut self) -> io::Result<Option<(StateKey, StateRecord)>> {
        loop {
            match self.reader.next()? {
                Some(RunItem::Damage(range)) => {
                    let start = self.bad.as_ref().map_or(range.start, |bad| bad.start);
                    self.bad = Some(start..range.end);
                }
                Some(RunItem::Record(key, record)) => {
                    self.found += 1;
                    self.end_damage(Some(&key));
                    self.before = Some(key.clone());
                    return Ok(Some((key, record)));
                }
                None => {
                    self.finish();
                    return Ok(None);
                }
            }
        }
    }

    fn finish(&mut self) {
        let header = self.listed.header;
        if self.listed.has_header && self.file_bytes < header.bytes {
            let start = self.bad.as_ref().map_or(self.file_bytes, |bad| bad.start);
            self.bad = Some(start..header.bytes);
        }
        self.end_damage(None);
        let lost = header.records.saturating_sub(self.found);
        if self.listed.has_header && lost > 0 {
            self.problem(&format!("{lost} of {} records are lost", header.records));
        }
    }

    /// Names a bad stretch by its neighbours in the order of keys.
    fn end_damage(&mut self, behind: Option<&StateKey>) {
        let Some(bad) = self.bad.take() else {
            return;
        };
        let name = |key: Option<&StateKey>, end: &str| {
            key.map_or_else(|| end.to_owned(), ToString::to_string)
        };
        let (first, last) = (
            name(self.before.as_ref(), "the start"),
            name(behind, "the end"),
        );
        let Range { start, end } = bad;
        self.problem(&format!(
            "bytes {start} to {end}: damaged; what was between {first} and {last} is lost or older than it was"
        ));
        let low = match &self.before {
            None => 0,
            Some(StateKey::Topic(number)) => *number,
            Some(StateKey::Keyed(_)) => return,
        };
        let high = match behind {
            Some(StateKey::Topic(number)) => *number,
            _ => u32::MAX,
        };
        self.lost_topics.push((low, high));
    }

    fn problem(&mut self, text: &str) {
        self.problems.push(about(self.listed.header.to, text));
    }
}

/// Says that the changes of some segments are in no run.
pub(super) fn missing(segments: Range<u64>) -> String {
    let Range { start, end } = segments;
    let last = end - 1;
    about(
        last,
        &format!(
            "missing for segments {start:016x} to {last:016x}; topics and keyed records that changed there are lost or older than they were"
        ),
    )
}

fn about(run: u64, text: &str) -> String {
    format!("state run {run:016x}, {text}")
}
