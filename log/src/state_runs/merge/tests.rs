//! Merged runs say the same as all records in their order.

use super::super::changes::NetChanges;
use super::super::{StateRuns, load, remove_replaced};
use super::*;
use crate::files::fault::FaultFiles;
use crate::record::{LAST_OF_BATCH, TopicRecord};
use crate::segment::HEADER_BYTES;
use crate::writer::segment_start;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

const LOG_ID: u64 = 7;

/// What the records of a segment say, in the order they were written.
fn record() -> impl Strategy<Value = StateRecord> {
    let topic = |number: u32, next_seq: u64| TopicRecord {
        number,
        name: format!("t{number}").into(),
        options: Arc::default(),
        next_seq,
        first_seq: 1,
        last_ts: next_seq,
    };
    prop_oneof![
        (0..6u8, any::<u64>(), any::<u8>()).prop_map(|(key, version, value)| {
            StateRecord::KeyedPut {
                key: format!("k{key}").into(),
                version,
                value: vec![value; usize::from(value)].into(),
            }
        }),
        (0..6u8).prop_map(|key| StateRecord::KeyedDelete {
            key: format!("k{key}").into(),
        }),
        (1..5u32, 1..50u64)
            .prop_map(move |(number, next_seq)| StateRecord::TopicPut(topic(number, next_seq))),
        (1..5u32, 1..60u64).prop_map(|(number, first_seq)| StateRecord::Trim { number, first_seq }),
    ]
}

/// The state as maps.
#[derive(Debug, Default, PartialEq, Eq)]
struct Model {
    keyed: BTreeMap<String, (u64, Vec<u8>)>,
    topics: BTreeMap<u32, [u64; 3]>,
}

impl Model {
    fn apply(&mut self, record: StateRecord) {
        match record {
            StateRecord::KeyedPut {
                key,
                version,
                value,
            } => {
                self.keyed
                    .insert(key.to_string(), (version, value.to_vec()));
            }
            StateRecord::KeyedDelete { key } => {
                self.keyed.remove(&*key);
            }
            StateRecord::TopicPut(topic) => {
                let known = self.topics.entry(topic.number).or_default();
                advance(known, [topic.next_seq, topic.first_seq, topic.last_ts]);
            }
            StateRecord::Trim { number, first_seq } => {
                self.progress(number, [first_seq, first_seq, 0]);
            }
            StateRecord::TopicProgress {
                number,
                next_seq,
                first_seq,
                last_ts,
            } => self.progress(number, [next_seq, first_seq, last_ts]),
            other => panic!("{other:?}"),
        }
    }

    fn progress(&mut self, number: u32, numbers: [u64; 3]) {
        if let Some(known) = self.topics.get_mut(&number) {
            advance(known, numbers);
        }
    }
}

fn advance(known: &mut [u64; 3], numbers: [u64; 3]) {
    for (known, number) in known.iter_mut().zip(numbers) {
        *known = (*known).max(number);
    }
}

/// A segment of these records.
fn segment(files: &FaultFiles, records: &[StateRecord]) -> std::sync::Arc<dyn crate::files::File> {
    let mut bytes = vec![0; HEADER_BYTES as usize];
    bytes.extend_from_slice(&segment_start(1, LOG_ID));
    for record in records {
        record.write(&mut bytes, LAST_OF_BATCH);
    }
    let file = files.create("segment").expect("a file");
    file.write_at(&bytes, 0).expect("it is written");
    file
}

proptest! {
    #[test]
    fn merged_runs_say_what_the_records_said(
        made in prop::collection::vec(prop::collection::vec(record(), 0..20), 1..14),
        merges in prop::collection::vec(any::<bool>(), 14),
    ) {
        let files = FaultFiles::new();
        let (runs, damage) = (StateRuns::default(), DamageList::default());
        let mut model = Model::default();
        // Topics are made before they are trimmed.
        let first: Vec<StateRecord> = (1..5).map(|number| StateRecord::TopicPut(TopicRecord {
            number, name: format!("t{number}").into(), options: Arc::default(),
            next_seq: 1, first_seq: 1, last_ts: 0,
        })).collect();
        for (number, records) in (1..).zip([first].into_iter().chain(made.clone())) {
            let changes = NetChanges::of_segment(&segment(&files, &records), LOG_ID, &|_| ()).expect("a scan");
            changes.write(&files, &runs, number, LOG_ID).expect("a run");
            records.into_iter().for_each(|record| model.apply(record));
            let merging = Merging::due(&runs.all(), number);
            if let Some(merging) = merging.filter(|_| merges[number as usize % 14]) {
                let merged = merging.write(&files, &damage).expect("a merged run");
                let replaced = runs.add(merged);
                remove_replaced(&files, merged.to, &replaced).expect("they are removed");
            }
        }
        let mut loaded = Model::default();
        let found = load(&files, Some(LOG_ID), &damage, |record| loaded.apply(record)).expect("the runs");
        prop_assert_eq!(damage.all(), Vec::<String>::new());
        prop_assert_eq!(found.covered_to, made.len() as u64 + 1);
        prop_assert_eq!(found.runs, runs.all());
        prop_assert_eq!(loaded, model);
    }
}

#[test]
fn small_runs_are_merged_without_touching_the_large_ones() {
    const MIB: u64 = 1 << 20;
    const SMALL: u64 = 64;
    let tier = RUNS_OF_A_TIER;
    let behind = |older: &[u64], small: usize| [older, &vec![SMALL; small]].concat();
    assert_eq!(plan(&[]), None);
    assert_eq!(plan(&behind(&[], tier - 1)), None);
    assert_eq!(plan(&behind(&[], tier)), Some(0..tier));
    assert_eq!(plan(&behind(&[30 * MIB, MIB], tier - 1)), None);
    assert_eq!(plan(&behind(&[30 * MIB, MIB], tier)), Some(2..tier + 2));
    // Those of the next tier take the smaller ones between them along.
    let mixed = [
        &[30 * MIB][..],
        &vec![MIB; tier / 2],
        &[SMALL],
        &vec![MIB; tier / 2],
        &[SMALL],
    ];
    assert_eq!(plan(&mixed.concat()), Some(1..tier + 3));
    // A larger one in between is not passed over.
    let cut = [&vec![SMALL; tier - 1][..], &[30 * MIB, SMALL]];
    assert_eq!(plan(&cut.concat()), None);
}

#[test]
fn runs_that_are_added_meanwhile_wait_for_the_next_time() {
    let tier = RUNS_OF_A_TIER as u64;
    let runs = StateRuns::default();
    let add = |from: u64, to: u64| {
        runs.add(RunHeader::for_segments(from, to, 1, LOG_ID));
    };
    (1..=tier).for_each(|number| add(number, number));
    let up_to = runs.covered_to();
    assert!(Merging::due(&runs.all(), up_to).is_some());
    // What the merge comes to, and what was sealed while it was written.
    add(1, tier);
    (tier + 1..=3 * tier).for_each(|number| add(number, number));
    assert!(Merging::due(&runs.all(), up_to).is_none());
    assert!(Merging::due(&runs.all(), runs.covered_to()).is_some());
}
