//! The disk must lose nothing that was synced, and must be able to lose anything else.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone)]
enum Step {
    Create(u8),
    Write { name: u8, at: u16, bytes: Vec<u8> },
    Truncate { name: u8, bytes: u16 },
    Sync(u8),
    Rename(u8, u8),
    Remove(u8),
    SyncNames,
    ProcessCrash,
}

/// What a file certainly holds: each byte that was synced and not touched since, and whether all of it was.
#[derive(Debug, Clone, Default)]
struct Certain {
    current: Vec<u8>,
    bytes: Vec<Option<u8>>,
    is_all_synced: bool,
}

impl Certain {
    fn write(&mut self, at: usize, bytes: &[u8]) {
        let end = at + bytes.len();
        self.current.resize(self.current.len().max(end), 0);
        self.bytes.resize(self.bytes.len().max(end), None);
        self.current[at..end].copy_from_slice(bytes);
        self.bytes[at..end].fill(None);
        self.is_all_synced = false;
    }

    fn truncate(&mut self, bytes: usize) {
        self.current.resize(bytes, 0);
        self.bytes.resize(bytes, None);
        self.is_all_synced = false;
    }

    fn sync(&mut self) {
        self.bytes = self.current.iter().copied().map(Some).collect();
        self.is_all_synced = true;
    }

    fn check(&self, found: &[u8]) -> Result<(), TestCaseError> {
        if self.is_all_synced {
            prop_assert_eq!(found, &self.current);
        }
        for (at, byte) in self.bytes.iter().enumerate() {
            if let Some(byte) = byte {
                prop_assert_eq!(found.get(at), Some(byte), "byte {}", at);
            }
        }
        Ok(())
    }
}

fn any_step() -> impl Strategy<Value = Step> {
    let name = || 0_u8..4;
    let write = (
        name(),
        0_u16..3_000,
        prop::collection::vec(1_u8.., 1..1_500),
    );
    prop_oneof![
        3 => name().prop_map(Step::Create),
        6 => write.prop_map(|(name, at, bytes)| Step::Write { name, at, bytes }),
        1 => (name(), 0_u16..4_000).prop_map(|(name, bytes)| Step::Truncate { name, bytes }),
        4 => name().prop_map(Step::Sync),
        1 => (name(), name()).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => name().prop_map(Step::Remove),
        3 => Just(Step::SyncNames),
        1 => Just(Step::ProcessCrash),
    ]
}

/// Runs the steps and returns the disk with the files as they are by name, and those names as of their last sync.
fn run(steps: &[Step]) -> (FaultFiles, BTreeMap<String, Certain>, Vec<BTreeSet<String>>) {
    let mut files = FaultFiles::new();
    let mut model: BTreeMap<String, Certain> = BTreeMap::new();
    let mut names_since_sync = vec![BTreeSet::new()];
    for step in steps {
        apply(step, &mut files, &mut model);
        let names = model.keys().cloned().collect();
        match step {
            Step::SyncNames => names_since_sync = vec![names],
            _ if names_since_sync.last() != Some(&names) => names_since_sync.push(names),
            _ => {}
        }
    }
    (files, model, names_since_sync)
}

fn apply(step: &Step, files: &mut FaultFiles, model: &mut BTreeMap<String, Certain>) {
    let called = |name: &u8| format!("file-{name}");
    match step {
        Step::Create(name) => {
            files.create(&called(name)).unwrap();
            model.entry(called(name)).or_default().truncate(0);
        }
        Step::Write { name, at, bytes } => {
            if let Some(certain) = model.get_mut(&called(name)) {
                let file = files.open(&called(name)).unwrap();
                file.write_at(bytes, u64::from(*at)).unwrap();
                certain.write(usize::from(*at), bytes);
            }
        }
        Step::Truncate { name, bytes } => {
            if let Some(certain) = model.get_mut(&called(name)) {
                let file = files.open(&called(name)).unwrap();
                file.truncate(u64::from(*bytes)).unwrap();
                certain.truncate(usize::from(*bytes));
            }
        }
        Step::Sync(name) => {
            if let Some(certain) = model.get_mut(&called(name)) {
                files.open(&called(name)).unwrap().sync().unwrap();
                certain.sync();
            }
        }
        Step::Rename(from, to) => {
            let result = files.rename(&called(from), &called(to));
            let moved = model.remove(&called(from));
            assert_eq!(result.is_ok(), moved.is_some());
            model.extend(moved.map(|certain| (called(to), certain)));
        }
        Step::Remove(name) => {
            let result = files.remove(&called(name));
            assert_eq!(result.is_ok(), model.remove(&called(name)).is_some());
        }
        Step::SyncNames => files.sync_names().unwrap(),
        Step::ProcessCrash => *files = files.process_crash(),
    }
}

proptest! {
    #[test]
    fn what_was_synced_is_there_after_a_crash(
        steps in prop::collection::vec(any_step(), 0..60),
        seed: u64,
    ) {
        let (files, model, names_since_sync) = run(&steps);
        for (name, certain) in &model {
            prop_assert_eq!(&files.bytes_of(name).unwrap(), &certain.current);
        }
        let after = files.crash(seed);
        let names: BTreeSet<String> = after.list().unwrap().into_iter().collect();
        prop_assert!(names_since_sync.contains(&names), "{names:?} of {names_since_sync:?}");
        if names_since_sync.len() == 1 {
            for (name, certain) in &model {
                certain.check(&after.bytes_of(name).unwrap())?;
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_disk(
        steps in prop::collection::vec(any_step(), 0..40),
        seed: u64,
    ) {
        let look = || {
            let after = run(&steps).0.crash(seed);
            let names = after.list().unwrap();
            names.into_iter().map(|name| (after.bytes_of(&name).unwrap(), name)).collect::<Vec<_>>()
        };
        prop_assert_eq!(look(), look());
    }
}

/// A synced file "a" of 600 bytes of 1.
fn synced_file() -> (FaultFiles, Arc<dyn File>) {
    let files = FaultFiles::new();
    let file = files.create("a").unwrap();
    file.write_at(&[1; 600], 0).unwrap();
    file.sync().unwrap();
    files.sync_names().unwrap();
    (files, file)
}

#[test]
fn every_kind_of_loss_happens() {
    let (mut lost, mut kept, mut torn, mut hole) = (0, 0, 0, 0);
    for seed in 0..400 {
        let (files, file) = synced_file();
        file.write_at(&[2; 2_000], 600).unwrap();
        file.write_at(&[3; 1_000], 2_600).unwrap();
        let after = files.crash(seed).bytes_of("a").unwrap();
        assert_eq!(after[..600], [1; 600]);
        let new = &after[600..];
        let first_zero = new.iter().position(|&byte| byte == 0);
        let is_hole = first_zero.is_some_and(|at| new[at..].iter().any(|&byte| byte != 0));
        // Zeros begin where a sector does or where one of the writes did.
        assert!(first_zero.is_none_or(|at| (600 + at) % 512 == 0 || at == 0 || at == 2_000));
        lost += usize::from(new.is_empty());
        kept += usize::from(new.len() == 3_000 && first_zero.is_none());
        torn += usize::from(!matches!(new.len(), 0 | 2_000 | 3_000) && first_zero.is_none());
        hole += usize::from(is_hole);
    }
    for count in [lost, kept, torn, hole] {
        assert!(
            count >= 20,
            "{lost} lost, {kept} kept, {torn} torn, {hole} with a hole"
        );
    }
}

#[test]
fn names_survive_in_their_order() {
    let mut seen = BTreeSet::new();
    for seed in 0..50 {
        let (files, _) = synced_file();
        let new = files.create("b").unwrap();
        new.write_at(b"new", 0).unwrap();
        new.sync().unwrap();
        files.rename("b", "a").unwrap();
        files.create("c").unwrap();
        let after = files.crash(seed);
        let names = after.list().unwrap().concat();
        let is_new = after.bytes_of("a").unwrap() == b"new";
        seen.insert((names, is_new));
    }
    let expected = [("a", false), ("a", true), ("ab", false), ("ac", true)];
    assert_eq!(
        seen,
        expected
            .map(|(names, is_new)| (names.to_owned(), is_new))
            .into()
    );
}

#[test]
fn a_failed_sync_leaves_its_data_in_doubt_for_good() {
    let mut lengths = BTreeSet::new();
    for seed in 0..50 {
        let (files, file) = synced_file();
        files.fail_sync_after(2);
        file.sync().unwrap();
        file.write_at(&[2; 100], 600).unwrap();
        assert_eq!(file.sync().unwrap_err().raw_os_error(), Some(5));
        file.sync().unwrap();
        file.write_at(&[3; 100], 500).unwrap();
        file.sync().unwrap();
        let after = files.process_crash().crash(seed).bytes_of("a").unwrap();
        assert_eq!(after[500..600], [3; 100]);
        lengths.insert(after.len());
    }
    assert!(lengths.contains(&600) && lengths.contains(&700) && lengths.len() > 2);
}

#[test]
fn a_failed_sync_of_names_leaves_them_in_doubt() {
    let counts = (0..50).map(|seed| {
        let (files, _) = synced_file();
        files.create("b").unwrap();
        files.fail_sync_after(1);
        files.sync_names().unwrap_err();
        files.sync_names().unwrap();
        assert_eq!(files.syncs(), 4);
        files.crash(seed).list().unwrap().len()
    });
    assert_eq!(counts.collect::<BTreeSet<_>>(), BTreeSet::from([1, 2]));
}

#[test]
fn a_failed_write_leaves_a_prefix() {
    let (files, file) = synced_file();
    files.fail_write_after(2);
    file.write_at(&[2; 10], 600).unwrap();
    assert_eq!(
        file.write_at(&[3; 100], 610).unwrap_err().raw_os_error(),
        Some(5)
    );
    let after = files.bytes_of("a").unwrap();
    assert!(after.len() < 710);
    assert!(after[610..].iter().all(|&byte| byte == 3));
    file.write_at(&[4; 100], 610).unwrap();
    assert_eq!(files.writes(), 4);
}

#[test]
fn a_full_disk_takes_what_fits() {
    let (files, file) = synced_file();
    files.set_space(700);
    let full = file.write_at(&[2; 200], 550).unwrap_err();
    assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    assert_eq!(files.total_bytes(), 700);
    file.write_at(&[3; 700], 0).unwrap();
    assert_eq!(
        file.truncate(701).unwrap_err().kind(),
        io::ErrorKind::StorageFull
    );
    let other = files.create("b").unwrap();
    other.write_at(b"x", 0).unwrap_err();
    file.truncate(600).unwrap();
    other.write_at(b"x", 0).unwrap();
    files.clear_faults();
    other.write_at(&[4; 5_000], 0).unwrap();
}

#[test]
fn after_a_crash_the_old_folder_is_dead_and_the_lock_free() {
    type End = fn(&FaultFiles) -> FaultFiles;
    let ends: [End; 2] = [|files| files.crash(1), FaultFiles::process_crash];
    for end in ends {
        let (files, file) = synced_file();
        files.lock().unwrap();
        let other = files.another_handle();
        assert_eq!(other.lock().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let after = end(&files);
        assert!(files.list().is_err() && files.lock().is_err() && other.list().is_err());
        assert!(file.read_at(&mut [0], 0).is_err() && file.write_at(b"late", 0).is_err());
        assert!(file.sync().is_err() && files.create("b").is_err() && files.sync_names().is_err());
        after.lock().unwrap();
        assert_eq!(after.bytes_of("a").unwrap(), [1; 600]);
    }
}

#[test]
fn the_lock_ends_with_its_handle() {
    let files = FaultFiles::new();
    let other = files.another_handle();
    other.lock().unwrap();
    other.lock().unwrap();
    files.lock().unwrap_err();
    drop(other);
    files.lock().unwrap();
}

#[test]
fn stop_after_counts_changes_and_keeps_what_came_before() {
    let (files, file) = synced_file();
    files.stop_after(2);
    file.write_at(&[2; 10], 600).unwrap();
    file.sync().unwrap();
    assert_eq!(file.bytes().unwrap(), 610);
    file.write_at(&[3; 10], 610).unwrap_err();
    file.bytes().unwrap_err();
    assert_eq!(files.crash(7).bytes_of("a").unwrap().len(), 610);
}

#[test]
fn copies_and_overwrites_are_durable_and_apart() {
    let (files, file) = synced_file();
    file.write_at(&[2; 10], 600).unwrap();
    let copy = files.copy();
    copy.overwrite("a", |bytes| bytes[0] ^= 1).unwrap();
    assert_eq!(files.bytes_of("a").unwrap()[0], 1);
    let after = copy.crash(3).bytes_of("a").unwrap();
    assert_eq!((after[0], after.len()), (0, 610));
    assert!(files.overwrite("b", |_| {}).is_err());
}

#[test]
fn a_removed_file_can_still_be_read() {
    let (files, file) = synced_file();
    files.remove("a").unwrap();
    files.sync_names().unwrap();
    assert_eq!(file.read_at(&mut [0; 700], 0).unwrap(), 600);
    assert_eq!(files.total_bytes(), 0);
}
