//! Reading the runs when a log is opened. What is wrong with them is noted, and the files that it was found in are kept.

use super::inspect::{CheckedRun, Folder, missing};
use super::{RunHeader, kept_name, run_name};
use crate::damage::{DamageList, read_whole, write_whole};
use crate::files::Files;
use crate::record::StateRecord;
use std::collections::HashSet;
use std::io;
use std::ops::Range;

/// What the runs of a log said beside their records.
#[derive(Default)]
pub(crate) struct LoadedRuns {
    /// Oldest first.
    pub(crate) runs: Vec<RunHeader>,
    /// The last segment whose changes are in them.
    pub(crate) covered_to: u64,
    pub(crate) next_topic_number: u32,
    pub(crate) log_id: Option<u64>,
    /// Something of them is damaged or missing, so they have to be written anew.
    pub(crate) is_incomplete: bool,
    lost_topics: Vec<(u32, u32)>,
    deleted: HashSet<u32>,
}

/// Reads all runs, oldest first, and hands their records on.
pub(crate) fn load(
    files: &dyn Files,
    log_id: Option<u64>,
    damage: &DamageList,
    mut apply: impl FnMut(StateRecord),
) -> io::Result<LoadedRuns> {
    let folder = Folder::look(files, log_id)?;
    let mut loaded = LoadedRuns {
        is_incomplete: !folder.problems.is_empty(),
        ..LoadedRuns::default()
    };
    let mut problems = folder.problems;
    if loaded.is_incomplete {
        loaded.lost_topics.push((0, u32::MAX));
    }
    for number in folder.foreign {
        files.rename(&run_name(number), &kept_name(number))?;
        files.sync_names()?;
    }
    for number in folder.replaced {
        files.remove(&run_name(number))?;
    }
    for listed in folder.runs {
        let mut run = CheckedRun::open(files, listed)?;
        while let Some((_, record)) = run.next()? {
            if let StateRecord::TopicDelete { number } = record {
                loaded.deleted.insert(number);
            }
            apply(record);
        }
        let header = listed.header;
        if !run.problems.is_empty() {
            let name = run_name(header.to);
            write_whole(files, &kept_name(header.to), &read_whole(files, &name)?)?;
            loaded.is_incomplete = true;
        }
        problems.append(&mut run.problems);
        loaded.lost_topics.append(&mut run.lost_topics);
        loaded.next_topic_number = loaded.next_topic_number.max(header.next_topic_number);
        loaded.covered_to = header.to;
        loaded.log_id = loaded.log_id.or(Some(header.log_id).filter(|&id| id != 0));
        loaded.runs.push(header);
    }
    for problem in &problems {
        damage.add_about_state(files, problem);
    }
    Ok(loaded)
}

impl LoadedRuns {
    /// Notes that the changes of these segments are in no run.
    pub(crate) fn note_missing(files: &dyn Files, damage: &DamageList, segments: Range<u64>) {
        damage.add_about_state(files, &missing(segments));
    }

    /// Whether the record of a topic that is in none of the runs may have been in what is lost of them.
    pub(crate) fn may_have_lost(&self, topic: u32) -> bool {
        let is_between = |(low, high): &(u32, u32)| *low < topic && topic < *high;
        !self.deleted.contains(&topic) && self.lost_topics.iter().any(is_between)
    }
}
