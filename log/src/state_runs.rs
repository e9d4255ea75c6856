//! State runs: topics and keyed records on disk, apart from the events. When a segment is sealed, the net change that it
//! made to them goes to a sorted file of its own; the files are merged in the background, size-tiered, and together they
//! are the state at the end of the last sealed segment. Nothing is ever written again only because time passes.

mod changes;
mod file;
mod inspect;
mod load;
mod merge;
mod order;

pub(crate) use changes::{NetChanges, log_time};
pub(crate) use load::{LoadedRuns, load};
pub(crate) use merge::Merging;

use crate::files::Files;
use crate::record::{StateRecord, TopicRecord};
use file::RunWriter;
use prombus_store::LockExt;
use std::io;
use std::sync::{Mutex, MutexGuard};

/// What a run says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunHeader {
    /// The first segment whose changes it holds.
    pub(crate) from: u64,
    /// The last one; also the name of the file.
    pub(crate) to: u64,
    pub(crate) records: u64,
    /// Of the whole file.
    pub(crate) bytes: u64,
    /// No topic up to the end of `to` had this number or a higher one.
    pub(crate) next_topic_number: u32,
    pub(crate) log_id: u64,
}

/// The runs of an open log, oldest first; their ranges follow each other without gaps.
#[derive(Debug, Default)]
pub(crate) struct StateRuns {
    runs: Mutex<Vec<RunHeader>>,
    /// Held while runs are merged, so that one thread does it at a time.
    pub(crate) merging: Mutex<()>,
}

impl StateRuns {
    pub(crate) fn new(runs: Vec<RunHeader>) -> Self {
        Self {
            runs: Mutex::new(runs),
            merging: Mutex::default(),
        }
    }

    /// All runs, oldest first.
    pub(crate) fn all(&self) -> Vec<RunHeader> {
        self.lock().clone()
    }

    /// The last segment whose changes are in a run.
    pub(crate) fn covered_to(&self) -> u64 {
        self.lock().last().map_or(0, |run| run.to)
    }

    /// Takes in a run that is on disk and returns those that it replaces.
    pub(crate) fn add(&self, run: RunHeader) -> Vec<RunHeader> {
        let mut runs = self.lock();
        let (replaced, mut kept): (Vec<_>, Vec<_>) =
            runs.drain(..).partition(|known| run.covers(known));
        let at = kept.partition_point(|known| known.to < run.to);
        kept.insert(at, run);
        *runs = kept;
        replaced
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RunHeader>> {
        self.runs.guard()
    }
}

impl RunHeader {
    /// A run to be written for these segments.
    pub(crate) fn for_segments(from: u64, to: u64, next_topic_number: u32, log_id: u64) -> Self {
        Self {
            from,
            to,
            records: 0,
            bytes: 0,
            next_topic_number,
            log_id,
        }
    }

    /// Whether it holds all that another one holds.
    fn covers(&self, other: &Self) -> bool {
        self.from <= other.from && other.to <= self.to
    }

    /// Nothing came before it, so deletions need not be remembered in it.
    fn is_oldest(&self) -> bool {
        self.from <= 1
    }
}

/// Writes the whole state as one run, which replaces all others.
pub(crate) fn write_base<'a>(
    files: &dyn Files,
    header: RunHeader,
    topics: impl Iterator<Item = &'a TopicRecord>,
    keyed: impl Iterator<Item = StateRecord>,
) -> io::Result<RunHeader> {
    let mut writer = RunWriter::create(files, header)?;
    for topic in topics {
        writer.add(&StateRecord::TopicPut(topic.clone()))?;
    }
    for record in keyed {
        writer.add(&record)?;
    }
    writer.finish()
}

/// Removes the files of runs that another one replaces.
pub(crate) fn remove_replaced(
    files: &dyn Files,
    by: u64,
    replaced: &[RunHeader],
) -> io::Result<()> {
    let mut removed = false;
    for run in replaced.iter().filter(|run| run.to != by) {
        files.remove(&run_name(run.to))?;
        removed = true;
    }
    if removed { files.sync_names() } else { Ok(()) }
}

/// The name of the run that ends with a segment.
pub(crate) fn run_name(to: u64) -> String {
    format!("{to:016x}.state")
}

/// The last segment of the run that a file holds.
pub(crate) fn run_number_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".state")?;
    (digits.len() == 16).then(|| u64::from_str_radix(digits, 16).ok())?
}

/// Where a run that cannot be used is kept as it was found.
fn kept_name(to: u64) -> String {
    format!("damaged-{}.kept", run_name(to))
}
