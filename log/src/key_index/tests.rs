//! Tables of names against a sorted map.

use super::block::DamagedBlock;
use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;

type OwnedName = (u8, u32, Vec<u8>);
type Model = BTreeMap<OwnedName, (u64, u32)>;

fn reference((space, topic, name): &OwnedName) -> KeyRef<'_> {
    KeyRef {
        space: *space,
        topic: *topic,
        name,
    }
}

fn table_of(model: &Model) -> KeyTable {
    build(
        model
            .iter()
            .map(|(name, &(seq, offset))| (reference(name), KeyEntry { seq, offset })),
    )
}

fn slice(table: &KeyTable, range: Range<u32>) -> &[u8] {
    &table.blocks[range.start as usize..range.end as usize]
}

fn look_up(table: &KeyTable, name: &KeyRef<'_>) -> Option<(u64, u32)> {
    let block = slice(table, block_for(&table.fences, name)?);
    let found = find_in(block, name).unwrap()?;
    Some((found.seq, found.offset))
}

/// Everything in the blocks from the one that may hold `name` on.
fn collect_from(table: &KeyTable, name: &KeyRef<'_>) -> Vec<(OwnedName, (u64, u32))> {
    blocks_from(&table.fences, name)
        .flat_map(|range| entries(slice(table, range)).unwrap())
        .map(|(name, entry)| {
            let name = (name.space, name.topic, name.name.to_vec());
            (name, (entry.seq, entry.offset))
        })
        .collect()
}

fn any_name() -> impl Strategy<Value = OwnedName> {
    let short = prop::collection::vec(0_u8..4, 0..4);
    let usual = prop::collection::vec(any::<u8>(), 0..80);
    let long = (any::<u8>(), 4_000_usize..9_000).prop_map(|(byte, length)| vec![byte; length]);
    let topic = prop_oneof![0_u32..4, any::<u32>()];
    (
        0_u8..2,
        topic,
        prop_oneof![4 => short, 8 => usual, 1 => long],
    )
}

fn any_model() -> impl Strategy<Value = Model> {
    prop::collection::btree_map(any_name(), any::<(u64, u32)>(), 0..300)
}

proptest! {
    #[test]
    fn found_if_and_only_if_put_in(model in any_model(), others in prop::collection::vec(any_name(), 50)) {
        let table = table_of(&model);
        for name in model.keys().chain(&others) {
            let name_ref = reference(name);
            prop_assert_eq!(look_up(&table, &name_ref), model.get(name).copied());
            if model.contains_key(name) {
                prop_assert!(filter::may_hold(&table.filter, hash(&name_ref)));
            }
        }
    }

    #[test]
    fn iterating_gives_the_input_again(model in any_model(), from in any_name()) {
        let table = table_of(&model);
        let least = (0, 0, Vec::new());
        let all: Vec<_> = model.clone().into_iter().collect();
        prop_assert_eq!(&collect_from(&table, &reference(&least)), &all);

        let mut behind = collect_from(&table, &reference(&from));
        // Only the first block may reach back before the name that was asked for.
        let within_first = behind.partition_point(|(name, _)| *name < from);
        behind.drain(..within_first);
        prop_assert_eq!(behind, model.range(from..).map(|(name, at)| (name.clone(), *at)).collect::<Vec<_>>());
    }

    #[test]
    fn any_flipped_bit_is_noticed(model in any_model(), place: prop::sample::Index, bit in 0..8_u8) {
        prop_assume!(!model.is_empty());
        let table = table_of(&model);
        let least = (0, 0, Vec::new());
        let range = blocks_from(&table.fences, &reference(&least)).last().unwrap();
        let mut block = slice(&table, range).to_vec();
        let at = place.index(block.len());
        block[at] ^= 1 << bit;
        prop_assert!(entries(&block).is_err());
        prop_assert_eq!(find_in(&block, &reference(&least)), Err(DamagedBlock));
    }

    #[test]
    fn garbage_never_panics(
        model in any_model(),
        name in any_name(),
        noise in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        cut: prop::sample::Index,
    ) {
        let KeyTable { mut blocks, mut fences, .. } = table_of(&model);
        for bytes in [&mut blocks, &mut fences] {
            if bytes.is_empty() {
                continue;
            }
            for (place, byte) in &noise {
                let at = place.index(bytes.len());
                bytes[at] = *byte;
            }
            bytes.truncate(cut.index(bytes.len() + 1));
        }
        let name = reference(&name);
        let _ = block_for(&fences, &name);
        blocks_from(&fences, &name).for_each(drop);
        // With a checksum that holds, the structure alone must keep readers from panicking.
        if blocks.len() >= 4 {
            let checksum = xxhash_rust::xxh3::xxh3_64(&blocks[4..]) as u32;
            blocks[..4].copy_from_slice(&checksum.to_le_bytes());
        }
        let _ = find_in(&blocks, &name);
        if let Ok(entries) = entries(&blocks) {
            entries.for_each(drop);
        }
    }
}

#[test]
fn a_table_of_nothing_is_nothing() {
    let table = table_of(&Model::new());
    assert!(table.blocks.is_empty() && table.fences.is_empty() && table.filter.is_empty());
    assert_eq!(look_up(&table, &reference(&(0, 0, Vec::new()))), None);
}

#[test]
fn every_flipped_bit_of_a_block_is_noticed() {
    let model = (0..20_u64).map(|number| {
        let name = format!("order-{number:04}").into_bytes();
        ((1, 7, name), (number, number as u32))
    });
    let table = table_of(&model.collect());
    let mut block = table.blocks;
    for bit in 0..block.len() * 8 {
        block[bit / 8] ^= 1 << (bit % 8);
        assert!(entries(&block).is_err(), "bit {bit}");
        block[bit / 8] ^= 1 << (bit % 8);
    }
    assert_eq!(entries(&block).unwrap().count(), 20);
}

#[test]
fn blocks_stay_near_four_kibibytes() {
    let model = (0..10_000_u64).map(|number| {
        let name = format!("{number:036}").into_bytes();
        ((0, 1, name), (number, 0))
    });
    let table = table_of(&model.collect());
    let least = (0, 0, Vec::new());
    let lengths: Vec<usize> = blocks_from(&table.fences, &reference(&least))
        .map(|range| range.len())
        .collect();
    assert!(lengths.iter().all(|&length| length <= 4096));
    assert!(
        lengths[..lengths.len() - 1]
            .iter()
            .all(|&length| length > 4000)
    );
    assert_eq!(lengths.iter().sum::<usize>(), table.blocks.len());
}
