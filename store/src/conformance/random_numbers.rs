//! Numbers that look random and come again with the same seed: the one generator of the suite, of the log's simulated disk
//! and of the tests of other crates.

/// A SplitMix64 generator.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The sequence of this seed.
    pub fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.number() % limit
    }

    /// A place in a list of so many; 0 where it has none.
    pub fn index(&mut self, count: usize) -> usize {
        ((u128::from(self.number()) * count as u128) >> 64) as usize
    }

    /// True once in so many times.
    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// True so many times out of a hundred.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of these, which are not none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn the_sequence_is_the_published_one() {
        let mut random = Random::seeded(1_234_567);
        assert_eq!(random.number(), 6_457_827_717_110_365_317);
        assert_eq!(random.number(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn places_stay_below_the_count_and_reach_everything() {
        let mut random = Random::seeded(0);
        let mut seen = [false; 5];
        for _ in 0..100 {
            seen[random.index(5)] = true;
        }
        assert_eq!(seen, [true; 5]);
        assert_eq!(random.index(0), 0);
    }
}
