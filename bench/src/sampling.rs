//! Repeated measurements: medians, spreads, and two sides that take turns so that both see the same machine.

use crate::Outcome;
use serde::{Serialize, Serializer};

/// Measurements of one thing, at least one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// Adds a measurement.
    pub fn push(&mut self, sample: f64) {
        self.0.push(sample);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The middle one, or the mean of the middle two.
    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        match sorted.len() {
            0 => f64::NAN,
            odd if odd % 2 == 1 => sorted[odd / 2],
            even => f64::midpoint(sorted[even / 2 - 1], sorted[even / 2]),
        }
    }

    /// The smallest one.
    pub fn lowest(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The largest one.
    pub fn highest(&self) -> f64 {
        self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// Each sample by the one that was taken beside it: what disturbed one has mostly disturbed the other.
    pub fn ratios(&self, beside: &Self) -> Self {
        let pairs = self.0.iter().zip(&beside.0);
        Self(pairs.map(|(sample, other)| sample / other).collect())
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(samples: I) -> Self {
        Self(samples.into_iter().collect())
    }
}

impl Serialize for Samples {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// Measures `repeats` times, after once for nothing: the first run pays for memory that the system has to find.
pub fn repeat(repeats: usize, mut measure: impl FnMut() -> Outcome<f64>) -> Outcome<Samples> {
    measure()?;
    (0..repeats).map(|_| measure()).collect()
}

/// Measures two things in turns, after once for nothing. Each starts every other pair, so that neither always follows
/// the other.
pub fn in_turns(
    repeats: usize,
    mut one: impl FnMut() -> Outcome<f64>,
    mut other: impl FnMut() -> Outcome<f64>,
) -> Outcome<(Samples, Samples)> {
    let (mut ones, mut others) = (Samples::default(), Samples::default());
    one()?;
    other()?;
    for at in 0..repeats {
        let first = if at % 2 == 0 { one()? } else { other()? };
        let second = if at % 2 == 0 { other()? } else { one()? };
        let (sample, beside) = match at % 2 {
            0 => (first, second),
            _ => (second, first),
        };
        ones.push(sample);
        others.push(beside);
    }
    Ok((ones, others))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(list: &[f64]) -> Samples {
        list.iter().copied().collect()
    }

    #[test]
    fn the_median_ignores_one_that_is_far_off() {
        assert_eq!(samples(&[3.0, 900.0, 2.0]).median(), 3.0);
        assert_eq!(samples(&[4.0, 1.0]).median(), 2.5);
        assert_eq!(samples(&[3.0, 9.0, 2.0]).lowest(), 2.0);
        assert_eq!(samples(&[3.0, 9.0, 2.0]).highest(), 9.0);
    }

    #[test]
    fn each_sample_is_compared_with_its_neighbour() {
        let ratios = samples(&[1.0, 4.0]).ratios(&samples(&[2.0, 2.0]));
        assert_eq!(ratios, samples(&[0.5, 2.0]));
    }

    #[test]
    fn both_sides_take_turns_and_keep_their_own() {
        let order = std::cell::RefCell::new(Vec::new());
        let side = |name: f64| {
            let order = &order;
            move || {
                order.borrow_mut().push(name);
                Ok(name)
            }
        };
        let (ones, others) = in_turns(3, side(1.0), side(2.0)).unwrap();
        assert_eq!(*order.borrow(), [1.0, 2.0, 1.0, 2.0, 2.0, 1.0, 1.0, 2.0]);
        assert_eq!(ones, samples(&[1.0; 3]));
        assert_eq!(others, samples(&[2.0; 3]));
    }
}
