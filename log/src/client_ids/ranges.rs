//! Ranges of segment numbers.

use std::ops::RangeInclusive;

/// Whether two ranges have a number in common.
pub(super) fn touch(one: &RangeInclusive<u64>, other: &RangeInclusive<u64>) -> bool {
    one.start() <= other.end() && other.start() <= one.end()
}

/// What is left of `range` without `holes`, in order.
pub(super) fn subtract<'a>(
    range: RangeInclusive<u64>,
    holes: impl IntoIterator<Item = &'a RangeInclusive<u64>>,
) -> Vec<RangeInclusive<u64>> {
    let mut left = vec![range];
    for hole in holes {
        left = left
            .into_iter()
            .flat_map(|part| {
                if !touch(&part, hole) {
                    return [Some(part), None];
                }
                let before =
                    (part.start() < hole.start()).then(|| *part.start()..=hole.start() - 1);
                let behind = (hole.end() < part.end()).then(|| hole.end() + 1..=*part.end());
                [before, behind]
            })
            .flatten()
            .collect();
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_left_is_in_the_range_and_in_no_hole(
            (start, length) in (0..40u64, 0..20u64),
            holes in prop::collection::vec((0..60u64, 0..10u64), 0..5),
        ) {
            let range = start..=start + length;
            let holes: Vec<_> = holes.into_iter().map(|(from, long)| from..=from + long).collect();
            let left = subtract(range.clone(), &holes);
            for number in 0..80 {
                let is_left = range.contains(&number) && !holes.iter().any(|hole| hole.contains(&number));
                let found = left.iter().filter(|part| part.contains(&number)).count();
                prop_assert_eq!(found, usize::from(is_left));
            }
        }
    }
}
