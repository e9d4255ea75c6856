//! Runs of client ids: what is written is found again, damage is noticed, and merging keeps what segments hold.

use super::*;
use crate::files::fault::FaultFiles;
use proptest::prelude::*;

const LOG_ID: u64 = 7;

fn entries_of(hashes: &[(u64, u64)]) -> Vec<IdEntry> {
    let entries = hashes
        .iter()
        .map(|&(hash, segment)| IdEntry { hash, segment });
    let mut entries: Vec<IdEntry> = entries.collect();
    entries.sort_unstable();
    entries.dedup();
    entries
}

fn written(
    files: &FaultFiles,
    entries: &[IdEntry],
    limit_bytes: usize,
) -> (IdRun, Option<HugeBytes>) {
    let most = entries.len() as u64;
    let mut writer = RunWriter::create(files, LOG_ID, 10..=20, most, limit_bytes).unwrap();
    entries
        .iter()
        .for_each(|&entry| writer.push(entry).unwrap());
    let covered = Covered {
        number: 10,
        created_ms: 1,
        data_bytes: 2,
        generation: 3,
    };
    let (run, filter) = writer.finish(files, &[covered]).unwrap();
    assert_eq!(run.covered, [covered]);
    (run, filter)
}

fn found(run: &IdRun, hash: u64) -> Result<Vec<u64>, IndexError> {
    let mut segments = Vec::new();
    run.find(hash, &mut segments)?;
    Ok(segments)
}

/// Hashes of which some are equal, spread over more than one block.
fn hashes() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let few = prop::collection::vec((0..50u64, 10..=20u64), 0..40);
    let many = prop::collection::vec((any::<u64>(), 10..=20u64), 0..1500);
    (few, many).prop_map(|(few, many)| [few, many].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_entry_is_found_and_no_other(hashes in hashes(), other: u64, limit in 0..4000usize) {
        let files = FaultFiles::new();
        let entries = entries_of(&hashes);
        let (run, filter) = written(&files, &entries, limit);
        prop_assert_eq!(run.entries as usize, entries.len());
        let opened = IdRun::open(&files, run.name(), LOG_ID).unwrap();
        let loaded = opened.load_filter().unwrap();
        prop_assert_eq!(loaded.as_deref(), filter.as_deref());
        for hash in entries.iter().map(|entry| entry.hash).chain([other, 0, u64::MAX]) {
            let of_hash = entries.iter().filter(|entry| entry.hash == hash);
            let expected: Vec<u64> = of_hash.map(|entry| entry.segment).collect();
            prop_assert_eq!(found(&opened, hash).unwrap(), expected.clone());
            if let Some(filter) = &filter {
                prop_assert!(expected.is_empty() || filter::may_hold(filter, hash));
            }
        }
        let mut scan = Arc::new(opened).scan();
        let scanned = std::iter::from_fn(|| scan.next().unwrap());
        prop_assert!(scanned.eq(entries));
    }

    #[test]
    fn a_flipped_bit_never_hides_an_entry(hashes in hashes(), at: prop::sample::Index, bit in 0..8u8) {
        let files = FaultFiles::new();
        let entries = entries_of(&hashes);
        let (run, _) = written(&files, &entries, 4000);
        files.overwrite(run.name(), |bytes| {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
        }).unwrap();
        let Ok(damaged) = IdRun::open(&files, run.name(), LOG_ID) else {
            return Ok(());
        };
        for entry in &entries {
            if let Ok(segments) = found(&damaged, entry.hash) {
                prop_assert!(segments.contains(&entry.segment));
            }
        }
    }

    #[test]
    fn garbage_is_no_run(bytes: Vec<u8>) {
        let files = FaultFiles::new();
        let name = "000000000000000a-0000000000000014.ids";
        files.create(name).unwrap().write_at(&bytes, 0).unwrap();
        prop_assert!(IdRun::open(&files, name, LOG_ID).is_err());
    }
}

#[test]
fn a_run_of_another_log_or_name_is_no_run_of_this_one() {
    let files = FaultFiles::new();
    let (run, _) = written(&files, &entries_of(&[(1, 10), (2, 20)]), 4000);
    assert!(IdRun::open(&files, run.name(), LOG_ID + 1).is_err());
    assert!(IdRun::open(&files, "elsewhere.ids", LOG_ID).is_err());
}

#[test]
fn bytes_of_another_block_are_not_taken_for_a_block() {
    let files = FaultFiles::new();
    let hashes: Vec<(u64, u64)> = (1..=1000).map(|n| (n << 40, 10)).collect();
    let (run, _) = written(&files, &entries_of(&hashes), 0);
    files
        .overwrite(run.name(), |bytes| bytes.copy_within(4096..8192, 8192))
        .unwrap();
    let damaged = IdRun::open(&files, run.name(), LOG_ID).unwrap();
    assert!(found(&damaged, 1 << 40).is_ok());
    assert!(matches!(
        found(&damaged, 400 << 40),
        Err(IndexError::Damaged)
    ));
}
