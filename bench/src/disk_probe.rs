//! The machine's own fdatasync, beside which latencies are to be read: 4 KiB and a sync at a time, into a file that was
//! written before, so that nothing but those bytes has to reach the disk.

use crate::Outcome;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

const BLOCK_BYTES: usize = 4 << 10;
const FILE_BLOCKS: u64 = 1_024;
/// Between two syncs, as a log has it that is not saturated.
const PAUSE: Duration = Duration::from_millis(1);

/// How long each of the syncs took in that time, in milliseconds, sorted. The file is removed.
pub fn fdatasync_millis(path: &Path, time: Duration) -> Outcome<Vec<f64>> {
    let block = [7; BLOCK_BYTES];
    let file = File::create_new(path)?;
    for at in 0..FILE_BLOCKS {
        file.write_all_at(&block, at * BLOCK_BYTES as u64)?;
    }
    file.sync_all()?;
    let mut millis = Vec::new();
    let begun = Instant::now();
    for at in (0..FILE_BLOCKS).cycle() {
        let started = Instant::now();
        if started.duration_since(begun) >= time {
            break;
        }
        file.write_all_at(&block, at * BLOCK_BYTES as u64)?;
        file.sync_data()?;
        millis.push(started.elapsed().as_secs_f64() * 1e3);
        std::thread::sleep(PAUSE);
    }
    std::fs::remove_file(path)?;
    millis.sort_by(f64::total_cmp);
    Ok(millis)
}

/// The value below which so many of a thousand sorted samples lie.
pub fn per_mille(sorted: &[f64], share: usize) -> f64 {
    let at = (sorted.len() * share).div_ceil(1_000).max(1) - 1;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syncs_are_timed_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("probe");
        let millis = fdatasync_millis(&path, Duration::from_millis(20)).unwrap();
        assert!(!millis.is_empty() && millis.is_sorted());
        assert!(!path.exists());
    }

    #[test]
    fn shares_are_those_of_the_nearest_rank() {
        let sorted: Vec<f64> = (1..=1_000).map(f64::from).collect();
        assert_eq!(per_mille(&sorted, 500), 500.0);
        assert_eq!(per_mille(&sorted, 990), 990.0);
        assert_eq!(per_mille(&sorted, 999), 999.0);
        assert_eq!(per_mille(&[7.0], 500), 7.0);
        assert!(per_mille(&[], 500).is_nan());
    }
}
