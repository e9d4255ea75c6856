//! Merging runs, size-tiered: when enough neighbours of a tier have gathered at the newest end, they and all that are
//! newer become one. So a record is written again only about once for each tier.

use super::file::RunWriter;
use super::inspect::{CheckedRun, Listed};
use super::order::{StateKey, combine};
use super::{RunHeader, kept_name, run_name};
use crate::damage::{DamageList, read_whole, write_whole};
use crate::files::Files;
use crate::record::StateRecord;
use std::io;
use std::ops::Range;

/// So many runs of a tier are merged.
const RUNS_OF_A_TIER: usize = 8;
/// The runs of the first tier are smaller than this.
const FIRST_TIER_BYTES: u64 = 64 << 10;
/// The runs of a tier are smaller than those of the next by this factor.
const TIER_FACTOR: u64 = 8;

/// Neighbouring runs that become one.
pub(crate) struct Merging(Vec<RunHeader>);

impl Merging {
    /// The next merge that is due among the runs that end with this segment or before it.
    pub(crate) fn due(runs: &[RunHeader], up_to: u64) -> Option<Self> {
        let runs = &runs[..runs.partition_point(|run| run.to <= up_to)];
        let sizes: Vec<u64> = runs.iter().map(|run| run.bytes).collect();
        Some(Self(runs[plan(&sizes)?].to_vec()))
    }

    /// Writes the merged run, which takes the place of the newest of those that it is made of.
    pub(crate) fn write(&self, files: &dyn Files, damage: &DamageList) -> io::Result<RunHeader> {
        let (Some(first), Some(last)) = (self.0.first(), self.0.last()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let mut sources = Vec::with_capacity(self.0.len());
        for &header in &self.0 {
            let mut run = CheckedRun::open(files, Listed::sound(header))?;
            sources.push((run.next()?, run));
        }
        let mut writer = RunWriter::create(
            files,
            RunHeader {
                from: first.from,
                ..*last
            },
        )?;
        while let Some(key) = lowest_key(&sources) {
            let mut merged: Option<StateRecord> = None;
            for (head, run) in &mut sources {
                if let Some((_, record)) = head.take_if(|(next, _)| *next == key) {
                    merged = Some(match merged {
                        Some(older) => combine(older, record),
                        None => record,
                    });
                    *head = run.next()?;
                }
            }
            if let Some(record) = merged {
                writer.add(&record)?;
            }
        }
        for ((_, run), header) in sources.iter().zip(&self.0) {
            if !run.problems.is_empty() {
                let bytes = read_whole(files, &run_name(header.to))?;
                write_whole(files, &kept_name(header.to), &bytes)?;
            }
            for problem in &run.problems {
                damage.add_about_state(files, problem);
            }
        }
        writer.finish()
    }
}

fn lowest_key(sources: &[(Option<(StateKey, StateRecord)>, CheckedRun)]) -> Option<StateKey> {
    let heads = sources.iter().filter_map(|(head, _)| head.as_ref());
    heads.map(|(key, _)| key).min().cloned()
}

/// Which of the runs, oldest first, are to be merged: always a stretch that ends with the newest.
fn plan(sizes: &[u64]) -> Option<Range<usize>> {
    let highest = sizes.iter().map(|&bytes| tier(bytes)).max()?;
    (0..=highest).find_map(|wanted| {
        let newer = sizes
            .iter()
            .rev()
            .take_while(|&&bytes| tier(bytes) <= wanted);
        let start = sizes.len() - newer.clone().count();
        let of_tier = newer.filter(|&&bytes| tier(bytes) == wanted).count();
        (of_tier >= RUNS_OF_A_TIER).then_some(start..sizes.len())
    })
}

fn tier(bytes: u64) -> u32 {
    (bytes / FIRST_TIER_BYTES)
        .checked_ilog(TIER_FACTOR)
        .map_or(0, |tier| tier + 1)
}

#[cfg(test)]
mod tests;
