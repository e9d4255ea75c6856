//! How maps hash their keys: quickly where the log itself made them, and under a secret where outsiders choose them.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// A map by numbers that the log gave, or by what is a hash already.
pub(crate) type GivenMap<K, V> = HashMap<K, V, BuildHasherDefault<Given>>;

/// A map by names.
pub(crate) type NameMap<K, V> = HashMap<K, V, NameHashing>;

/// Spreads numbers, and takes a part of hashes.
#[derive(Default)]
pub(crate) struct Given(u64);

impl Hasher for Given {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64(bytes);
    }

    fn write_u32(&mut self, number: u32) {
        // The golden ratio: neighbours end up far from each other.
        self.0 = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Hashes names under a secret, so that no one can choose many with the same hash.
#[derive(Clone)]
pub(crate) struct NameHashing {
    secret: u64,
}

impl Default for NameHashing {
    fn default() -> Self {
        Self {
            secret: RandomState::new().hash_one("names"),
        }
    }
}

impl BuildHasher for NameHashing {
    type Hasher = NameHasher;

    fn build_hasher(&self) -> NameHasher {
        NameHasher(self.secret)
    }
}

pub(crate) struct NameHasher(u64);

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    fn write_u8(&mut self, _end_of_text: u8) {}

    fn finish(&self) -> u64 {
        self.0
    }
}
