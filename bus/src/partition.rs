//! Partitions: which one an event belongs to, and which member of a group each one is assigned to.
//!
//! Both are plain functions of their input, so that every node, and every client that cares to, comes to the same result:
//! the partition of a key is the jump consistent hash (Lamping and Veach) of its FNV-1a hash, and a partition goes to the
//! member with the highest mixed hash of the two (rendezvous hashing). When a member comes or goes, only partitions that
//! it gets or had move.

use prombus_store::{Draft, StoredEvent};
use std::collections::BTreeSet;

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;
/// The multiplier of the generator that jump consistent hashing draws from.
const JUMP_MULTIPLIER: u64 = 2_862_933_555_777_941_757;

/// The partition of a key, or of an id where an event has no key.
pub fn partition_of(key: &str, partitions: u32) -> u32 {
    jump(fnv1a(FNV_OFFSET, key.as_bytes()), partitions)
}

/// The partition of an event that has neither a key nor an id of its publisher's: these are spread evenly, by a number
/// that no two of them share.
fn spread(number: u64, partitions: u32) -> u32 {
    jump(mix(number), partitions)
}

/// The partition that an event is published in, where its topic has so many. `number` is one that no other event has.
pub(crate) fn partition_of_draft(
    draft: &Draft<'_>,
    partitions: Option<u32>,
    number: impl FnOnce() -> u64,
) -> Option<u32> {
    let partitions = partitions?;
    Some(match (draft.key, &draft.id) {
        (Some(key), _) => partition_of(key, partitions),
        (None, Some(id)) => partition_of(id.as_str(), partitions),
        (None, None) => spread(number(), partitions),
    })
}

/// The partition that a stored event was given, or what it would be given now where its topic had none.
pub(crate) fn partition_of_event(event: &StoredEvent, partitions: u32) -> u32 {
    event.partition().unwrap_or_else(|| match event.key() {
        Some(key) => partition_of(&key, partitions),
        None => partition_of(&event.id(), partitions),
    })
}

/// Some of the partitions of a topic.
#[derive(Debug, Clone)]
pub(crate) struct PartitionSet {
    wanted: BTreeSet<u32>,
    /// How many there are.
    count: u32,
}

impl PartitionSet {
    pub(crate) fn new(wanted: &[u32], count: u32) -> Self {
        Self {
            wanted: wanted.iter().copied().collect(),
            count,
        }
    }

    pub(crate) fn holds_key(&self, key: &str) -> bool {
        self.wanted.contains(&partition_of(key, self.count))
    }

    pub(crate) fn holds(&self, event: &StoredEvent) -> bool {
        let partition = partition_of_event(event, self.count);
        self.wanted.contains(&(partition % self.count))
    }
}

/// Which of the members, by their names, each partition goes to; nothing where there are none. Of members that share a
/// name each counts for itself, in their order.
pub(crate) fn assign<'a>(
    partitions: u32,
    members: impl Iterator<Item = &'a str>,
) -> Vec<Option<usize>> {
    let mut seeds: Vec<u64> = Vec::new();
    for name in members {
        let mut seed = fnv1a(FNV_OFFSET, name.as_bytes());
        while seeds.contains(&seed) {
            seed = mix(seed);
        }
        seeds.push(seed);
    }
    let best = |partition: u32| {
        let members = 0..seeds.len();
        members.max_by_key(|&at| mix(seeds[at] ^ mix(u64::from(partition) + 1)))
    };
    (0..partitions).map(best).collect()
}

fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME);
    bytes.iter().fold(hash, add)
}

/// Spreads a number over all bits, as splitmix64 does.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Whether it is over is decided before a float is made an integer, which halves the time: the conversion then neither has to
/// saturate nor is waited for at the end.
fn jump(mut hash: u64, buckets: u32) -> u32 {
    let mut bucket = 0_i64;
    loop {
        hash = hash.wrapping_mul(JUMP_MULTIPLIER).wrapping_add(1);
        // Of 31 bits, so that it is exact, and converted by an instruction.
        let draw = (hash >> 33) as u32 + 1;
        let scale = f64::from(1_u32 << 31) / f64::from(draw);
        let next = (bucket + 1) as f64 * scale;
        if next >= f64::from(buckets) {
            return bucket as u32;
        }
        bucket = next as i64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|at| format!("worker-{at}")).collect()
    }

    fn assigned(partitions: u32, members: &[String]) -> Vec<Option<usize>> {
        assign(partitions, members.iter().map(String::as_str))
    }

    #[test]
    fn keys_have_the_partitions_that_the_documentation_says() {
        let keys = ["", "a", "order-1", "order-2", "käse"];
        let partitions = keys.map(|key| partition_of(key, 64));
        assert_eq!(partitions, [17, 31, 59, 45, 11], "these never change");
        assert_eq!(partition_of("anything", 1), 0);
    }

    #[test]
    fn keys_spread_evenly() {
        let mut counts = [0_u32; 16];
        for number in 0..16_000 {
            counts[partition_of(&format!("key-{number}"), 16) as usize] += 1;
        }
        assert!(
            counts.iter().all(|count| (800..1_200).contains(count)),
            "{counts:?}"
        );
        let mut counts = [0_u32; 16];
        for number in 0..16_000 {
            counts[spread(number, 16) as usize] += 1;
        }
        assert!(
            counts.iter().all(|count| (800..1_200).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn one_more_partition_moves_its_share_of_keys_and_to_it_alone() {
        for before in [1_u32, 4, 31, 64] {
            let after = before + 1;
            let mut moved = 0_u32;
            for number in 0..20_000 {
                let key = format!("key-{number}");
                let (old, new) = (partition_of(&key, before), partition_of(&key, after));
                assert!(
                    old == new || new == before,
                    "{key} moved from {old} to {new}"
                );
                moved += u32::from(old != new);
            }
            let share = 20_000 / after;
            assert!(
                moved < share + share / 5,
                "{moved} of 20000 moved, a share is {share}"
            );
        }
    }

    #[test]
    fn members_get_about_the_same_number() {
        let mut counts = [0_u32; 8];
        for holder in assigned(1_024, &names(8)).into_iter().flatten() {
            counts[holder] += 1;
        }
        assert!(
            counts.iter().all(|count| (90..170).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn members_of_one_name_share() {
        let members = vec!["same".to_owned(), "same".to_owned()];
        let held = assigned(64, &members);
        let first = held.iter().filter(|holder| **holder == Some(0)).count();
        assert!((16..48).contains(&first), "{first} of 64");
    }

    proptest! {
        #[test]
        fn only_what_must_move_moves(partitions in 1..200_u32, count in 0..12_usize, leaver in any::<prop::sample::Index>()) {
            let before = names(count);
            let held = assigned(partitions, &before);
            prop_assert!(held.iter().all(|holder| holder.is_some() == (count > 0)));
            // One comes: what moves, moves to it.
            let after = assigned(partitions, &names(count + 1));
            for (old, new) in held.iter().zip(&after) {
                prop_assert!(old == new || *new == Some(count));
            }
            // One goes: what it did not have stays.
            if count > 0 {
                let gone = leaver.index(count);
                let mut rest = before.clone();
                rest.remove(gone);
                let left = assigned(partitions, &rest);
                for (old, new) in held.iter().zip(&left) {
                    let name = |members: &[String], at: &Option<usize>| at.map(|at| members[at].clone());
                    prop_assert!(*old == Some(gone) || name(&before, old) == name(&rest, new));
                }
            }
        }

        #[test]
        fn a_partition_is_below_their_number(key in ".{0,20}", partitions in 1..2_000_u32, number: u64) {
            prop_assert!(partition_of(&key, partitions) < partitions);
            prop_assert!(spread(number, partitions) < partitions);
        }
    }
}
