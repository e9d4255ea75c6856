//! How long a commit with `fsync` takes at a steady rate, beside the machine's own fdatasync in the same folder.

use crate::Outcome;
use crate::disk_probe::{fdatasync_millis, per_mille};
use crate::folder::remove;
use crate::log_work::{draft, make_topics, open_log, payloads, topic_at};
use crate::report::{Line, Unit};
use crate::sampling::Samples;
use crate::scale::Scale;
use crate::table::Bench;
use prombus_log::Commit;
use prombus_store::{Batch, Durability};
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

const PER_SECOND: u64 = 5_000;
/// Commits that wait for their answer.
const MAX_WAITING: usize = 1 << 16;
const SHARES: [(usize, &str); 3] = [(500, "p50"), (990, "p99"), (999, "p99.9")];

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let mut commits: [Samples; 3] = Default::default();
    let mut syncs: [Samples; 3] = Default::default();
    let time = Duration::from_millis(bench.scale.paced_events * 1_000 / PER_SECOND);
    for _ in 0..bench.scale.repeats {
        let path = bench.folder.fresh("latency");
        let of_commits = commit_millis(&path, &bench.scale)?;
        remove(&path)?;
        let of_syncs = fdatasync_millis(&bench.folder.fresh("probe"), time / 5)?;
        for (at, (share, _)) in SHARES.iter().enumerate() {
            commits[at].push(per_mille(&of_commits, *share));
            syncs[at].push(per_mille(&of_syncs, *share));
        }
    }
    let lines = SHARES.iter().zip(commits.into_iter().zip(syncs));
    Ok(lines
        .map(|((_, share), (commits, syncs))| {
            let what = format!("commit with fsync at {PER_SECOND}/s, {share}");
            Line::new(what, Unit::Millis, commits)
                .beside(format!("write and fdatasync of 4 KiB, {share}"), syncs)
        })
        .collect())
}

/// From the moment each event is due to its acknowledgement, sorted. The first fifth does not count: there the log
/// begins to write segments ahead.
fn commit_millis(path: &Path, scale: &Scale) -> Outcome<Vec<f64>> {
    let log = open_log(path, scale)?;
    let topic = topic_at(0);
    make_topics(&log, std::slice::from_ref(&topic), Durability::Fsync)?;
    let payloads = payloads();
    let (sender, receiver) = sync_channel::<(Instant, Commit)>(MAX_WAITING);
    let waiting = std::thread::spawn(move || -> Outcome<Vec<f64>> {
        let mut millis = Vec::new();
        for (due, commit) in receiver {
            commit.wait()?;
            millis.push(due.elapsed().as_secs_f64() * 1e3);
        }
        Ok(millis)
    });
    let pause = Duration::from_nanos(1_000_000_000 / PER_SECOND);
    let mut due = Instant::now();
    for (payload, _) in payloads.iter().cycle().zip(0..scale.paced_events) {
        due += pause;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let mut batch = Batch::new();
        batch.publish(&topic, &draft(payload));
        sender.send((due, log.append(&batch)))?;
    }
    drop(sender);
    let millis = waiting.join().map_err(|_| "the waiting thread ended")??;
    log.close()?;
    let mut counted = millis[millis.len() / 5..].to_vec();
    counted.sort_by(f64::total_cmp);
    Ok(counted)
}
