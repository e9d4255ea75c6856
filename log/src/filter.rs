//! A blocked Bloom filter as plain bytes: it says "certainly not here" for nearly every name a segment does not hold,
//! at the price of one cache line. There is no head; the number of blocks follows from the length.

mod huge_bytes;

pub(crate) use huge_bytes::HugeBytes;

const BLOCK_BYTES: usize = 64;
const BLOCK_BITS: usize = BLOCK_BYTES * 8;
const BLOCK_WORDS: usize = BLOCK_BYTES / 8;
const BITS_PER_HASH: usize = 12;
/// Seven places of nine bits each are what one mixed hash gives.
const PROBES: u32 = 7;
const PROBE_BITS: u32 = BLOCK_BITS.ilog2();

/// The filter of these hashes, at about twelve bits for each. They must be well mixed in all their bits.
pub(crate) fn build(hashes: &[u64]) -> Vec<u8> {
    let mut filter = vec![0; bytes_of(hashes.len() * BITS_PER_HASH)];
    hashes.iter().for_each(|&hash| insert(&mut filter, hash));
    filter
}

/// A filter that gets its hashes one by one.
pub(crate) struct FilterBuilder {
    filter: HugeBytes,
}

impl FilterBuilder {
    /// Room for `most` hashes at so many bits each; `None` where that takes more than `limit_bytes`.
    pub(crate) fn new(most: usize, bits_per_hash: usize, limit_bytes: usize) -> Option<Self> {
        let bytes = bytes_of(most.checked_mul(bits_per_hash)?);
        (bytes <= limit_bytes).then(|| Self {
            filter: HugeBytes::zeroed(bytes),
        })
    }

    pub(crate) fn insert(&mut self, hash: u64) {
        insert(&mut self.filter, hash);
    }

    pub(crate) fn into_bytes(self) -> HugeBytes {
        self.filter
    }
}

fn bytes_of(bits: usize) -> usize {
    bits.div_ceil(BLOCK_BITS) * BLOCK_BYTES
}

fn insert(filter: &mut [u8], hash: u64) {
    let start = block_start(hash, filter.len() / BLOCK_BYTES);
    for bit in probes(hash) {
        filter[start + bit / 8] |= 1 << (bit % 8);
    }
}

/// Whether the filter may have been built with this hash; false is certain, and an empty filter holds nothing.
pub(crate) fn may_hold(filter: &[u8], hash: u64) -> bool {
    Probe::new(hash).may_be_in(filter)
}

/// A hash that several filters are asked for.
pub(crate) struct Probe {
    hash: u64,
    /// Its bits within a block, which are the same in every filter.
    bits: [u64; BLOCK_WORDS],
}

impl Probe {
    pub(crate) fn new(hash: u64) -> Self {
        let mut bits = [0; BLOCK_WORDS];
        for bit in probes(hash) {
            bits[bit / 64] |= 1 << (bit % 64);
        }
        Self { hash, bits }
    }

    /// Whether a filter may have been built with the hash.
    pub(crate) fn may_be_in(&self, filter: &[u8]) -> bool {
        let blocks = filter.len() / BLOCK_BYTES;
        if blocks == 0 {
            // Less than a block is no filter of ours, so it can rule nothing out.
            return !filter.is_empty();
        }
        let block = &filter[block_start(self.hash, blocks)..][..BLOCK_BYTES];
        // Whole words and no branches: which bit is missing cannot be predicted, and a wrong guess would keep the processor
        // from loading the blocks of further filters meanwhile.
        let words = block
            .as_chunks()
            .0
            .iter()
            .map(|word| u64::from_le_bytes(*word));
        let missing = words
            .zip(self.bits)
            .fold(0, |missing, (word, bits)| missing | bits & !word);
        missing == 0
    }
}

/// A byte of the block that is looked at for a hash. Reading it for many hashes first brings their blocks from memory at the
/// same time, where asking for one after the other would wait for each.
pub(crate) fn touch(filter: &[u8], hash: u64) -> u8 {
    let blocks = filter.len() / BLOCK_BYTES;
    let at = block_start(hash, blocks);
    filter.get(at).copied().unwrap_or_default()
}

fn block_start(hash: u64, blocks: usize) -> usize {
    let block = (u128::from(hash) * blocks as u128) >> 64;
    block as usize * BLOCK_BYTES
}

/// The bits within the block. The block was chosen by the hash's high bits, so they are mixed
/// again: otherwise the hashes of one block would share most of their probes.
fn probes(hash: u64) -> impl Iterator<Item = usize> {
    let mut mixed = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^= mixed >> 29;
    (0..PROBES).map(move |probe| (mixed >> (probe * PROBE_BITS)) as usize % BLOCK_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use xxhash_rust::xxh3::xxh3_64;

    fn hash_of(number: u64) -> u64 {
        xxh3_64(&number.to_le_bytes())
    }

    #[test]
    fn an_empty_filter_holds_nothing() {
        assert!(build(&[]).is_empty());
        assert!(!may_hold(&[], 1));
    }

    #[test]
    fn false_positives_stay_below_one_percent() {
        for held in [10_u64, 1_000, 100_000] {
            let hashes: Vec<u64> = (0..held).map(hash_of).collect();
            let filter = build(&hashes);
            assert!(filter.len() <= 64 + held as usize * BITS_PER_HASH / 8);
            let asked = 100_000;
            let wrong = (held..held + asked)
                .filter(|&number| may_hold(&filter, hash_of(number)))
                .count();
            assert!(wrong < asked as usize / 100, "{wrong} of {asked} at {held}");
        }
    }

    proptest! {
        #[test]
        fn what_was_put_in_is_always_found(hashes in prop::collection::vec(any::<u64>(), 0..500)) {
            let filter = build(&hashes);
            prop_assert!(hashes.iter().all(|&hash| may_hold(&filter, hash)));
        }

        #[test]
        fn garbage_never_panics(filter in prop::collection::vec(any::<u8>(), 0..300), hash: u64) {
            may_hold(&filter, hash);
        }
    }
}
