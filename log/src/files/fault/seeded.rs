//! Numbers that follow from a seed.

/// SplitMix64: small, fast, and the same on every machine. For tests only, never for secrets.
#[derive(Debug, Clone)]
pub struct Seeded(u64);

impl Seeded {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`; 0 when there is none.
    pub fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.number()) * limit as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        let mut seeded = Seeded::new(1_234_567);
        assert_eq!(seeded.number(), 6_457_827_717_110_365_317);
        assert_eq!(seeded.number(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn below_stays_below_and_reaches_everything() {
        let mut seeded = Seeded::new(0);
        let mut seen = [false; 5];
        for _ in 0..100 {
            seen[seeded.below(5)] = true;
        }
        assert_eq!(seen, [true; 5]);
        assert_eq!(seeded.below(0), 0);
    }
}
